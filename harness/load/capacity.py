"""The search for the highest load that holds every objective. Pure: no clock, no load, only decisions.

The load doubles until an objective breaks, then the gap is halved until it is small. On the way a step is
left as soon as it seems to hold, because most of the time goes into loads that are not the answer; the
answer itself is measured until it is sure, and if it breaks then, the search goes on below it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.load.objectives import Evidence, Objective
from harness.stream import Attempt
from harness.stream.outcome import CLIENT_ENDED

Phase = Literal["grow", "bisect", "confirm"]
StepVerdict = Literal["holds", "seems_to_hold", "broken", "inconclusive"]

# How fine the answer is, as a share of it; a search over users is exact to one below 50. The waits of
# random arrivals vary so much that finer than this would be an illusion.
RESOLUTION, OPEN_RESOLUTION = 0.02, 0.05

# A step that is not the answer is left after so many seconds and requests without anything against it.
QUICK_S, QUICK_REQUESTS = 3.0, 3

# Under an open load a queue that is fed too fast needs time to show it: a step near the answer is never
# shorter than this part of the step time.
OPEN_LEAST: dict[Phase, float] = {"grow": 1 / 6, "bisect": 1 / 3, "confirm": 1.0}

# A step that has to be sure may take so many times the step time, if that will do.
PATIENCE = 4.0


class Search:
    """Which load to try next. `load` is None when the search is over; `answer` is then what it found."""

    def __init__(self, first: int, last: int | None = None, resolution: float = RESOLUTION) -> None:
        self._last = last
        self._resolution = resolution
        self._held: list[int] = []
        self._sure: set[int] = set()
        self._broken: int | None = None
        self.phase: Phase = "grow"
        self.load: int | None = first if last is None else min(first, last)

    @property
    def answer(self) -> int | None:
        """The highest load that held, so far; None if none did."""
        return self._held[-1] if self._held else None

    @property
    def is_sure(self) -> bool:
        """Whether the answer was measured until it was sure."""
        return self.answer in self._sure

    @property
    def broken(self) -> int | None:
        """The lowest load that broke; None if none did."""
        return self._broken

    def report(self, verdict: StepVerdict) -> None:
        """Take what became of `load`. An inconclusive step counts as holding, and is never repeated."""
        load = self.load
        assert load is not None
        if verdict == "broken":
            self._broken = load if self._broken is None else min(load, self._broken)
            self._held = [held for held in self._held if held < load]
        else:
            if load not in self._held:
                self._held = sorted([*self._held, load])
            if verdict != "seems_to_hold":
                self._sure.add(load)
        self._choose()

    def _choose(self) -> None:
        low, high = self.answer or 0, self._broken
        if high is None and (self._last is None or low < self._last):
            self.phase = "grow"
            self.load = 2 * low if self._last is None else min(2 * low, self._last)
        elif high is not None and high - low > max(1, int(self._resolution * low)):
            self.phase, self.load = "bisect", (low + high) // 2
        elif low and low not in self._sure:
            self.phase, self.load = "confirm", low
        else:
            self.load = None


@dataclass(slots=True)
class Step:
    """One load and what was seen of it. Unix seconds; what ends before `counted_from` does not count.

    `load` is in whole units of the search, each `unit` users or requests per second.
    """

    number: int
    load: int
    phase: Phase
    began: float
    counted_from: float
    evidence: list[Evidence]
    requests: int = 0
    good: int = 0
    tokens: int = 0
    ttfts: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    durations: list[float] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    rejected: int = 0
    open_samples: list[int] = field(default_factory=list)
    verdict: StepVerdict | None = None
    ended: float | None = None
    unit: float = 1.0
    open: bool = False  # whether requests arrive without waiting for each other

    @classmethod
    def begin(
        cls, number: int, search: Search, objectives: Sequence[Objective], now: float, settle_s: float
    ) -> Step:
        """Return a step that begins now and settles for *settle_s*."""
        assert search.load is not None
        evidence = [Evidence(objective) for objective in objectives]
        return cls(number, search.load, search.phase, now, now + settle_s, evidence)

    def add(self, record: Attempt) -> None:
        """Count the request that ended with *record*, if it began and ended within this step."""
        if record.sent_at is None or not record.final or record.outcome in CLIENT_ENDED:
            return
        if record.sent_at < self.began or record.sent_at + record.end_s < self.counted_from:
            return
        self.requests += 1
        bad = [evidence.add(record) for evidence in self.evidence]
        self.good += record.success and not any(bad)
        self.tokens += record.tokens.output or 0
        self.outcomes[record.outcome] += 1
        self.rejected += record.status == 429
        self.durations.append(record.end_s)
        if record.first_token_s is not None:
            self.ttfts.append(record.first_token_s)
        if record.progress.gap_p99_s is not None:
            self.gaps.append(record.progress.gap_p99_s)

    def decide(self, now: float, step_s: float) -> StepVerdict | None:
        """Return what became of the step by *now*; None if it has to go on. *step_s* is its normal length."""
        measured_s = now - self.counted_from
        if measured_s <= 0.0:
            return None
        verdicts = [evidence.verdict for evidence in self.evidence]
        if "broken" in verdicts:
            return "broken"
        if self.open and measured_s < OPEN_LEAST[self.phase] * step_s:
            return None
        if all(verdict == "holds" for verdict in verdicts):
            # Many requests in a short time are no proof of it: the queue may only have begun to grow.
            return "seems_to_hold" if self.open and self.phase != "confirm" else "holds"
        seems_to_hold = all(evidence.seems_to_hold for evidence in self.evidence)
        if self.phase != "confirm":
            quick = measured_s >= min(QUICK_S, step_s) and self.requests >= QUICK_REQUESTS
            if quick and seems_to_hold:
                return "seems_to_hold"
            if measured_s < step_s:
                return None
            return "seems_to_hold" if seems_to_hold and self.requests else "broken"
        if measured_s < step_s or self._will_do(measured_s, step_s * PATIENCE):
            return None
        return "inconclusive" if seems_to_hold else "broken"

    def _will_do(self, measured_s: float, longest_s: float) -> bool:
        """Return whether *longest_s* will bring enough requests, at the pace so far."""
        if measured_s >= longest_s:
            return False
        return all(
            evidence.verdict == "holds"
            or evidence.n / measured_s * longest_s >= evidence.objective.requests_needed
            for evidence in self.evidence
        )

    @property
    def broke(self) -> Evidence | None:
        """The objective that is furthest beyond its limit; None if none is."""
        over = [e for e in self.evidence if not e.seems_to_hold]
        return max(over, key=lambda e: e.share / e.objective.allowed, default=None)

    @property
    def cause(self) -> Literal["quota", "latency", "errors"] | None:
        """Why it broke: refused with 429, too slow, or failing."""
        worst = self.broke
        if worst is None:
            return None
        if 2 * worst.rejected > worst.bad:
            return "quota"
        return "latency" if worst.objective.limit_s is not None else "errors"

    def to_plain(self) -> dict[str, Any]:
        """Return the step as plain data for `capacity.json`."""
        measured_s = max(0.0, (self.ended or self.counted_from) - self.counted_from)
        per_s = 1.0 / measured_s if measured_s else 0.0
        duration_s = sum(self.durations) / len(self.durations) if self.durations else None
        streams = sum(self.open_samples) / len(self.open_samples) if self.open_samples else None
        return {
            "step": self.number,
            "load": round(self.load * self.unit, 3),
            "phase": self.phase,
            "verdict": self.verdict,
            "settled_s": round(self.counted_from - self.began, 3),
            "measured_s": round(measured_s, 3),
            "requests": self.requests,
            "requests_per_s": round(self.requests * per_s, 3),
            "goodput_per_s": round(self.good * per_s, 3),
            "tokens_per_s": round(self.tokens * per_s, 1),
            "open_streams": None if streams is None else round(streams, 2),
            "littles_law": None if duration_s is None else round(self.requests * per_s * duration_s, 2),
            "duration_mean_s": None if duration_s is None else round(duration_s, 6),
            "ttft_p50_s": quantile(self.ttfts, 0.5),
            "ttft_p95_s": quantile(self.ttfts, 0.95),
            "gap_p99_p50_s": quantile(self.gaps, 0.5),
            "outcomes": dict(self.outcomes.most_common()),
            "rejected": self.rejected,
            "broke": None if self.verdict != "broken" or self.broke is None else self.broke.objective.text,
            "cause": self.cause if self.verdict == "broken" else None,
            "objectives": [_plain_evidence(evidence) for evidence in self.evidence],
        }


def quantile(values: Sequence[float], q: float) -> float | None:
    """Return the *q* quantile by rank; None without values."""
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(q * len(ordered)))], 6) if ordered else None


def _plain_evidence(evidence: Evidence) -> dict[str, Any]:
    low, high = evidence.interval()
    return {
        "objective": evidence.objective.text,
        "allowed": round(evidence.objective.allowed, 6),
        "bad": evidence.bad,
        "n": evidence.n,
        "share": round(evidence.share, 6),
        "low": round(low, 6),
        "high": round(high, 6),
        "verdict": evidence.verdict,
    }

"""Live numbers for people who watch a run: rows per protocol and scenario, samples over time, silent streams.

Plain data (text, finite numbers, None), ready for JSON: one NaN would blank the page that shows it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from heapq import nlargest
from math import isfinite
from typing import Any

from harness.observe.buckets import Histogram
from harness.observe.families import (
    ATTEMPTS,
    ERROR_EVENTS,
    FIRST_CONTENT,
    FIRST_TOKEN,
    INTER_TOKEN,
    KEEPALIVE_INTERVAL,
    LONGEST_SILENCE,
    REQUESTS,
    STALLS,
    TOKENS,
    Family,
)  # fmt: skip
from harness.observe.labels import Labels
from harness.observe.live import OpenStream
from harness.observe.totals import Totals
from harness.stream.outcome import CLIENT_ENDED

# What the page draws: ten minutes at a sample every two seconds.
SAMPLES_KEPT = 300
SAMPLE_S = 2.0

SILENT_SHOWN = 20

NOTHING = "–"

_PHASES = ("connecting", "waiting", "streaming", "silent")


def rows(totals: Totals, baseline: Totals | None = None) -> list[dict[str, Any]]:
    """Return one row per protocol and scenario; counts are those since *baseline*."""
    keys = sorted({(labels.protocol, labels.scenario) for labels in totals.started})
    return [
        _row(_Part(totals, baseline, protocol, scenario), protocol, scenario) for protocol, scenario in keys
    ]


class _Part:
    """One protocol and scenario of a run, minus what was there at the baseline."""

    def __init__(self, totals: Totals, baseline: Totals | None, protocol: str, scenario: str) -> None:
        self.totals, self.baseline = totals, baseline
        self.where = {"protocol": protocol, "scenario": scenario}

    def histogram(self, family: Family) -> Histogram:
        found = self.totals.pooled(family, **self.where)
        if self.baseline is not None:
            before = self.baseline.pooled(family, **self.where)
            found.counts = [max(0, a - b) for a, b in zip(found.counts, before.counts, strict=True)]
        return found

    def ms(self, family: Family, *quantiles: float) -> str:
        """Return the quantiles in milliseconds as one text, such as ``201 / 350``."""
        found = self.histogram(family)
        return _slashed(_ms(found.quantile(q)) for q in quantiles)

    def counts(self, family: Family, label: str, **where: str) -> dict[str, int]:
        """Return the counter *family* by the values of *label*."""
        found = _counts(self.totals, family, label, {**self.where, **where})
        if self.baseline is not None:
            for value, n in _counts(self.baseline, family, label, {**self.where, **where}).items():
                found[value] = found.get(value, 0) - n
        return {value: n for value, n in sorted(found.items(), key=lambda item: -item[1]) if n > 0}


def _counts(totals: Totals, family: Family, label: str, where: Mapping[str, str]) -> dict[str, int]:
    at = family.labels.index(label)
    wanted = [(family.labels.index(name), value) for name, value in where.items()]
    found: dict[str, int] = {}
    for labels, n in totals.counters.get(family.name, {}).items():
        if all(labels[place] == value for place, value in wanted):
            found[labels[at]] = found.get(labels[at], 0) + int(n)
    return found


def _row(part: _Part, protocol: str, scenario: str) -> dict[str, Any]:
    opened = [
        streams for labels, streams in part.totals.open.items()
        if labels.protocol == protocol and labels.scenario == scenario
    ]  # fmt: skip
    phases = [sum(streams.phases[i] for streams in opened) for i in range(len(_PHASES))]
    outcomes = part.counts(ATTEMPTS, "outcome")
    retries = part.counts(REQUESTS, "retry_outcome")
    ended = sum(n for outcome, n in outcomes.items() if outcome not in CLIENT_ENDED)
    longest = part.histogram(LONGEST_SILENCE).quantile(1.0)
    silent_s = max((streams.oldest_silence_s for streams in opened), default=0.0)
    return {
        "name": protocol if scenario == "default" else f"{protocol} · {scenario}",
        "streams": ended,
        "failed": ended - outcomes.get("completed", 0),
        "open": _slashed(map(str, phases)),
        "ttft": part.ms(FIRST_TOKEN, 0.5, 0.95, 0.99),
        "content": part.ms(FIRST_CONTENT, 0.5, 0.95, 0.99),
        "gap": part.ms(INTER_TOKEN, 0.5, 0.99),
        "silence": f"{silent_s:.2f} / {max(silent_s, longest or 0.0):.2f}",
        "keepalive": part.ms(KEEPALIVE_INTERVAL, 0.99),
        "stalls": _words(part.counts(STALLS, "stall_class", fatal="true")),
        "soft": _words(part.counts(STALLS, "stall_class", fatal="false")),
        "errors": _words(part.counts(ERROR_EVENTS, "error_type")),
        "retries": f"{retries.get('recovered', 0)} / {retries.get('exhausted', 0)}",
        "wasted": sum(part.counts(TOKENS, "kind", kind="wasted").values()),
    }


def _words(counts: Mapping[str, int]) -> str:
    # The number stays with its first word where the line breaks.
    return ", ".join(f"{n}\u00a0{name.replace('_', ' ')}" for name, n in counts.items()) or NOTHING


def _ms(seconds: float | None) -> str:
    if seconds is None:
        return NOTHING
    return f"{seconds * 1e3:.1f}" if seconds < 0.1 else f"{seconds * 1e3:,.0f}"


def _slashed(parts: Iterable[str]) -> str:
    return " / ".join(parts)


class Samples:
    """What happened lately: one sample each two seconds, each over the time since the one before."""

    def __init__(self) -> None:
        self._kept: deque[dict[str, Any]] = deque(maxlen=SAMPLES_KEPT)
        self._before: tuple[float, str, Histogram, dict[str, int]] | None = None

    def take(self, totals: Totals, now: float) -> None:
        """Add a sample at *now* (unix seconds)."""
        ttft, outcomes = totals.pooled(FIRST_TOKEN), totals.outcomes()
        before, self._before = self._before, (now, totals.run, ttft, outcomes)
        if before is None or before[1] != totals.run:
            self._kept.clear()
            return
        passed_s = max(now - before[0], 1e-3)
        lately = Histogram(ttft.bounds)
        lately.counts = [a - b for a, b in zip(ttft.counts, before[2].counts, strict=True)]
        phases = [sum(streams.phases[i] for streams in totals.open.values()) for i in range(len(_PHASES))]
        self._kept.append(
            {
                "t": round(now, 1),
                "ttft": [
                    None if (v := lately.quantile(q)) is None else round(v, 4) for q in (0.5, 0.95, 0.99)
                ],
                "outcomes": {
                    name: round((n - before[3].get(name, 0)) / passed_s, 2)
                    for name, n in outcomes.items()
                    if n != before[3].get(name, 0)
                },
                "open": dict(zip(_PHASES, phases, strict=True)),
                "silence": round(max((s.oldest_silence_s for s in totals.open.values()), default=0.0), 2),
            }
        )

    def clear(self) -> None:
        """Forget all samples; the next one counts from the last that was taken."""
        self._kept.clear()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._kept)


def finite(data: Any) -> Any:
    """Return plain *data* with None in place of every number that JSON does not know."""
    if isinstance(data, dict):
        return {key: finite(value) for key, value in data.items()}
    if isinstance(data, list):
        return [finite(value) for value in data]
    return None if isinstance(data, float) and not isfinite(data) else data


def silent_streams(
    sessions: Iterable[tuple[Labels, OpenStream]], now: float, worker: str = "local"
) -> list[dict[str, Any]]:
    """Return the open streams that have gone longest without output, oldest first (monotonic *now*)."""
    found = []
    for labels, session in sessions:
        if session.phase == "after_terminal":
            continue
        began = session.opened if session.t0 is None else session.t0
        gap_s = now - (session.last_progress if session.last_progress is not None else began)
        byte_s = now - (session.last_byte if session.last_byte is not None else began)
        found.append((gap_s, byte_s, labels, session))
    longest = nlargest(SILENT_SHOWN, found, key=lambda entry: entry[0])
    return [
        {
            "request": getattr(session, "request", ""),
            "protocol": labels.protocol,
            "scenario": labels.scenario,
            "worker": worker,
            "phase": session.phase.replace("_", " "),
            "no_token_s": round(gap_s, 1),
            "no_byte_s": round(byte_s, 1),
        }
        for gap_s, byte_s, labels, session in longest
    ]


def oldest(streams: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return those of *streams*, the silent ones of many processes, that are to be shown."""
    return nlargest(SILENT_SHOWN, streams, key=lambda stream: stream["no_token_s"])

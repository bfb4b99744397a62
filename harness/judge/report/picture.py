"""What a report shows of a run, collected in one pass beside the judge's evidence:

Time, stalls, cuts, health.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import msgspec
from msgspec import structs

from harness.judge.evidence import Cells, Evidence, collect
from harness.judge.facts import RunFacts, read_facts
from harness.judge.judging import Judged
from harness.judge.outputs import VERDICT
from harness.judge.trust import why_invalid
from harness.observe.aggregate import MIN_THRESHOLD_S
from harness.observe.results import ATTEMPTS, TIMELINES, ResultsError, read_records, read_timelines
from harness.stream.describe import describe, failure_name
from harness.stream.outcome import SoftStallClass, is_failure
from harness.stream.record import Attempt

# The time axis is kept at this and drawn at a coarser step, so that one pass over the records is enough.
STEP_S = 0.25
# Ends that look like somebody in between closing the connection.
CUT = frozenset({"cut", "truncated", "no_response"})
_SOFT = frozenset(get_args(SoftStallClass))
_KINDS_OF_FAILURE = 12
_WORST = 10
_PEERS = 1_000


@dataclass(slots=True)
class Step:
    """What began and ended in one step of time."""

    started: int = 0
    ended: int = 0
    ttft: array[float] = field(default_factory=lambda: array("d"))
    failed: Counter[str] = field(default_factory=Counter)
    lag_max_s: float = 0.0
    events: int = 0
    uncertain: int = 0


@dataclass(slots=True)
class Failure:
    """A kind of failure: how often, and one of them in words."""

    name: str
    count: int
    example: str
    request: str


@dataclass(slots=True)
class Stream:
    """One of the worst streams: its record and, if it was kept, its timeline."""

    record: Attempt
    timeline: dict[str, Any] | None
    waited_s: float


class Picture:
    """A run as its report shows it."""

    def __init__(self, folder: Path) -> None:
        """Read the run in *folder*. Raises `ResultsError`."""
        self.folder = folder
        self.notes: list[str] = []
        self.steps: dict[int, Step] = {}
        self.stalls: dict[str, Counter[str]] = {"hard": Counter(), "watched": Counter(), "soft": Counter()}
        self.keepalive: Counter[str] = Counter()
        self.intervals: array[float] = array("d")
        self.cut_ages: array[float] = array("d")
        self.cut_silences: array[float] = array("d")
        self.retries: Counter[str] = Counter()
        self.retry_outcomes: Counter[str] = Counter()
        self.wasted_tokens = 0
        self.clocks: Counter[str] = Counter()
        self.peers: set[str] = set()
        self._failures: Counter[str] = Counter()
        self._examples: dict[str, Attempt] = {}
        self._worst: list[tuple[float, int, Attempt]] = []
        facts, evidence = read_facts(folder), Evidence()
        self._origin = facts.started_at
        collect(self._seen(read_records(folder / ATTEMPTS, self.notes)), evidence)
        torn = bool(self.notes)
        if facts.killed:
            self.notes.append("the run was killed before its end: what was open then is in no record")
        reasons = why_invalid(facts, evidence, MIN_THRESHOLD_S, torn)
        self.judged = Judged(facts, evidence, tuple(reasons), tuple(self.notes))
        self.verdict = _verdict(folder, facts)
        self.worst = self._with_timelines()

    @property
    def facts(self) -> RunFacts:
        """What the run's own files say."""
        return self.judged.facts

    @property
    def evidence(self) -> Evidence:
        """The samples and counts of the measured part."""
        return self.judged.evidence

    @property
    def simulated(self) -> bool:
        """Whether the gateway was played."""
        return self.facts.simulated or self.evidence.simulated

    @property
    def protocols(self) -> dict[str, Cells]:
        """The evidence by protocol."""
        return {name: self.evidence.select({"protocol": name}) for name in self.evidence.labels("protocol")}

    @property
    def failures(self) -> list[Failure]:
        """The kinds of failure, most frequent first."""
        return [
            Failure(name, count, describe(self._examples[name]), self._examples[name].request)
            for name, count in self._failures.most_common(_KINDS_OF_FAILURE)
        ]

    @property
    def requests(self) -> Counter[str]:
        """The outcomes of requests, by their last attempt."""
        total: Counter[str] = Counter()
        for cell in self.evidence.cells.values():
            total.update(cell.outcomes)
        return total

    def drop_words(self) -> None:
        """Forget what servers wrote, and the notes: they may name anything."""
        self._examples = {name: _without_words(record) for name, record in self._examples.items()}
        self.worst = [Stream(_without_words(s.record), s.timeline, s.waited_s) for s in self.worst]
        self.notes = []

    def _seen(self, records: Iterable[Attempt]) -> Iterable[Attempt]:
        """Yield *records*, each looked at on its way."""
        for number, record in enumerate(records):
            if self._origin is None:
                self._origin = record.scheduled_at
            self._add_times(record, self._origin)
            if record.outcome != "completed" or record.stall is not None or record.soft_stalls:
                self._add_trouble(number, record)
            keepalive = record.keepalive
            if keepalive.gap_max_s is not None:
                self.intervals.append(keepalive.gap_max_s)
                counts = self.keepalive
                counts["comments"] += keepalive.comments
                counts["pings"] += keepalive.pings
                counts["late"] += keepalive.late
                counts["violations"] += keepalive.violations
            if record.retry.decision == "retry":
                self.retries[record.retry.reason or "none"] += 1
            if summary := record.request_summary:
                self.retry_outcomes[summary.retry_outcome or "none"] += 1
                self.wasted_tokens += summary.wasted_tokens
            yield record

    def _add_times(self, record: Attempt, origin: float) -> None:
        steps = self.steps
        sent_s = (record.sent_at or record.scheduled_at) - origin
        begins, ends = int(sent_s / STEP_S), int((sent_s + record.end_s) / STEP_S)
        first = steps.get(begins)
        if first is None:
            first = steps[begins] = Step()
        last = steps.get(ends)
        if last is None:
            last = steps[ends] = Step()
        first.started += 1
        if record.first_token_s is not None:
            first.ttft.append(record.first_token_s)
        last.ended += 1
        last.events += record.events
        last.uncertain += record.uncertain_events
        if record.lag_max_s is not None and record.lag_max_s > last.lag_max_s:
            last.lag_max_s = record.lag_max_s
        if is_failure(record.outcome):
            last.failed[record.outcome] += 1
        self.clocks[record.clock] += 1
        if record.peer is not None and len(self.peers) < _PEERS:
            self.peers.add(record.peer)

    def _add_trouble(self, number: int, record: Attempt) -> None:
        for stall in (record.stall, *record.soft_stalls):
            if stall is not None:
                level = "soft" if stall.class_ in _SOFT else "hard" if stall.fatal else "watched"
                self.stalls[level][stall.class_] += 1
                self._add_worst(stall.ended_s - stall.began_s, number, record)
        if is_failure(record.outcome):
            name = failure_name(record)
            self._failures[name] += 1
            self._examples.setdefault(name, record)
        if record.outcome in CUT:
            self.cut_ages.append(record.end_s)
            if record.silence_end_s is not None:
                self.cut_silences.append(record.silence_end_s)

    def _add_worst(self, waited_s: float, number: int, record: Attempt) -> None:
        worst = self._worst
        if len(worst) >= _WORST and waited_s <= worst[-1][0]:
            return
        worst[:] = [item for item in worst if item[1] != number or item[0] > waited_s]
        if not any(item[1] == number for item in worst):
            worst.append((waited_s, number, record))
        worst.sort(key=lambda item: (-item[0], item[1]))
        del worst[_WORST:]

    def _with_timelines(self) -> list[Stream]:
        wanted = {(record.request, record.attempt) for _, _, record in self._worst}
        found = {}
        if wanted and (self.folder / TIMELINES).exists():
            for line in read_timelines(self.folder / TIMELINES, self.notes):
                key = (line.get("request"), line.get("attempt"))
                if key in wanted:
                    found[key] = line
        return [
            Stream(record, found.get((record.request, record.attempt)), waited_s)
            for waited_s, _, record in self._worst
        ]


def _without_words(record: Attempt) -> Attempt:
    error = record.error
    if error is None:
        return record
    return structs.replace(record, error=structs.replace(error, type=None, code=None, message=""))


def _verdict(folder: Path, facts: RunFacts) -> dict[str, Any] | None:
    """Return the run's ``verdict.json`` as it is, None if it was not judged."""
    try:
        verdict = msgspec.json.decode((folder / VERDICT).read_bytes(), type=dict[str, Any])
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise ResultsError(f"cannot read {folder / VERDICT}: {error}") from None
    # A verdict that lies beside another run's records is not this run's.
    return verdict if verdict.get("run") == facts.name else None

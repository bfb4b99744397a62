"""What a run's records say, collected in one pass: samples and counts per protocol, gateway, scenario and
model.

Two views: *attempts* are single streams, *requests* are what users wanted, each told by its last attempt. A
request whose last line says that a retry follows was stopped while it waited: it counts as aborted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter

from harness.judge.gates import WHERE
from harness.judge.metrics import REQUEST_TIMES, View
from harness.judge.readings import add_attempt, add_request, meets, new_samples
from harness.judge.sample import Sample
from harness.stream.outcome import is_failure
from harness.stream.record import Attempt, RequestSummary

# Too many requests: 429, and 529, which Anthropic's dialect says when it is overloaded.
REJECTED = (429, 529)

Key = tuple[str, str, str, str]


@dataclass(slots=True)
class Cell:
    """The evidence of one protocol, gateway, scenario and model."""

    attempts: dict[str, Sample] = field(default_factory=new_samples)
    requests: dict[str, Sample] = field(default_factory=lambda: new_samples(REQUEST_TIMES))
    streams: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)  # of requests
    rejected: int = 0
    good: int = 0
    failed_first: int = 0
    recovered: int = 0
    tokens: int = 0


class Cells(list[Cell]):
    """Some cells, and their samples added up, each once: ten gates may look at the same million values."""

    def __init__(self, cells: Iterable[Cell] = ()) -> None:
        super().__init__(cells)
        self._merged: dict[tuple[str, View], Sample] = {}

    def sample(self, metric: str, view: View) -> Sample:
        """Return the values of a per-stream metric over all cells, which must not grow any more."""
        found = self._merged.get((metric, view))
        if found is None:
            found = Sample.of(
                (cell.attempts if view == "attempt" else cell.requests)[metric] for cell in self
            )
            self._merged[metric, view] = found
        return found


@dataclass(slots=True)
class Clockwork:
    """How well the load generator kept time, as far as records tell."""

    events: int = 0
    events_uncertain: int = 0
    uncertain_max_s: float = 0.0
    started: int = 0
    started_late: int = 0


@dataclass(frozen=True, slots=True)
class Window:
    """Requests planned from `begins` to before `ends` (Unix seconds) are measured."""

    begins: float = -math.inf
    ends: float = math.inf

    def holds(self, moment: float) -> bool:
        """Return whether *moment* lies inside."""
        return self.begins <= moment < self.ends


class Evidence:
    """Collects records with `add`; `close` once there are no more.

    *slo* are the limits of goodput. An event counts as uncertain, an arrival as late, beyond *threshold_s*.
    Times of whole requests are kept only if *request_times* asks for them: most gates do not, and they cost
    a fifth.
    """

    def __init__(
        self,
        slo: Mapping[str, float] | None = None,
        window: Window | None = None,
        threshold_s: float = 0.005,
        *,
        request_times: bool = False,
    ) -> None:
        self.cells: dict[Key, Cell] = {}
        self.clockwork = Clockwork()
        self.records = self.warmup = self.outside = self.repeated = 0
        self.runs: Counter[str] = Counter()
        self.simulated = False
        self.began, self.ended = math.inf, -math.inf  # Unix seconds, of what was measured
        self._slo = dict(slo or {})
        self._request_times = request_times
        self._window = window
        self._threshold_s = threshold_s
        self._waiting: dict[str, tuple[Attempt, bool]] = {}
        self._seen: set[int] = set()
        self._closed = False
        self._selected: dict[tuple[tuple[str, str], ...], Cells] = {}

    def add(self, record: Attempt) -> None:
        """Add one record, of whatever phase."""
        self.records += 1
        self.runs[record.run] += 1
        if record.simulated:
            self.simulated = True
        identity = hash(record.request if record.attempt == 1 else (record.request, record.attempt))
        if identity in self._seen:
            self.repeated += 1
            return
        self._seen.add(identity)
        self._add_clockwork(record)
        if record.phase == "warmup":
            self.warmup += 1
        elif self._window is not None and not self._window.holds(record.scheduled_at):
            self.outside += 1
        else:
            self._measure(record)

    def close(self) -> None:
        """Count the requests that were waiting for a retry when the records ended."""
        for record, first_failed in self._waiting.values():
            cell = self.cells[record.protocol, record.gateway, record.scenario, record.model]
            self._end_request(cell, record, "aborted", first_failed)
        self._waiting.clear()
        self._seen.clear()
        self._closed = True

    def select(self, where: Mapping[str, str]) -> Cells:
        """Return the cells whose labels are those of *where*."""
        asked = tuple(sorted(where.items()))
        if asked in self._selected:
            return self._selected[asked]
        wanted = [(WHERE.index(key), value) for key, value in asked]
        found = Cells(cell for key, cell in self.cells.items() if all(key[i] == value for i, value in wanted))
        if self._closed:
            self._selected[asked] = found
        return found

    def labels(self, name: str) -> list[str]:
        """Return the values that occur of the label *name*, sorted."""
        return sorted(set(map(itemgetter(WHERE.index(name)), self.cells)))

    @property
    def seconds(self) -> float:
        """How long the measured part took, from the first planned start to the last end."""
        return max(0.0, self.ended - self.began) if self.cells else 0.0

    def _measure(self, record: Attempt) -> None:
        key = (record.protocol, record.gateway, record.scenario, record.model)
        cell = self.cells.get(key)
        if cell is None:
            cell = self.cells[key] = Cell()
        cell.streams += 1
        cell.tokens += record.tokens.output or 0
        add_attempt(cell.attempts, record)
        planned_at = record.scheduled_at
        ended_at = (record.sent_at or planned_at) + record.end_s
        if planned_at < self.began:
            self.began = planned_at
        if ended_at > self.ended:
            self.ended = ended_at
        if record.attempt == 1:
            first_failed = is_failure(record.outcome)
        else:  # a second attempt exists only because the first failed
            _, first_failed = self._waiting.pop(record.request, (record, True))
        if record.final:
            self._end_request(cell, record, record.outcome, first_failed)
        else:
            self._waiting[record.request] = (record, first_failed)

    def _end_request(self, cell: Cell, record: Attempt, outcome: str, first_failed: bool) -> None:
        cell.outcomes[outcome] += 1
        if self._request_times:
            add_request(cell.requests, outcome, record.request_summary or _summary_of(record))
        if outcome == "completed":
            cell.recovered += first_failed
            cell.failed_first += first_failed
            cell.good += meets(record, self._slo)
        elif outcome != "abandoned":  # in no rate: the user left, whatever the gateway would have done
            cell.failed_first += first_failed
            cell.rejected += outcome == "http_error" and record.status in REJECTED

    def _add_clockwork(self, record: Attempt) -> None:
        clockwork = self.clockwork
        clockwork.events += record.events
        if record.uncertain_events and (record.uncertain_max_s or 0.0) > self._threshold_s:
            # The record keeps the widest bound only, so above the usual threshold this is an upper limit.
            clockwork.events_uncertain += record.uncertain_events
            clockwork.uncertain_max_s = max(clockwork.uncertain_max_s, record.uncertain_max_s or 0.0)
        if record.attempt == 1 and record.sent_at is not None:
            clockwork.started += 1
            # Opening the connection is the gateway's time, not the generator's.
            opening_s = (record.connect_s or 0.0) + (record.tls_s or 0.0)
            late_s = record.sent_at - record.scheduled_at - opening_s
            clockwork.started_late += late_s > self._threshold_s


def collect(records: Iterable[Attempt], evidence: Evidence) -> Evidence:
    """Add all *records* and close."""
    add = evidence.add
    for record in records:
        add(record)
    evidence.close()
    return evidence


def _summary_of(record: Attempt) -> RequestSummary:
    """Return the request as far as its last attempt tells, times from the planned start."""
    late_s = (record.sent_at or record.scheduled_at) - record.scheduled_at

    def seen(offset_s: float | None) -> float | None:
        return None if offset_s is None else offset_s + late_s

    return RequestSummary(
        record.attempt, record.outcome, None, seen(record.first_token_s), seen(record.first_content_s),
        record.end_s + late_s, 0, None,
    )  # fmt: skip

"""One cumulative aggregate per process: the driver tells it what happens, everybody else reads snapshots.

Plain Python on purpose: a counter here costs a dictionary look-up, and none of it is on the path of an
event (gaps come in slices). Counts never go back: a new run starts new series under its own name, and the
run before stays readable until the next one begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from harness.observe.buckets import Histogram
from harness.observe.counting import Vocabularies, count_attempt
from harness.observe.families import (
    ARRIVAL_LAG,
    ARRIVALS,
    CPU_RATIO,
    GENERATOR_LAG,
    GENERATOR_UNCERTAINTY,
    HUB_LAG,
    INTER_TOKEN,
    OPEN_SOCKETS,
    REQUESTS,
)
from harness.observe.labels import NONE, Labels
from harness.observe.live import OpenStream, open_streams
from harness.observe.snapshot import RUNS_KEPT, Snapshot, merge
from harness.observe.totals import Conservation, Health, LabelValues, Totals
from harness.stream.record import Attempt

__all__ = [
    "MIN_THRESHOLD_S",
    "Aggregate",
    "Conservation",
    "Labels",
    "OpenStream",
    "Snapshot",
    "merge",
]

# A run is judged by how many events, arrivals and waits were off by more than this (seconds), or by more than
# 5 % of the tightest latency limit among its gates if that is larger.
MIN_THRESHOLD_S = 0.005


class _Run:
    """A run's totals with what bounds and judges them."""

    __slots__ = ("folded", "gateway", "threshold_s", "totals", "words")

    def __init__(self, totals: Totals, threshold_s: float) -> None:
        self.totals = totals
        self.threshold_s = threshold_s
        self.words = Vocabularies()
        self.folded: dict[Labels, Labels] = {}
        self.gateway: str | None = None  # replaces the one that is named, once it is known better

    def fold(self, labels: Labels) -> Labels:
        """Return *labels* with a model that is one too many replaced by ``other``."""
        known = self.folded.get(labels)
        if known is None:
            known = labels._replace(model=self.words.models.fold(labels.model))
            if self.gateway is not None:
                known = known._replace(gateway=self.gateway)
            if known.model == labels.model:  # else a flood of models would fill this cache instead
                self.folded[labels] = known
        return known


class Aggregate:
    """The numbers of this process. `cpu_ratio` and `open_sockets` are set by whoever measures them."""

    def __init__(self, worker: str = "local") -> None:
        self.worker = worker
        self.cpu_ratio: float | None = None
        self.open_sockets: int | None = None
        self._runs: dict[str, _Run] = {}
        self._retired: set[str] = set()
        self._open: dict[int, tuple[Labels, OpenStream]] = {}
        self._process = {
            family.name: Histogram(family.bounds)
            for family in (GENERATOR_LAG, GENERATOR_UNCERTAINTY, HUB_LAG)
        }

    def begin_run(
        self, run: str, started_at: float = 0.0, time_scale: float = 1.0, threshold_s: float = MIN_THRESHOLD_S
    ) -> None:
        """Start the series of *run* and let go of those older than the previous one.

        *started_at* is Unix seconds, the same on all workers: it orders the runs when snapshots are merged.
        Beginning a run twice changes nothing.
        """
        if run in self._runs or run in self._retired:
            return
        self._runs[run] = _Run(Totals(run, started_at, time_scale), threshold_s)
        while len(self._runs) > RUNS_KEPT:
            oldest = next(iter(self._runs))
            del self._runs[oldest]
            self._retired.add(oldest)

    def rename_gateway(self, run: str, gateway: str) -> None:
        """Let all series of *run*, past and future, carry *gateway*: its first answer said who it is."""
        known = self._runs.get(run)
        if known is None:
            return
        known.gateway = gateway
        known.folded.clear()
        known.totals.rename_gateway(gateway)
        for key, (labels, session) in self._open.items():
            if labels.run == run:
                self._open[key] = labels._replace(gateway=gateway), session

    def request_started(self, labels: Labels) -> None:
        """Count a request that a user began."""
        if run := self._run(labels.run):
            run.totals.start(run.fold(labels), requests=1)

    def request_stopped(self, labels: Labels) -> None:
        """Count a request that the end of the run stopped between two attempts, as aborted."""
        if run := self._run(labels.run):
            run.totals.count(REQUESTS, (*run.fold(labels), "aborted", NONE))

    def attempt_started(self, labels: Labels, session: OpenStream) -> None:
        """Count an attempt and watch its session until `attempt_ended`."""
        if run := self._run(labels.run):
            labels = run.fold(labels)
            run.totals.start(labels, attempts=1)
            self._open[id(session)] = (labels, session)

    def gaps(self, labels: Labels, values: Sequence[float]) -> None:
        """Count a slice of the gaps (seconds) between output events of one stream."""
        if run := self._run(labels.run):
            run.totals.histogram(INTER_TOKEN, run.fold(labels)).add_many(values)

    def attempt_ended(self, labels: Labels, session: OpenStream, record: Attempt) -> None:
        """Count everything that *record* and its session say, but gaps; with `final` the request as well."""
        self._open.pop(id(session), None)
        self._process[GENERATOR_UNCERTAINTY.name].add_many(session.uncertainties)
        if run := self._run(labels.run):
            count_attempt(run.totals, run.words, run.fold(labels), session, record, run.threshold_s)

    def arrival(self, labels: Labels, started: bool, lag_s: float) -> None:
        """Count a planned start: begun *lag_s* seconds late, or dropped because no user was free."""
        run = self._run(labels.run)
        if run is None:
            return
        labels, health = run.fold(labels), run.totals.health
        run.totals.count(ARRIVALS, (*labels, "started" if started else "dropped"))
        health.arrivals += 1
        if started:
            run.totals.histogram(ARRIVAL_LAG, labels).add(lag_s)
            health.arrivals_late += lag_s > run.threshold_s
        else:
            health.arrivals_dropped += 1

    def read_lag(self, seconds: float) -> None:
        """Count how long the bytes of one read had waited in the kernel."""
        self._process[GENERATOR_LAG.name].add(seconds)

    def read_lags(self, values: Iterable[float]) -> None:
        """Count many read lags at once, which costs a fraction."""
        self._process[GENERATOR_LAG.name].add_many(values)

    def hub_lag(self, seconds: float) -> None:
        """Count how much later than asked the event loop came round; it belongs to the newest run."""
        self._process[HUB_LAG.name].add(seconds)
        if self._runs:
            run = next(reversed(self._runs.values()))
            run.totals.health.hub_waits += 1
            run.totals.health.hub_waits_late += seconds > run.threshold_s

    def open_sessions(self) -> list[tuple[Labels, OpenStream]]:
        """Return the sessions that are open now, with their labels."""
        return list(self._open.values())

    def snapshot(self, now: float) -> dict[str, Any]:
        """Return all numbers as plain data, open streams as they are at *now* (monotonic seconds)."""
        live = open_streams(list(self._open.values()), now)
        totals = [run.totals for run in self._runs.values()]
        for one in totals:
            one.open = {labels: streams for labels, streams in live.items() if labels.run == one.run}
        mine: LabelValues = (self.worker,)
        gauges = {
            family.name: {mine: float(value)}
            for family, value in ((CPU_RATIO, self.cpu_ratio), (OPEN_SOCKETS, self.open_sockets))
            if value is not None
        }
        return Snapshot(totals, {name: {mine: h} for name, h in self._process.items()}, gauges).to_plain()

    def conservation(self, run: str) -> Conservation:
        """Return what became of the attempts of *run* on this process, cheaply and at this moment."""
        known = self._runs.get(run)
        if known is None:
            return Conservation(0, 0, 0)
        numbers = known.totals.conservation()
        return numbers._replace(open=sum(labels.run == run for labels, _ in self._open.values()))

    def health(self, run: str) -> Health:
        """Return the counts behind the validity of *run* on this process, as they are at this moment."""
        known = self._runs.get(run)
        return Health() if known is None else replace(known.totals.health)

    def _run(self, name: str) -> _Run | None:
        """Return the run *name*, begun if it is new; None if it is so old that its numbers were let go."""
        if name not in self._runs:
            self.begin_run(name)
        return self._runs.get(name)

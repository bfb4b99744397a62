"""Many workers, one run: what the master knows of them, and how nothing is lost at the end.

The master keeps the last snapshot of each worker, of dead ones too. At a stop it first lets every worker
drain (finish or cut its streams, send what is left) and only then lets Locust stop them: Locust's own way
of stopping throws the last reports away.
"""

from __future__ import annotations

from locust.env import Environment
from locust.runners import MasterRunner

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gevent.event import Event

from harness.observe.snapshot import Snapshot, merge
from harness.observe.totals import Conservation
from harness.observe.watching import oldest
from harness.swarm.reporting import DRAIN, DRAINED, NEWS, RECORDS, SILENT_KEY, SNAPSHOT_KEY

logger = logging.getLogger("harness")

# Beyond the time that streams get to end: for the last messages to arrive.
DRAIN_SLACK_S = 5.0

# A snapshot this old says nothing of what is open now (a worker reports each second).
STALE_S = 6.0

# `missing`: three seconds without a heartbeat. `stopped`: Locust has forgotten it.
_GONE = ("missing", "stopped")

_STATES = ("ready", "spawning", "running", "missing")

Line = Mapping[str, Any]


@dataclass(slots=True)
class Report:
    """The last that a worker told, and when (monotonic seconds)."""

    snapshot: Mapping[str, Any]
    silent: list[dict[str, Any]]
    at: float


class MasterSide:
    """What the master knows of its workers. *take* gets their records, *news* what concerns the run."""

    def __init__(
        self,
        environment: Environment,
        runner: MasterRunner,
        take: Callable[[Line], None],
        news: Callable[[str, str, str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._environment = environment
        self._runner = runner
        self._take = take
        self._news = news
        self._clock = clock
        self._run = ""
        self._reports: dict[str, Report] = {}
        self._received: dict[str, int] = {}  # records of this run, by worker
        self._lost: dict[str, str] = {}  # workers that were missed during this run, and when it was noticed
        self._announced: set[str] = set()
        self._waiting: set[str] = set()
        self._changed = Event()
        self._drained_all = Event()
        self._drained_all.set()
        environment.events.worker_report.add_listener(self._reported)
        runner.register_message(RECORDS, self._records)
        runner.register_message(DRAINED, self._drained)
        runner.register_message(NEWS, self._heard)

    def begin_run(self, run: str) -> None:
        """Begin the books of *run*; of workers that are gone only the run before is still told."""
        for client_id, report in list(self._reports.items()):
            known = {totals["run"] for totals in report.snapshot["runs"]}
            if self._is_gone(client_id) and self._run not in known:
                del self._reports[client_id]
        self._run = run
        self._lost, self._announced, self._received = {}, set(), {}

    @property
    def ready(self) -> tuple[str, ...]:
        """The workers that take part in a run that starts now."""
        return tuple(client.id for client in self._runner.clients.all if client.state not in _GONE)

    def merged(self, own: Mapping[str, Any]) -> dict[str, Any]:
        """Return the sum of the master's *own* snapshot and the last one of every worker."""
        now = self._clock()
        snapshots: list[Mapping[str, Any]] = [own]
        ages: list[float | None] = [0.0]
        for client_id, report in self._reports.items():
            snapshots.append(report.snapshot)
            ages.append(None if self._is_gone(client_id) else now - report.at)
        return merge(snapshots, ages)

    def silent(self) -> list[dict[str, Any]]:
        """Return the streams of living workers that have gone longest without output, as last reported."""
        living = [report for client_id, report in self._reports.items() if not self._is_gone(client_id)]
        return oldest(stream for report in living for stream in report.silent)

    def states(self) -> dict[str, int]:
        """Return how many workers are in which state; who was lost and never came back is missing."""
        counts = dict.fromkeys(_STATES, 0)
        known = {client.id: client.state for client in self._runner.clients.all}
        for client_id in known.keys() | self._lost.keys():
            state = known.get(client_id, "missing")
            counts[state] = counts.get(state, 0) + 1
        return counts

    def table(self) -> list[dict[str, Any]]:
        """Return every worker that is known, or was lost in this run, as plain data."""
        known = {client.id: client for client in self._runner.clients.all}
        ages, rows = self.ages_s(), []
        for client_id in sorted(known.keys() | self._lost.keys(), key=self._runner.get_worker_index):
            client, name = known.get(client_id), self.name_of(client_id)
            rows.append(
                {
                    "name": name,
                    "state": "missing" if client is None else client.state,
                    "users": 0 if client is None else client.user_count,
                    "report_age_s": round(ages[name], 1) if name in ages else None,
                    "missed_at": self._lost.get(client_id),
                }
            )
        return rows

    def ages_s(self) -> dict[str, float]:
        """Return how long ago each worker reported."""
        now = self._clock()
        return {self.name_of(client_id): now - report.at for client_id, report in self._reports.items()}

    def name_of(self, client_id: str) -> str:
        """Return the short name that a worker's records and metrics carry."""
        return f"worker-{self._runner.get_worker_index(client_id)}"

    def watch(self) -> list[str]:
        """Return the workers that were found missing since the last watch; call each second of a run."""
        self._look()
        found = self._lost.keys() - self._announced
        self._announced |= found
        return sorted(self.name_of(client_id) for client_id in found)

    def lost(self) -> list[str]:
        """Return the workers that this run lost, each with when it was noticed and what went with it."""
        self._look()
        words = []
        for client_id, at in self._lost.items():
            records = max(0, self._numbers(client_id).started - self._received.get(client_id, 0))
            what = f"gone at {at}, {records:,} of its streams are lost"
            if not self._is_gone(client_id):
                what = f"hung at {at}"
            words.append(f"{self.name_of(client_id)} ({what})")
        return words

    def lost_streams(self) -> int:
        """Return how many streams were open in workers that are gone: they have no outcome."""
        gone = [client_id for client_id in self._reports if self._is_gone(client_id)]
        numbers = [self._numbers(client_id) for client_id in gone]
        return sum(one.started - one.ended for one in numbers)

    def drain(self) -> None:
        """Wait until every live worker has sent everything, at most as long as its streams may take."""
        if not self._drained_all.is_set():
            self._drained_all.wait()
            return
        self._waiting = set(self.ready)
        self._drained_all.clear()
        try:
            self._order(cut=False)
            deadline = self._clock() + self._environment.stop_timeout + DRAIN_SLACK_S
            while self._waiting and self._clock() < deadline:
                self._changed.clear()
                self._changed.wait(timeout=0.2)
                self._waiting = {client_id for client_id in self._waiting if not self._is_lost(client_id)}
            for client_id in self._waiting:
                logger.warning("%s did not finish draining in time", self.name_of(client_id))
        finally:
            self._waiting = set()
            self._drained_all.set()

    def cut(self) -> None:
        """Let the workers that are draining cut their streams now."""
        self._order(cut=True)

    def _order(self, *, cut: bool) -> None:
        for client_id in self.ready:
            self._runner.send_message(DRAIN, {"cut": cut}, client_id)

    def _look(self) -> None:
        for client in self._runner.clients.missing:
            self._lost.setdefault(client.id, time.strftime("%H:%M:%S"))

    def _numbers(self, client_id: str) -> Conservation:
        """Return a worker's last word on what became of its attempts."""
        report = self._reports.get(client_id)
        if report is None:
            return Conservation(0, 0, 0)
        return Snapshot.from_plain(report.snapshot).run(self._run).conservation()

    def _is_lost(self, client_id: str) -> bool:
        client = self._runner.clients.get(client_id)
        return client is None or client.state in _GONE

    def _is_gone(self, client_id: str) -> bool:
        """Whether a worker's last report says nothing of this moment any more."""
        report = self._reports.get(client_id)
        return self._is_lost(client_id) or report is None or self._clock() - report.at > STALE_S

    def _reported(self, client_id: str, data: dict[str, Any]) -> None:
        snapshot = data.get(SNAPSHOT_KEY)
        if snapshot is not None:
            self._reports[client_id] = Report(snapshot, data[SILENT_KEY], self._clock())

    def _records(self, environment: Environment, msg: Any, **_: Any) -> None:
        lines = msg.data["lines"]
        self._received[msg.node_id] = self._received.get(msg.node_id, 0) + len(lines)
        for line in lines:
            self._take(line)

    def _drained(self, environment: Environment, msg: Any, **_: Any) -> None:
        self._waiting.discard(msg.node_id)
        self._changed.set()

    def _heard(self, environment: Environment, msg: Any, **_: Any) -> None:
        self._news(msg.node_id, msg.data["what"], msg.data["why"])

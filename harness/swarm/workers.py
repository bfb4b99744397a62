"""Many workers, one run: snapshots and records travel to the master, and nothing is lost at the end.

Workers put their whole cumulative snapshot into each of Locust's reports, so that a lost report only
delays; the master keeps the last one of each, of dead ones too. Records go in batches of their own.
At a stop the master first lets every worker drain (finish or cut its streams, send what is left) and
only then lets Locust stop them: its own way of stopping throws the last reports away.
"""

from __future__ import annotations

from locust.env import Environment
from locust.runners import MasterRunner, WorkerRunner

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from gevent.event import Event

from harness.observe.snapshot import merge
from harness.stream import Attempt
from harness.stream.record import to_json

logger = logging.getLogger("harness")

REPORT_KEY = "harness"
RECORDS, DRAIN, DRAINED = "harness_records", "harness_drain", "harness_drained"

# Records of half a second, or this many, travel together.
BATCH = 500

# Beyond the time that streams get to end: for the last messages to arrive.
DRAIN_SLACK_S = 5.0

# A snapshot this old says nothing of what is open now (Locust reports every 3 s).
STALE_S = 9.0

# Locust calls a worker missing after three seconds without a heartbeat.
_GONE = ("missing", "stopped")

Line = Mapping[str, Any]


class WorkerSide:
    """The sink of records on a worker, and its part of the drain."""

    def __init__(
        self, environment: Environment, runner: WorkerRunner, snapshot: Callable[[], dict[str, Any]]
    ) -> None:
        self._environment = environment
        self._runner = runner
        self._snapshot = snapshot
        self._batch: list[Line] = []
        self._draining = False
        environment.events.report_to_master.add_listener(self._report)
        runner.register_message(DRAIN, self._drain, concurrent=True)

    def add(
        self,
        record: Attempt,
        timeline: Callable[[], dict[str, Any]],
        content: dict[str, Any] | None,
    ) -> None:
        """Take an ended attempt; its timeline travels only if there is something to explain."""
        worth = not record.success or record.stall is not None or bool(record.soft_stalls)
        self._batch.append(
            {
                "record": to_json(record).decode(),
                "timeline": timeline() if worth else None,
                "content": content,
            }
        )
        if len(self._batch) >= BATCH:
            self.flush()

    def flush(self) -> None:
        """Send what was taken since the last time."""
        batch, self._batch = self._batch, []
        if batch:
            self._runner.send_message(RECORDS, {"lines": batch})

    def close(self) -> None:
        """Send the rest."""
        self.flush()

    def _report(self, client_id: str, data: dict[str, Any]) -> None:
        data[REPORT_KEY] = self._snapshot()

    def _drain(self, environment: Environment, msg: Any, **_: Any) -> None:
        """Let open streams end in the time they have, cut the rest, and send everything."""
        if self._draining:
            return
        self._draining = True
        try:
            runner = self._runner
            if runner.spawning_greenlet is not None:
                runner.spawning_greenlet.kill(block=True)
            for greenlet in list(runner.user_greenlets):
                user = greenlet.args[0]
                if user._state != "stopping":
                    user.stop(force=False)
            runner.user_greenlets.join(timeout=environment.stop_timeout)
            runner.user_greenlets.kill(block=True)
            self.flush()
            runner._send_stats()
            runner.send_message(DRAINED, None)
        finally:
            self._draining = False


class MasterSide:
    """What the master knows of its workers."""

    def __init__(
        self,
        environment: Environment,
        runner: MasterRunner,
        take: Callable[[Line], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._environment = environment
        self._runner = runner
        self._take = take
        self._clock = clock
        self._reports: dict[str, tuple[dict[str, Any], float]] = {}
        self._waiting: set[str] = set()
        self._all_drained = Event()
        self.lost: dict[str, str] = {}  # workers that died or hung during the run, and when
        environment.events.worker_report.add_listener(self._reported)
        runner.register_message(RECORDS, self._records)
        runner.register_message(DRAINED, self._drained)

    def begin_run(self) -> None:
        """Forget who was lost in the run before."""
        self.lost = {}

    def merged(self, own: dict[str, Any]) -> dict[str, Any]:
        """Return the sum of the master's *own* snapshot and the last one of every worker."""
        now = self._clock()
        snapshots, ages = [own], [0.0]
        for client_id, (snapshot, at) in self._reports.items():
            gone = self.state_of(client_id) in _GONE or now - at > STALE_S
            snapshots.append(snapshot)
            ages.append(None if gone else now - at)  # type: ignore[arg-type]
        return merge(snapshots, ages)

    def states(self) -> dict[str, int]:
        """Return how many workers are in which state."""
        counts = dict.fromkeys(("ready", "spawning", "running", "missing"), 0)
        for client in self._runner.clients.all:
            counts[client.state] = counts.get(client.state, 0) + 1
        return counts

    def ages_s(self) -> dict[str, float]:
        """Return how long ago each worker reported."""
        now = self._clock()
        return {self.name_of(client_id): now - at for client_id, (_, at) in self._reports.items()}

    def name_of(self, client_id: str) -> str:
        """Return the short name that a worker's records and metrics carry."""
        return f"worker-{self._runner.get_worker_index(client_id)}"

    def state_of(self, client_id: str) -> str:
        """Return a worker's state as Locust sees it; `stopped` if it is not known any more."""
        client = self._runner.clients.get(client_id)
        return client.state if client is not None else "stopped"

    def dead(self) -> list[str]:
        """Return the workers that the run lost, with the time at which it was noticed."""
        self.watch()
        return [f"{name} (at {at})" for name, at in self.lost.items()]

    def watch(self) -> list[str]:
        """Return the workers that were found missing since the last look; call each second of a run."""
        found = []
        for client in self._runner.clients.missing:
            name = self.name_of(client.id)
            if name not in self.lost:
                self.lost[name] = time.strftime("%H:%M:%S")
                found.append(name)
        return found

    def drain(self) -> None:
        """Wait until every live worker has sent everything, at most as long as its streams may take."""
        live = {c.id for c in self._runner.clients.all if c.state in ("spawning", "running", "ready")}
        if not live or self._waiting:
            return
        self._waiting = live
        self._all_drained.clear()
        for client_id in live:
            self._runner.send_message(DRAIN, None, client_id)
        deadline = self._clock() + self._environment.stop_timeout + DRAIN_SLACK_S
        while self._waiting and self._clock() < deadline:
            self._waiting -= {c.id for c in self._runner.clients.missing}
            self._all_drained.wait(timeout=0.2)
        for client_id in self._waiting:
            logger.warning("%s did not finish draining in time", self.name_of(client_id))
        self._waiting = set()

    def _reported(self, client_id: str, data: dict[str, Any]) -> None:
        snapshot = data.get(REPORT_KEY)
        if snapshot is not None:
            self._reports[client_id] = (snapshot, self._clock())

    def _records(self, environment: Environment, msg: Any, **_: Any) -> None:
        for line in msg.data["lines"]:
            self._take(line)

    def _drained(self, environment: Environment, msg: Any, **_: Any) -> None:
        self._waiting.discard(msg.node_id)
        if not self._waiting:
            self._all_drained.set()

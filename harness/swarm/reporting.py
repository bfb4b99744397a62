"""What a worker tells its master: its numbers, its records, its silent streams, and that it is drained.

A report carries the whole cumulative snapshot, so that a lost one only delays, and the records that ended
since the last travel right before it: on the master the counts and the records of a worker always agree,
whenever it may die.
"""

from __future__ import annotations

import locust.runners
from locust.env import Environment
from locust.runners import WorkerRunner

import time
from collections.abc import Callable
from typing import Any

from harness.observe.aggregate import Aggregate
from harness.observe.watching import silent_streams
from harness.stream import Attempt
from harness.stream.record import to_json

SNAPSHOT_KEY, SILENT_KEY = "harness", "harness_silent"
RECORDS, DRAIN, DRAINED, NEWS = "harness_records", "harness_drain", "harness_drained", "harness_news"

# What a worker may find out that concerns the whole run.
OVER, SIMULATED = "over", "simulated"

# Records of one report, or this many, travel together.
BATCH = 500

# Locust reports every 3 s. A worker that is killed loses what it did since its last report.
REPORT_S = 1.0

# How long users that were killed may take to leave.
_LEAVE_S = 5.0


class WorkerSide:
    """The sink of records on a worker, its reports, and its part of the drain."""

    def __init__(self, environment: Environment, runner: WorkerRunner, aggregate: Aggregate) -> None:
        self._environment = environment
        self._runner = runner
        self._aggregate = aggregate
        self._batch: list[dict[str, Any]] = []
        self._draining = False
        environment.events.report_to_master.add_listener(self._report)
        runner.register_message(DRAIN, self._drain, concurrent=True)

    def open(self) -> None:
        """Report as often as the master has to know."""
        locust.runners.WORKER_REPORT_INTERVAL = REPORT_S  # read anew for each report

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
            self._flush()

    def report(self) -> None:
        """Send all that there is, now."""
        self._runner._send_stats()

    def tell(self, what: str, why: str = "") -> None:
        """Tell the master what concerns the whole run: `OVER` or `SIMULATED`."""
        self._runner.send_message(NEWS, {"what": what, "why": why})

    def _flush(self) -> None:
        batch, self._batch = self._batch, []
        if batch:
            self._runner.send_message(RECORDS, {"lines": batch})

    def _report(self, client_id: str, data: dict[str, Any]) -> None:
        now = time.monotonic()
        self._flush()
        data[SNAPSHOT_KEY] = self._aggregate.snapshot(now)
        data[SILENT_KEY] = silent_streams(self._aggregate.open_sessions(), now, self._aggregate.worker)

    def _drain(self, environment: Environment, msg: Any, **_: Any) -> None:
        """Let open streams end in the time they have, cut the rest, and send everything.

        A second order, to cut, lets the first one finish at once.
        """
        runner = self._runner
        if msg.data["cut"]:
            runner.user_greenlets.kill(block=True, timeout=_LEAVE_S)
        if self._draining:
            return
        self._draining = True
        try:
            if runner.spawning_greenlet is not None:
                runner.spawning_greenlet.kill(block=True)
            for greenlet in list(runner.user_greenlets):
                user = greenlet.args[0]
                if user._state != "stopping":
                    user.stop(force=False)
            runner.user_greenlets.join(timeout=environment.stop_timeout)
            runner.user_greenlets.kill(block=True, timeout=_LEAVE_S)
            # After its own stop Locust would sleep this long before the worker is ready for another run.
            environment.stop_timeout = 0.0
            self.report()
            runner.send_message(DRAINED, None)
        finally:
            self._draining = False

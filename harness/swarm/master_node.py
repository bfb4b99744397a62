"""The harness in a Locust master: one run over many workers, whose numbers and records come together here."""

from __future__ import annotations

from locust.env import Environment
from locust.runners import STATE_CLEANUP, STATE_RUNNING, STATE_SPAWNING, MasterRunner

import time
from dataclasses import replace
from typing import Any

import gevent

from harness.load.settings import UsageError
from harness.observe.snapshot import Snapshot
from harness.observe.state import Nodes, Observed
from harness.observe.totals import Health, Totals
from harness.swarm.children import end_children
from harness.swarm.ending import Losses
from harness.swarm.node import Node
from harness.swarm.orders import Orders
from harness.swarm.reporting import SIMULATED
from harness.swarm.saying import say
from harness.swarm.target import SIM
from harness.swarm.workers import Line, MasterSide
from harness.transport.hubclock import HubClock


class MasterNode(Node):
    """Drives no streams itself: it starts and ends runs, and keeps the books of all workers."""

    def __init__(self, environment: Environment, runner: MasterRunner) -> None:
        super().__init__(environment)
        self._runner = runner
        self.aggregate.worker = "master"
        self.workers = MasterSide(environment, runner, self._take, self._heard)
        self._over: set[str] = set()  # the workers whose part of the run is done
        self._starter: gevent.Greenlet[..., Any] | None = None
        self._housekeeper.each_second = self._watch

    def open(self) -> None:
        """As any node; how late this process is says nothing about the streams of others."""
        super().open()
        HubClock.of().on_delay = None

    def close(self) -> None:
        """As any node; then wait for workers that this process forked, and end those that hang."""
        super().close()
        if self.options.processes:
            end_children()

    def begin_run(self) -> None:
        """Start a run on all workers that are there."""
        self._starter = gevent.getcurrent()  # type: ignore[assignment]
        super().begin_run()
        assert self.run is not None
        settings = self.run.settings
        self._over = set()
        self.workers.begin_run(self.run.name)
        Orders(
            run=self.run.name,
            simulator_url=settings.base_url if self._classes.host() == SIM else None,
            simulated=settings.simulated,
            rate_per_user=settings.load.rate_per_user,
            tolerance_s=settings.tolerance_s,
            workers=self.workers.ready,
        ).give(self.options)

    def check_workers(self) -> None:
        """Raise `UsageError` if there is nobody to drive a run: Locust would say that all is well."""
        if not self.workers.ready:
            raise UsageError("no worker is connected: start some with --worker --master-host, or --processes")

    def observe(self) -> Observed:
        """Return all numbers as the workers told them last."""
        seen = super().observe()
        nodes = Nodes(seen.nodes.users, self.workers.states(), self.workers.ages_s())
        return Observed(self.workers.merged(seen.snapshot), seen.runs, nodes)

    def open_streams(self) -> int:
        """Return how many streams of the run were open when the workers last told."""
        return 0 if self.run is None else self._totals(self.run.name).conservation().open

    def silent(self) -> list[dict[str, Any]]:
        """Return the open streams of all workers that have gone longest without output."""
        return self.workers.silent()

    def workers_now(self) -> list[dict[str, Any]]:
        """Return every worker with its state, its users and the age of its last report."""
        return self.workers.table()

    def losses(self) -> Losses:
        """Return the workers that the run has lost so far."""
        return Losses(tuple(self.workers.lost()), self.workers.lost_streams())

    def drain_elsewhere(self) -> None:
        """Let every worker end its streams and send what it has; Locust's own end would throw it away."""
        if not self.is_on:
            return
        runner = self._runner
        starter = self._starter
        if runner.state == STATE_SPAWNING and starter is not None and starter is not gevent.getcurrent():
            starter.kill()  # it would go on to send users to workers that drain
        runner.update_state(STATE_CLEANUP)  # as in a process of its own: who stops now cuts
        self.workers.drain()

    def cut_elsewhere(self) -> None:
        """Let the workers cut what they still drain."""
        self.workers.cut()

    def _totals(self, run: str) -> Totals:
        return Snapshot.from_plain(self.workers.merged(self.aggregate.snapshot(time.monotonic()))).run(run)

    def _health(self) -> Health:
        assert self.run is not None
        return self._totals(self.run.name).health

    def _take(self, line: Line) -> None:
        """Keep what a worker sent."""
        if self.keeper is not None:
            self.keeper.take(line)

    def _heard(self, worker: str, what: str, why: str) -> None:
        """A worker found out what concerns the run."""
        if self.run is None or not self.is_on:
            return
        if what == SIMULATED:
            self.run.settings = replace(self.run.settings, simulated=True)
            self._turned_out_simulated()
            return
        self._over.add(worker)
        if self._over.issuperset(self.workers.ready):
            self.end_early(f"all {len(self._over)} workers are done: {why}")

    def _watch(self) -> None:
        """Each second: notice who is lost, and end a process that has nobody left."""
        if self.is_on:
            for name in self.workers.watch():
                say(f"{name} is lost: no sign of life for 3 s; what it had open has no outcome")
        elif self.run is not None and self.options.headless and not self.workers.ready and not self._is_busy:
            # Locust stops the run when its last worker is missed, and then waits for ever.
            gevent.spawn(self._runner.quit)

    @property
    def _is_busy(self) -> bool:
        return self._runner.state in (STATE_SPAWNING, STATE_RUNNING, STATE_CLEANUP)

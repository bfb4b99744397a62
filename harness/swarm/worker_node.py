"""The harness in a Locust worker: it drives streams and tells the master; the master keeps the books."""

from __future__ import annotations

from locust.env import Environment
from locust.runners import WorkerRunner

import sys
import time
from dataclasses import replace

from harness.load.run import Run
from harness.load.settings import Settings, UsageError
from harness.observe.aggregate import Aggregate
from harness.swarm.configure import settings_of
from harness.swarm.housekeeping import Housekeeper
from harness.swarm.node import USAGE_EXIT, Node, Orders
from harness.swarm.workers import WorkerSide
from harness.transport.hubclock import HubClock


class WorkerNode(Node):
    """Has no folder, exporter or simulator of its own, and takes what a run is from the master."""

    def __init__(self, environment: Environment, runner: WorkerRunner) -> None:
        super().__init__(environment)
        self.aggregate = Aggregate(f"worker-{runner.worker_index}")
        self._housekeeper = Housekeeper(self.aggregate)
        self._side = WorkerSide(environment, runner, lambda: self.aggregate.snapshot(time.monotonic()))

    def open(self) -> None:
        """Begin to look after this process; everything else is the master's."""
        HubClock.of().on_delay = self.aggregate.hub_lag
        self._housekeeper.start()
        self._housekeeper.keeper = self._side

    def check(self) -> Settings:
        """Return the settings of the run that the master starts; it has tried the gateway."""
        orders = Orders.of(self.options)
        settings = settings_of(
            self.options, self._classes.host(), orders.simulator_url, self._classes.built_in()
        )
        return replace(settings, simulated=orders.simulated)

    def begin_run(self) -> None:
        """Take part in the master's run."""
        try:
            settings = self.check()
        except UsageError as error:  # a file or a variable that this machine does not have
            print(f"harness: {self.aggregate.worker}: {error}", file=sys.stderr, flush=True)
            sys.exit(USAGE_EXIT)
        self.run = Run(Orders.of(self.options).run, settings, self.aggregate, self._side)
        self._classes.restore()
        self._classes.choose(settings, explicit=bool(self.options.protocols.strip()))

    def end_run(self) -> bool:
        """Send what is left; the master shows it."""
        self._side.flush()
        return False

    def close(self) -> None:
        """Stop looking after the process."""
        self._side.flush()
        self._housekeeper.stop()

"""The harness in a Locust worker: it drives streams and tells the master; the master keeps the books."""

from __future__ import annotations

from locust.env import Environment
from locust.runners import WorkerRunner

import sys

from harness.load.run import Run
from harness.load.settings import Settings, UsageError
from harness.swarm.children import Orphanage
from harness.swarm.configure import settings_of
from harness.swarm.node import USAGE_EXIT, Node
from harness.swarm.orders import Orders
from harness.swarm.reporting import OVER, SIMULATED, WorkerSide
from harness.swarm.saying import say
from harness.transport.hubclock import HubClock

# The users of each worker count from a number of their own: with the seed it decides what they ask.
_USERS_APART = 1_000_000


class WorkerNode(Node):
    """Has no folder, exporter or simulator of its own, and takes what a run is from the master."""

    def __init__(self, environment: Environment, runner: WorkerRunner) -> None:
        super().__init__(environment)
        self._runner = runner
        self.aggregate.worker = f"worker-{runner.worker_index}"
        self._side = WorkerSide(environment, runner, self.aggregate)
        self._orphanage = Orphanage(environment, runner)

    def open(self) -> None:
        """Begin to look after this process; everything else is the master's."""
        HubClock.of().on_delay = self.aggregate.hub_lag
        self._side.open()
        self._housekeeper.start()
        self._orphanage.start()

    @property
    def is_on(self) -> bool:
        """Never: it is the master that has a run, and that speaks of it."""
        return False

    def check(self) -> Settings:
        """Return the settings of the run that the master starts; it has tried the gateway."""
        orders = Orders.of(self.options)
        settings = settings_of(
            self.options, self._classes.host(), orders.simulator_url, self._classes.built_in()
        )
        return orders.apply(settings, self._runner.client_id)

    def begin_run(self) -> None:
        """Take part in the master's run; who was away for a moment goes on where it was."""
        orders = Orders.of(self.options)
        if self.run is not None and self.run.name == orders.run:
            return
        try:
            settings = self.check()
        except UsageError as error:  # a file or a variable that this machine does not have
            say(f"{self.aggregate.worker}: {error}")
            sys.exit(USAGE_EXIT)
        self.run = Run(
            orders.run,
            settings,
            self.aggregate,
            self._side,
            lambda: self._side.tell(SIMULATED),
            first_user=max(0, self._runner.worker_index) * _USERS_APART,
        )
        self.run.on_over = lambda why: self._side.tell(OVER, why)
        self._classes.restore()
        self._classes.choose(settings, explicit=bool(self.options.protocols.strip()))

    def end_run(self) -> bool:
        """Send what is left, also when this worker leaves alone; the master shows it."""
        self._side.report()
        return False

    def close(self) -> None:
        """Stop looking after the process."""
        self._housekeeper.stop()

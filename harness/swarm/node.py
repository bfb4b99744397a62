"""The harness in one Locust process: its numbers, its exporter, its simulator and the run that is on."""

from __future__ import annotations

from locust.env import Environment

import sys
import time
from argparse import Namespace
from dataclasses import replace
from typing import Any, NoReturn

import gevent

from harness import __version__
from harness.load.preflight import preflight
from harness.load.run import Run
from harness.load.settings import Settings, UsageError
from harness.observe.aggregate import Aggregate
from harness.observe.exporter import Exporter, ExporterError, serve
from harness.observe.history import METRICS, History
from harness.observe.results import CAPACITY, ResultsError
from harness.observe.state import Nodes, Observed, RunState
from harness.observe.totals import Health
from harness.observe.watching import silent_streams
from harness.swarm.classes import UserClasses
from harness.swarm.configure import settings_of, simulator_plan
from harness.swarm.costs import projected_cost
from harness.swarm.ending import Losses, finish_run
from harness.swarm.gating import Gating, gates_of, tolerance_of
from harness.swarm.housekeeping import Housekeeper
from harness.swarm.keeping import Keeper, check_results
from harness.swarm.loading import rate_of, users_for
from harness.swarm.saying import say
from harness.swarm.searching import CapacityShape, Watched
from harness.swarm.shaping import install_shape
from harness.swarm.simulator import Simulator
from harness.swarm.target import SIM
from harness.swarm.values import at_least, between, duration
from harness.transport.hubclock import HubClock

# What argparse uses for the same: the command line is wrong, nothing was tried.
USAGE_EXIT = 2

# What Locust itself changes at a start; none of it needs another look at the gateway.
_MOST_PORT = 65535

_LOCUSTS_OWN = frozenset({"num_users", "spawn_rate", "run_time", "host", "user_classes"})


class Node:
    """What `environment.harness` is. `run` is the run that is on, or was last."""

    def __init__(self, environment: Environment) -> None:
        assert environment.parsed_options is not None
        self.environment = environment
        self.options: Namespace = environment.parsed_options
        self.aggregate = Aggregate("local")
        self.simulator = Simulator()
        self.exporter: Exporter | None = None
        self.run: Run | None = None
        self.states: list[RunState] = []  # of this and the previous run
        self.keeper: Keeper | None = None
        self.summary: dict[str, Any] | None = None
        self.hurried = False  # who ends the process does not want to wait for a last scrape
        self.gating: Gating | None = None
        self._tolerance_s = 0.0
        self._stop_timeout = environment.stop_timeout
        self._classes = UserClasses(environment)
        self._checked: tuple[Settings, object] | None = None
        self._housekeeper = Housekeeper(self.aggregate, environment.stats)

    # The life of the process.

    def open(self) -> None:
        """Check every option, start what has to run, and try the gateway. Raises `UsageError`."""
        options = self.options
        starts_alone = options.headless or options.autostart
        host = self._classes.host()
        duration(options.metrics_linger, "--metrics-linger")
        between(options.metrics_port, 0, _MOST_PORT, "--metrics-port")
        at_least(options.num_users or 0, 0, "--users")
        if options.sim_truth and host != SIM and (host or starts_alone):
            raise UsageError("--sim-truth belongs to the simulated gateway: pass --host sim")
        gates = gates_of(options)
        if gates is not None:
            self.gating = Gating(self, gates)
            self._tolerance_s = tolerance_of(gates)
        if host or starts_alone:
            self._settings(host)
            self._offer_rate()
        if options.metrics_port:
            self._serve()
        if host == SIM:
            self._simulate()
        if starts_alone:
            self.check()
        HubClock.of().on_delay = self.aggregate.hub_lag
        self._housekeeper.start()

    def check(self) -> Settings:
        """Return the settings of a run that may start now, gateway tried. Raises `UsageError`."""
        host = self._classes.host()
        self._settings(host)  # before a simulator is started for what is wrong anyway
        settings = self._settings(host, self._simulate() if host == SIM else None)
        if not self.options.no_preflight:
            settings = preflight(settings, say)
        install_shape(self.environment, self.options, settings, Watched(self.open_streams, self._health))
        self._checked = settings, self._asked()
        self._choose_users(settings)  # Locust's master asks for the classes before it says that a test starts
        return settings

    def check_edit(self) -> None:
        """Check what would be wrong at the next start; the run that is on keeps what it began with."""
        self._settings(self._classes.host())

    def close(self) -> None:
        """Wait for a last scrape, then let go of port and simulator. Closing twice is harmless."""
        self._housekeeper.stop()
        if self.exporter is not None:
            exporter, self.exporter = self.exporter, None
            try:
                self._linger(exporter)
            except KeyboardInterrupt:
                pass  # they do not want to wait
            exporter.close()
        self.simulator.stop()

    # The life of a run.

    @property
    def is_on(self) -> bool:
        """Whether a run has begun and its books are not closed."""
        return self.run is not None and self.summary is None

    def begin_run(self) -> None:
        """Start a run: settings as they are now, a folder for its results, users by protocol."""
        if self.is_on:
            self._refuse("the last run is still draining its streams", stop=False)
        try:
            settings = self._settings_of_start()
            self.keeper = Keeper.open(self.options, settings)
        except (UsageError, ResultsError) as error:
            self._refuse(str(error))
        if cost := projected_cost(settings, self.options):
            say(cost)
        self.summary = None
        self.run = Run(self.keeper.run, settings, self.aggregate, self.keeper, self._turned_out_simulated)
        self.run.on_over = self.end_early
        if self.search is not None:
            self.keeper.watch = self.search.add
        if self.gating is not None:
            self.gating.begin_run()
        self._housekeeper.keeper = self.keeper
        self._choose_users(settings)
        self._drain_time(settings)
        state = RunState(
            run=self.run.name,
            gateway=settings.gateway,
            version=__version__,
            simulated=settings.simulated,
            started_at=self.run.epoch + self.run.started,
            time_scale=settings.time_scale,
            on_stall=settings.on_stall,
            threshold_s=settings.tolerance_s,
            limits=settings.profile.limits,
            keepalive=settings.profile.keepalive,
        )
        self.states = [*self.states, state][-2:]
        epoch = self.run.epoch
        self._housekeeper.history = History(
            self.keeper.folder.path / METRICS, state.run, self.observe, lambda: epoch + time.monotonic()
        )

    def end_run(self) -> bool:
        """All users have stopped: close the books of the run. Returns False if they were closed before."""
        if self.run is None or self.keeper is None or self.summary is not None:
            return False
        state = self.states[-1]
        state.ended_at = self.run.epoch + time.monotonic()
        self.summary = finish_run(
            self.keeper,
            state,
            self.observe().snapshot,
            self.losses(),
            tolerate=self.options.tolerate_worker_loss,
        )
        if self._housekeeper.history is not None:
            self._housekeeper.history.close()
        self._classes.restore()
        if self.search is not None:
            self._end_search(self.search, self.keeper)
        return True

    @property
    def search(self) -> CapacityShape | None:
        """The capacity search that drives the run, if one does."""
        shape = self.environment.shape_class
        return shape if isinstance(shape, CapacityShape) else None

    def open_streams(self) -> int:
        """Return how many streams of the run are open."""
        return 0 if self.run is None else self.aggregate.conservation(self.run.name).open

    def observe(self) -> Observed:
        """Return all numbers as they are now."""
        runner = self.environment.runner
        users = runner.user_count if runner is not None else 0
        if self.search is not None and self.states:
            self.states[-1].capacity_steps, self.states[-1].capacity_knee = self.search.gauges()
        return Observed(self.aggregate.snapshot(time.monotonic()), self.states, Nodes(users=users))

    def silent(self) -> list[dict[str, Any]]:
        """Return the open streams that have gone longest without output."""
        return silent_streams(self.aggregate.open_sessions(), time.monotonic(), self.aggregate.worker)

    def workers_now(self) -> list[dict[str, Any]]:
        """Return the workers of this process, if it has any, for the page."""
        return []

    def check_workers(self) -> None:
        """Raise `UsageError` if a run needs workers and there are none."""

    def losses(self) -> Losses:
        """Return the workers that the run has lost so far, and the streams that went with them."""
        return Losses()

    def drain_elsewhere(self) -> None:
        """Let other processes of the run end their streams; this one ends its own."""

    def cut_elsewhere(self) -> None:
        """Let the streams that other processes drain end now."""

    # Helpers of the above.

    def _choose_users(self, settings: Settings) -> None:
        self._classes.restore()
        self._classes.choose(settings, explicit=bool(self.options.protocols.strip()))

    def _offer_rate(self) -> None:
        """Let as many users start at once as ``--rate`` needs, where nobody said how many."""
        rate = rate_of(self.options.rate)
        if rate is not None and not self.options.num_users:
            self.options.num_users = users_for(rate, None)
        if rate is not None and not self.options.spawn_rate:
            self.options.spawn_rate = self.options.num_users

    def _settings(self, host: str | None, simulator_url: str | None = None) -> Settings:
        check_results(self.options.results)
        settings = settings_of(self.options, host, simulator_url, self._classes.built_in())
        return replace(settings, tolerance_s=max(settings.tolerance_s, self._tolerance_s))

    def _simulate(self) -> str:
        return self.simulator.ensure(simulator_plan(self.options))

    def _serve(self) -> None:
        try:
            self.exporter = serve(self.observe, self.options.metrics_host, self.options.metrics_port)
        except ExporterError as error:
            raise UsageError(str(error)) from None

    def _settings_of_start(self) -> Settings:
        """The settings that were just checked, if nothing has changed since; else check now."""
        checked, self._checked = self._checked, None
        return checked[0] if checked is not None and checked[1] == self._asked() else self.check()

    def _asked(self) -> object:
        """All that the check of a start depends on."""
        options = {k: v for k, v in vars(self.options).items() if k not in _LOCUSTS_OWN}
        return options, self._classes.host(), self._classes.built_in()

    def _refuse(self, message: str, *, stop: bool = True) -> NoReturn:
        """Nothing may run: say why, and end the greenlet in which Locust is about to spawn users."""
        say(message)
        runner = self.environment.runner
        if runner is None:
            sys.exit(USAGE_EXIT)
        if stop:
            self.run = None
            if self.options.headless:
                self.environment.process_exit_code = USAGE_EXIT
            gevent.spawn(runner.quit if self.options.headless else runner.stop)
        raise gevent.GreenletExit

    def _health(self) -> Health:
        """The counts of how well this process keeps up, so far in this run."""
        assert self.run is not None
        return self.aggregate.health(self.run.name)

    def _end_search(self, search: CapacityShape, keeper: Keeper) -> None:
        """Write what the search found, and let the process end with it."""
        try:
            keeper.folder.write_json(CAPACITY, search.to_plain())
        except ResultsError as error:
            say(str(error))
        self.environment.process_exit_code = search.exit_code

    def end_early(self, why: str) -> None:
        """Nothing more is to be asked: end the run as its run time would have."""
        say(f"{why}; the run ends")
        runner = self.environment.runner
        if runner is not None:
            gevent.spawn(runner.quit if self.options.headless else runner.stop)

    def _turned_out_simulated(self) -> None:
        """The first answer named a simulator: whatever was written down under the real name is corrected."""
        assert self.run is not None
        assert self.keeper is not None
        state, settings = self.states[-1], self.run.settings
        state.simulated, state.gateway = settings.simulated, settings.gateway
        self.keeper.call_simulated(settings.gateway)

    def _drain_time(self, settings: Settings) -> None:
        """Without ``--stop-timeout`` open streams get as long as a healthy one may be without progress.

        It is set for every run: who stops twice takes the time away from the run before.
        """
        limits = [settings.profile.limits_for(model).progress for model in settings.models.values()]
        longest_s = max((limit.fail_s or 0.0 for limit in limits), default=0.0)
        self.environment.stop_timeout = self._stop_timeout or longest_s

    def _linger(self, exporter: Exporter) -> None:
        """Keep the last values up until a scrape has seen them, or for as long as was asked."""
        if self.run is None:
            return
        ended = time.monotonic()
        deadline = ended + duration(self.options.metrics_linger, "--metrics-linger")
        told = False
        while not self.hurried and not exporter.scraped_after(ended) and time.monotonic() < deadline:
            if not told:
                told = True
                say(
                    f"metrics stay up for a last scrape, at most {self.options.metrics_linger}; "
                    "Ctrl-C ends this (--metrics-linger 0s: never)"
                )
            gevent.sleep(0.05)

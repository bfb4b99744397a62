"""The harness in one Locust process: its numbers, its exporter, its simulator and the run that is on."""

from __future__ import annotations

from locust.env import Environment
from locust.runners import WorkerRunner

import logging
import sys
import time
from argparse import Namespace
from pathlib import Path
from typing import Any

import gevent
import psutil

from harness import __version__
from harness.load.preflight import preflight
from harness.load.run import Run
from harness.load.settings import Settings, UsageError
from harness.load.users import PROTOCOL_USERS
from harness.observe.aggregate import Aggregate
from harness.observe.exporter import Exporter, ExporterError, serve
from harness.observe.results import ResultsError
from harness.observe.state import Nodes, Observed, RunState
from harness.swarm.configure import SIM, at_least, duration, settings_of, simulator_plan
from harness.swarm.ending import finish_run
from harness.swarm.keeping import Keeper
from harness.swarm.simulator import Simulator
from harness.transport.hubclock import HubClock

logger = logging.getLogger("harness")

HOUSEKEEPING_S = 1.0


class Node:
    """What `environment.harness` is. `run` is the run that is on, or was last."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        assert environment.parsed_options is not None
        self.options: Namespace = environment.parsed_options
        runner = environment.runner
        self.is_worker = isinstance(runner, WorkerRunner)
        self.aggregate = Aggregate(
            f"worker-{runner.worker_index}" if isinstance(runner, WorkerRunner) else "local"
        )
        self.simulator = Simulator()
        self.exporter: Exporter | None = None
        self.run: Run | None = None
        self.states: list[RunState] = []  # of this and the previous run
        self.keeper: Keeper | None = None
        self.summary: dict[str, Any] | None = None
        self.refused = False
        self._checked: tuple[Settings, float] | None = None
        self._process = psutil.Process()
        self._housekeeper: gevent.Greenlet[..., Any] | None = None

    # The life of the process.

    def open(self) -> None:
        """Check every option, start what has to run, and try the gateway. Raises `UsageError`."""
        options = self.options
        starts_alone = options.headless or options.autostart
        host = self._host()
        duration(options.metrics_linger, "--metrics-linger")
        at_least(options.metrics_port, 0, "--metrics-port")
        if not self.is_worker:
            if host or starts_alone:
                settings = settings_of(options, host)
                self._drain_time(settings)
            if options.metrics_port:
                self._serve()
            if host == SIM:
                self._simulate()
            if starts_alone:
                self.check()
        HubClock.of().on_delay = self.aggregate.hub_lag
        self._housekeeper = gevent.spawn(self._keep_house)

    def check(self) -> Settings:
        """Return the settings of a run that may start now, gateway tried. Raises `UsageError`."""
        host = self._host()
        url = self._simulate() if host == SIM else None
        settings = settings_of(self.options, host, url)
        if not self.options.no_preflight:
            settings = preflight(settings)
        self._checked = settings, time.monotonic()
        return settings

    def close(self) -> None:
        """Wait for a last scrape, then let go of port and simulator."""
        if self._housekeeper is not None:
            self._housekeeper.kill()
        if self.exporter is not None:
            self._linger(self.exporter)
            self.exporter.close()
        self.simulator.stop()

    # The life of a run.

    def begin_run(self) -> None:
        """Start a run: settings as they are now, a folder for its results, users by protocol."""
        try:
            settings = self._settings_of_start()
            self.keeper = Keeper.open(self.options, settings)
        except (UsageError, ResultsError) as error:
            self._refuse(str(error))
            return
        self.summary = None
        self.run = Run(self.keeper.run, settings, self.aggregate, self.keeper, self.aggregate.worker)
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
            limits=settings.profile.limits,
            keepalive=settings.profile.keepalive,
        )
        self.states = [*self.states, state][-2:]

    def end_run(self) -> None:
        """All users have stopped: close the books of the run. Later calls do nothing."""
        if self.run is None or self.keeper is None or self.summary is not None:
            return
        state = self.states[-1]
        state.simulated, state.gateway = self.run.settings.simulated, self.run.settings.gateway
        state.ended_at = self.run.epoch + time.monotonic()
        self.summary = finish_run(self.keeper, state, self.observe().snapshot)

    def observe(self) -> Observed:
        """Return all numbers as they are now."""
        runner = self.environment.runner
        users = runner.user_count if runner is not None else 0
        return Observed(self.aggregate.snapshot(time.monotonic()), self.states, Nodes(users=users))

    # Helpers of the above.

    def _host(self) -> str | None:
        """The host that was given, or the one that all user classes of an own locustfile agree on."""
        if self.environment.host:
            return self.environment.host
        own = {user.host for user in self.environment.user_classes if user.host}
        return own.pop() if len(own) == 1 else None

    def _simulate(self) -> str:
        return self.simulator.ensure(simulator_plan(self.options))

    def _serve(self) -> None:
        try:
            self.exporter = serve(self.observe, self.options.metrics_host, self.options.metrics_port)
        except ExporterError as error:
            raise UsageError(str(error)) from None

    def _settings_of_start(self) -> Settings:
        """The settings that were just checked, if nothing can have changed since; else check now."""
        checked, self._checked = self._checked, None
        return self.check() if checked is None else checked[0]

    def _refuse(self, message: str) -> None:
        """Nothing may run: say why, and stop what Locust is about to start."""
        self.refused = True
        self.run = None
        print(f"harness: {message}", file=sys.stderr, flush=True)
        for user_class in self.environment.user_classes:
            user_class.fixed_count = user_class.weight = 0
        runner = self.environment.runner
        if runner is not None:
            gevent.spawn_later(0.1, runner.quit if self.options.headless else runner.stop)

    def _choose_users(self, settings: Settings) -> None:
        """Let the built-in users share the load as ``--protocols`` says; other classes stay as they are."""
        classes = (
            list((self.environment.available_user_classes or {}).values()) or self.environment.user_classes
        )
        built_in = {user: protocol for protocol, user in PROTOCOL_USERS.items()}
        chosen = [
            c for c in self.environment.user_classes if c not in built_in or built_in[c] in settings.protocols
        ]
        for user_class in classes:
            if user_class in built_in:
                user_class.weight = settings.protocols.get(built_in[user_class], 0)
        if not chosen:  # the protocols were changed in the web UI after others were left out
            chosen = [c for c in classes if c in built_in and built_in[c] in settings.protocols]
        self.environment.user_classes = chosen

    def _drain_time(self, settings: Settings) -> None:
        """Without ``--stop-timeout`` open streams get as long as a healthy one may be without progress."""
        limit_s = settings.profile.limits.progress.fail_s
        if not self.options.stop_timeout and limit_s is not None:
            self.environment.stop_timeout = limit_s

    def _keep_house(self) -> None:
        """Each second: what was written reaches the disk, and the process looks at itself."""
        self._process.cpu_percent()
        while True:
            gevent.sleep(HOUSEKEEPING_S)
            self.aggregate.cpu_ratio = self._process.cpu_percent() / 100.0
            self.aggregate.open_sockets = count_sockets()
            if self.keeper is not None:
                self.keeper.flush()

    def _linger(self, exporter: Exporter) -> None:
        """Keep the last values up until a scrape has seen them, or nobody seems to scrape."""
        if self.run is None:
            return
        ended = time.monotonic()
        deadline = ended + duration(self.options.metrics_linger, "--metrics-linger")
        while time.monotonic() < deadline and not exporter.scraped_after(ended):
            gevent.sleep(0.05)


def count_sockets() -> int:
    """Return the number of sockets that this process has open; 0 where the system does not tell."""
    count = 0
    try:
        for entry in Path("/proc/self/fd").iterdir():
            try:
                count += str(entry.readlink()).startswith("socket:")
            except OSError:
                continue
    except OSError:
        return 0
    return count

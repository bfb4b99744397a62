"""Starts the simulated gateway for ``--host sim``, once per process, and ends it with the process."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from os import getpid

import gevent

from harness.load.settings import UsageError
from harness.swarm.configure import SimulatorPlan

_START_S = 20.0
_STOP_S = 5.0
_READY = re.compile(r"ready on (http://\S+)")


class Simulator:
    """The simulated gateway of this process: `ensure` it runs as planned, then `stop` it."""

    def __init__(self) -> None:
        self._plan: SimulatorPlan | None = None
        self._process: subprocess.Popen[str] | None = None
        self._url = ""

    def ensure(self, plan: SimulatorPlan) -> str:
        """Return the URL of a simulator that plays *plan*; one that plays another is replaced.

        Raises `UsageError` with the simulator's own words if it does not start.
        """
        if self._process is not None and self._process.poll() is None and plan == self._plan:
            return self._url
        self.stop()
        command = [
            sys.executable, "-m", "harness.sim", "--port", "0", "--parent", str(getpid()),
            "--gateway", plan.gateway, "--mix", plan.mix, "--seed", str(plan.seed),
            "--time-scale", repr(plan.time_scale),
        ]  # fmt: skip
        if plan.truth:
            command += ["--truth", plan.truth]
        # A session of its own: Ctrl-C in the terminal is for us, and streams still want to be drained.
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        self._plan = plan
        self._url = self._wait_ready(self._process)
        return self._url

    def stop(self) -> None:
        """End the simulator and wait until it is gone; its truth log is then complete."""
        process, self._process, self._plan = self._process, None, None
        if process is None:
            return
        if process.poll() is None:
            process.terminate()
            deadline = time.monotonic() + _STOP_S
            while process.poll() is None and time.monotonic() < deadline:
                gevent.sleep(0.02)
            if process.poll() is None:
                process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()

    def _wait_ready(self, process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        assert process.stderr is not None
        with gevent.Timeout(_START_S, False):  # type: ignore[arg-type]  # False: no exception, leave the block
            line = process.stdout.readline()
            found = _READY.search(line)
            if found:
                return found[1]
        if process.poll() is None:
            process.kill()
        words = (process.stderr.read() or "").strip().splitlines()
        self.stop()
        raise UsageError(_our_words(words[-1]) if words else "the simulated gateway did not start")


def _our_words(line: str) -> str:
    """Return the simulator's complaint with the names that its options have here."""
    line = line.removeprefix("harness sim: ")
    return re.sub(r"^--(mix|truth)\b", r"--sim-\1", line)

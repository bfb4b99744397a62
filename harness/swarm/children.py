"""No process outlives the one it belongs to: forked workers end with their master, whatever ended it."""

from __future__ import annotations

from locust.env import Environment
from locust.runners import WorkerRunner

import os
import socket
import time
from collections.abc import Callable

import gevent
import psutil

from harness.swarm.saying import say

_LOOK_S = 1.0

# How long forked workers may take to leave by themselves, and users of an orphan to let go.
_LEAVE_S = 3.0
_ORPHAN_S = 2.0

# The master answers each heartbeat, one a second. Silent this long it is looked after.
_SILENT_S = 4.0


def end_children() -> None:
    """Wait until the processes that this one forked are gone, and kill those that do not go.

    Locust takes a worker that is still alive off its list, and waits for one that is stopped for ever.
    """
    deadline = time.monotonic() + _LEAVE_S
    children = psutil.Process().children()
    while (left := [child for child in children if _lives(child)]) and time.monotonic() < deadline:
        gevent.sleep(0.05)
    for child in left:
        say(f"process {child.pid} did not end in time and is killed")
        child.kill()


def _lives(child: psutil.Process) -> bool:
    """Whether *child* runs. One that has ended does not, also before Locust has waited for it."""
    try:
        return bool(child.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


class Orphanage:
    """Ends a worker whose master is gone: streams that nobody counts must not go on."""

    def __init__(self, environment: Environment, runner: WorkerRunner) -> None:
        self._environment = environment
        self._runner = runner
        # A forked worker belongs to the process that forked it, whether that is the master or waits for it.
        self._parent = os.getppid() if environment.parsed_options.processes else None  # type: ignore[union-attr]
        self._exit: Callable[[int], None] = os._exit

    def start(self) -> None:
        """Look after the master each second."""
        gevent.spawn(self._look)

    def _look(self) -> None:
        while self.has_master():
            gevent.sleep(_LOOK_S)
        name = f"worker-{self._runner.worker_index}"
        say(f"{name}: the master is gone, so this worker ends")
        self._environment.stop_timeout = 0.0
        gevent.spawn(self._runner.quit)
        gevent.sleep(_ORPHAN_S)
        # What is left to send has no receiver, and waiting for one can last for ever.
        self._exit(1)

    def has_master(self) -> bool:
        """Whether the master is there, as far as can be known; a busy one is."""
        if self._parent is not None and os.getppid() != self._parent:
            return False
        heard = self._runner.last_heartbeat_timestamp
        if heard is None or time.time() - heard < _SILENT_S:
            return True
        return _answers(self._runner.master_host, self._runner.master_port)


def _answers(host: str, port: int) -> bool:
    """Whether something listens there. Only a refusal says no: a network that is down may come back."""
    try:
        socket.create_connection((host, port), timeout=_ORPHAN_S).close()
    except ConnectionRefusedError:
        return False
    except OSError:
        return True
    return True

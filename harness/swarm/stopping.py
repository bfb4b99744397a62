"""How a run is stopped: its open streams are drained first; who asks again cuts them at once.

A run may be stopped by its run time, the web UI, Ctrl-C or SIGTERM, and one of them may come while
another is draining. Locust itself would then drain twice, or fail with a traceback.
"""

from __future__ import annotations

from locust.runners import STATE_CLEANUP, STATE_RUNNING, STATE_SPAWNING

import signal
from typing import NoReturn

import gevent

from harness.swarm.node import Node
from harness.swarm.saying import say

# How long users that were killed may take to leave before the process ends without them.
_LEAVE_S = 5.0


class Stopping:
    """Stops the runs of *node*, and knows who began to end the process."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._announced: str | None = None  # the run whose draining was announced
        self._is_leaving = False

    def announce(self) -> None:
        """Say that open streams are drained, once per run."""
        node, open_streams = self._node, self._node.open_streams()
        if node.run is None or not node.is_on or not open_streams or self._announced == node.run.name:
            return
        self._announced = node.run.name
        limit_s = node.environment.stop_timeout
        if limit_s:
            say(f"draining {_streams(open_streams)}, up to {limit_s:g} s; Ctrl-C or Stop again cuts them")

    def cut(self) -> None:
        """End every open stream now; whoever is draining goes on at once."""
        node, runner = self._node, self._node.environment.runner
        node.environment.stop_timeout = 0.0
        node.cut_elsewhere()
        if runner is not None:
            if node.is_on and (open_streams := node.open_streams()):
                say(f"cutting {_streams(open_streams)}")
            # Until they are gone: their records are made on the way out, and Locust would not wait for them.
            try:
                runner.user_greenlets.kill(block=True, timeout=_LEAVE_S)
            except KeyboardInterrupt:
                pass  # they are dying already

    def leave(self) -> None:
        """Stop and drain because the process is to end, before Locust reads its exit code.

        Whoever comes second only makes the first one hurry, and waits for it to end the process.
        """
        runner = self._node.environment.runner
        assert runner is not None
        if self._is_leaving:
            self._node.hurried = True
            self.cut()
            _wait_for_the_end()
        self._is_leaving = True
        if runner.state == STATE_CLEANUP:  # another one drains: the end of the run time, or the web UI
            self.cut()
            with gevent.Timeout(_LEAVE_S, False):  # type: ignore[arg-type]  # False: no exception
                while runner.state == STATE_CLEANUP:
                    gevent.sleep(0.01)
        while runner.state in (STATE_SPAWNING, STATE_RUNNING, STATE_CLEANUP):
            try:
                runner.stop()
            except KeyboardInterrupt:
                self.cut()


def take_interrupts() -> None:
    """Let Ctrl-C reach the main greenlet and nothing else.

    Python raises `KeyboardInterrupt` between any two instructions of whoever is running: a user that
    has counted a stream as started, and not yet begun to read it.
    """

    hub = gevent.get_hub()
    # Raised here it would reach the main greenlet too, but with a traceback on the console.
    gevent.signal_handler(
        signal.SIGINT, lambda: hub.handle_system_error(KeyboardInterrupt, KeyboardInterrupt())
    )


def _wait_for_the_end() -> NoReturn:
    while True:
        try:
            gevent.sleep(3600)
        except KeyboardInterrupt:
            continue


def _streams(number: int) -> str:
    return f"{number} open stream{'' if number == 1 else 's'}"

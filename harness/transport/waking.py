"""Wakes the greenlets whose exchanges have ended, a few between two polls of the hub.

A greenlet that wakes makes its record and writes its next request, half a millisecond in all. When many
streams end together, gevent would run fifty of them before it looks at the sockets again: all that time
tokens wait, and those that wait long enough are merged by the kernel and lose their times. A request that
begins a little later loses nothing: its time starts when it is written.
"""

from __future__ import annotations

from collections import deque
from time import monotonic
from weakref import WeakKeyDictionary

from gevent.hub import Hub, Waiter

# How long greenlets may run between two polls, checked after each.
TURN_S = 1e-3
# After the reads of the same poll.
_LAST = -1


class Waker:
    """The queue of one hub. Get it with `Waker.of`."""

    __slots__ = ("__weakref__", "_armed", "_timer", "_waiting")

    def __init__(self, hub: Hub) -> None:
        self._waiting: deque[Waiter[None]] = deque()
        self._timer = hub.loop.timer(0.0, priority=_LAST)
        self._armed = False

    @staticmethod
    def of(hub: Hub) -> Waker:
        """Return the waker of *hub*, made at the first call."""
        waker = _wakers.get(hub)
        if waker is None:
            waker = _wakers[hub] = Waker(hub)
        return waker

    def wake(self, waiter: Waiter[None]) -> None:
        """Let who waits for *waiter* go on, in its turn, and not before the hub has polled."""
        self._waiting.append(waiter)
        self._arm()

    def _arm(self) -> None:
        # A timer of no time rings after the next poll; a callback of the loop would run before it.
        if not self._armed:
            self._armed = True
            self._timer.start(self._turn)

    def _turn(self) -> None:
        self._armed = False
        self._timer.stop()
        until = monotonic() + TURN_S
        waiting = self._waiting
        try:
            while waiting:
                waiting.popleft().switch(None)
                if monotonic() >= until:
                    break
        finally:
            if waiting:
                self._arm()


_wakers: WeakKeyDictionary[Hub, Waker] = WeakKeyDictionary()

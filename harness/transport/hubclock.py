"""When the hub polled, and what that proves about sockets.

A read that comes late returns several events at once, with the arrival time of the last. How early the
others may have arrived is bounded by the last moment at which the socket is known to have been empty.
Besides the socket's own previous read there are two such moments, the same for all sockets of a hub:

* a poll that returned without naming the socket found it empty;
* a poll that *slept* found every socket empty until it woke, since data would have woken it.

`HubClock.empty_at` is the later of the two, as a lower bound, for the reads that follow the present poll.

Two watchers take the times. libev runs watchers of one kind by priority, and gevent runs its ready
greenlets from a `prepare` watcher of its own (priority 0): ours has the lowest, so it sees the moment
after all greenlets and just before the poll. The `check` watcher has the highest priority, so it runs
before any read. (libuv runs reads before its check watchers; there the bound stays at zero and sockets
have their own reads alone.)

What could make the bound too late, and what is done about it:

* The process slept, was woken, and got no processor for a while (a busy machine, a container's quota). The
  kernel accounts that wait as run delay; it is subtracted.
* The poll did not sleep but was preempted, which looks like sleep: the same account tells.
* More sockets were ready than one poll returns: the poll proves nothing about the rest. The bound then
  stays where it was.
* The process was stopped or frozen: no account of that exists. So a timer of ours wakes the hub at short
  intervals; a poll that lasted longer was not asleep all the time, and proves nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from gevent.hub import Hub, get_hub

from harness.transport.stamps import StampClock, keep_warm

if TYPE_CHECKING:
    from gevent._types import _Watcher

# libev's bounds of priority.
_LOWEST, _HIGHEST = -2, 2
# A shorter poll is taken as one that did not sleep: its bound is at most this much too early.
_SLEPT_S = 1e-3
# From the wake-up to the first line of Python, on an idle machine.
_WAKE_SLACK_S = 0.5e-3
# libev's first array of epoll events; it doubles whenever a poll fills it.
_EPOLL_EVENTS = 64
# Descriptors other than ours that may be ready in the same poll (web UI, message queue, thread pool).
_OTHERS = 8
# The longest sleep: short enough that a stop within one does little harm, long enough to cost nothing.
_BEAT_S = 0.05
_BEAT_SLACK_S = 0.01  # timers round up to milliseconds
_REPORT_S = 0.1
_MAX_REPORTS = 100


class HubClock:
    """The polling times of one hub. Make it with `HubClock.of`."""

    __slots__ = (
        "__weakref__", "_beat", "_capacity", "_check", "_entered", "_known", "_monotonic", "_prepare",
        "_reads_seen", "_report_at", "_returned", "_run_delay", "_worst", "empty_at", "on_delay", "reads",
        "stamps",
    )  # fmt: skip

    def __init__(self, hub: Hub, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.stamps = StampClock()
        self.empty_at = 0.0
        self.reads = 0  # counted by the readers; a poll's share of it tells a crowded poll
        self.on_delay: Callable[[float], None] | None = None
        self._monotonic = monotonic
        self._run_delay = RunDelay()
        self._capacity = _EPOLL_EVENTS
        self._entered = self._returned = self._known = monotonic()
        self._reads_seen = 0
        self._worst = 0.0
        self._report_at = self._returned + _REPORT_S
        self._prepare: _Watcher | None = None
        self._check: _Watcher | None = None
        self._beat: _Watcher | None = None
        if type(hub.loop).__module__ == "gevent.libev.corecext":
            # Without a reference of their own: they must not keep a loop alive that has nothing to wait for.
            self._prepare = hub.loop.prepare(ref=False, priority=_LOWEST)
            self._check = hub.loop.check(ref=False, priority=_HIGHEST)
            self._prepare.start(self._before_poll)
            self._check.start(self._after_poll)
            self._beat = hub.loop.timer(_BEAT_S, _BEAT_S, ref=False)
            self._beat.start(_nothing)

    @staticmethod
    def of(hub: Hub | None = None) -> HubClock:
        """Return the clock of *hub* (default: the calling thread's), made at the first call."""
        hub = hub or get_hub()
        clock = _clocks.get(hub)
        if clock is None:
            keep_warm()
            clock = _clocks[hub] = HubClock(hub)
        return clock

    def _before_poll(self) -> None:
        now = self._entered = self._monotonic()
        busy = now - self._returned
        if busy > self._worst:
            self._worst = busy
        if busy > _SLEPT_S:
            # What was waited until here must not be counted against the coming poll. After a short
            # turn the old mark will do: the bound then errs towards caution, by no more than that turn.
            self._run_delay.mark()

    def _after_poll(self) -> None:
        now = self._monotonic()
        entered = self._entered
        ready, self._reads_seen = self.reads - self._reads_seen, self.reads
        woke = 0.0
        if now - entered > _SLEPT_S:
            woke = now - self._run_delay.since_mark() - _WAKE_SLACK_S
        if entered < woke < entered + _BEAT_S + _BEAT_SLACK_S:
            self.empty_at = self._known = woke
        else:
            if ready < self._capacity - _OTHERS:
                self.empty_at = self._known
            elif ready >= self._capacity:
                self._capacity *= 2
            self._known = entered
        self._returned = now
        if now >= self._report_at:
            self._report(now)

    def _report(self, now: float) -> None:
        """Hand on the longest turn between two polls, once for each window that it filled."""
        worst, self._worst = self._worst, 0.0
        self._report_at = now + _REPORT_S
        if self.on_delay is not None:
            for _ in range(min(max(1, int(worst / _REPORT_S)), _MAX_REPORTS)):
                self.on_delay(worst)


class RunDelay:
    """How long the calling thread has been ready to run without a processor, from the kernel's account."""

    __slots__ = ("_fd", "_mark_ns", "_pid")

    def __init__(self) -> None:
        self._fd = -1
        self._pid = -1
        self._mark_ns = 0
        self.mark()

    def mark(self) -> None:
        """Begin to count anew."""
        self._mark_ns = self._total_ns()

    def since_mark(self) -> float:
        """Return the seconds waited since the last mark, and begin anew. 0.0 where there is no account."""
        before, self._mark_ns = self._mark_ns, self._total_ns()
        return (self._mark_ns - before) * 1e-9

    def close(self) -> None:
        """Give the descriptor back."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    __del__ = close

    def _total_ns(self) -> int:
        try:
            if self._pid != os.getpid():
                # In a forked process the descriptor still names the parent's thread.
                self.close()
                self._pid = os.getpid()
                self._fd = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
            if self._fd < 0:
                return 0
            return int(os.pread(self._fd, 96, 0).split()[1])
        except (OSError, ValueError, IndexError):
            return 0


def _nothing() -> None:
    """Being called is all that the timer is for."""


_clocks: WeakKeyDictionary[Hub, HubClock] = WeakKeyDictionary()

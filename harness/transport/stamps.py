"""Kernel receive stamps, and their translation into monotonic time.

On Linux the kernel notes the wall-clock time at which each segment came in. A reader that wakes late
can thus still say when the bytes arrived. Wall clocks jump; a stamp that a jump may have touched is
refused, and the caller falls back to its own time.
"""

from __future__ import annotations

import socket
import struct
import sys
import time
from collections.abc import Callable
from typing import Protocol

import gevent.monkey

# Neither is in the socket module. 35 is the value on every Linux but sparc, parisc and alpha.
_SO_TIMESTAMPNS = 35
_TIMESPEC = struct.Struct("@ll")
ANCILLARY_SIZE = socket.CMSG_SPACE(_TIMESPEC.size)

# How far the distance between the clocks, and so a stamp, may be off.
_SKEW_S = 50e-6
# The distance between the clocks is constant but for steps of the wall clock, and looks too large by the time
# that passes between the looks at the two. So the smallest seen is kept, with a small leak upwards to follow
# steps too small to tell; a larger change is a step.
_STEP_S = 1e-3
_LEAK = 0.01

# The unpatched class: its methods never wait, whether or not gevent has patched the standard library.
raw_socket: type[socket.socket] = gevent.monkey.get_original("socket", "socket")


class HasSockopt(Protocol):
    """A socket, as far as its options are concerned."""

    def setsockopt(self, level: int, option: int, value: int, /) -> None:
        """Set an integer option."""


def enable(sock: HasSockopt) -> bool:
    """Ask for receive stamps on *sock*; return whether the system has them."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    except OSError:
        return False
    return True


_warm: list[int] = []


def keep_warm() -> None:
    """Hold one idle socket with stamps for the life of the process.

    The kernel begins to stamp only once some socket has asked, and a little after that: without
    this, the first reads of a process would come without a stamp.
    """
    if not _warm:
        sock = raw_socket(socket.AF_INET, socket.SOCK_DGRAM)
        enable(sock)
        _warm.append(sock.detach())  # the bare descriptor: nobody closes it


class StampClock:
    """Translates stamps into monotonic seconds for one reader of sockets.

    *monotonic* and *realtime* are the two clocks, in seconds. `unstamped` counts the reads for which
    the caller had to use its own time.
    """

    __slots__ = ("_offset", "_steady_since", "monotonic", "realtime", "unstamped")

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic, realtime: Callable[[], float] = time.time
    ) -> None:
        self.monotonic = monotonic
        self.realtime = realtime
        self.unstamped = 0
        self._steady_since = monotonic()
        self._offset = realtime() - self._steady_since

    def arrival(self, ancillary: list[tuple[int, int, bytes]], low: float, now: float) -> float | None:
        """Return when the last byte of a read arrived, or None if its stamp cannot be used.

        *low* is when the byte before it arrived, *now* the moment after the read.
        The result lies between them. No usable stamp: missing, outside the two, or older than a
        step of the wall clock.
        """
        drift = self.realtime() - now - self._offset
        if drift < 0.0 or drift > _STEP_S:
            self._look_again(drift, now)
        else:
            self._offset += drift * _LEAK
        if ancillary:
            seconds, nanoseconds = _TIMESPEC.unpack(ancillary[0][2])
            t: float = seconds + nanoseconds * 1e-9 - self._offset
            if t < low:
                if t >= low - _SKEW_S and low > self._steady_since:
                    return low
            elif t <= now:
                if t > self._steady_since:
                    return t
            elif t <= now + _SKEW_S and now > self._steady_since:
                return now
        self.unstamped += 1
        return None

    def _look_again(self, drift: float, now: float) -> None:
        """Take a new distance, after finding out whether the wall clock was stepped.

        A process that loses its processor between the looks at the two clocks sees the same as after a step;
        but not twice, and the second time it is back at the old distance.
        """
        if drift > -_STEP_S:
            if drift < 0.0:
                self._offset += drift
                return
            now = self.monotonic()
            drift = self.realtime() - now - self._offset
            if drift < _STEP_S:
                return
        self._offset += drift
        self._steady_since = now

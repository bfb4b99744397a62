"""One open connection: timed reads, writes that never wait, and whether it may be used again."""

from __future__ import annotations

import socket
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

from gevent.hub import Hub

from harness.transport.hubclock import HubClock
from harness.transport.stamps import ANCILLARY_SIZE
from harness.transport.tls import TlsChannel, TlsError

if TYPE_CHECKING:
    from gevent._types import _IoWatcher

READ_SIZE = 65536
_READ, _WRITE = 1, 2
# Of the sockets that one poll finds readable, those of a higher priority are read first.
_ORDINARY, _FIRST = 0, 1
# A stamp this much older than the bound shows that the bound is wrong (see hubclock).
_CONTRADICTION_S = 5e-3


class Connection:
    """A connected non-blocking socket, with or without TLS.

    After a `receive` that returned bytes: `t` is when the last of them arrived, `earliest` a moment
    before which none of them did, `stamped` whether `t` is the kernel's; `lag_s` is the longest time that
    bytes waited to be read since `open_for` (negative before any were).
    After one that returned `b""` (the end): `fault` says what broke, or is empty, and `clean` is
    whether the peer ended it in order, `refused` whether TLS failed only now. `at_end`: the bytes just
    returned were the last.
    """

    __slots__ = (
        "_drained", "_empty_at", "_hub_clock", "_reader", "_sock", "_tls", "_unsent",
        "_writer", "at_end", "clean", "earliest", "fault", "hub", "kernel_clock", "lag_s", "peer", "refused",
        "stamped", "t",
    )  # fmt: skip

    def __init__(
        self, hub: Hub, sock: socket.socket, tls: TlsChannel | None, peer: str, stamps: bool
    ) -> None:
        self.hub = hub
        self.peer = peer
        self.kernel_clock = stamps
        self.fault = ""
        self.clean = False
        self.at_end = False
        self.refused = False
        self.stamped = True
        self.lag_s = -1.0
        self._sock = sock
        self._tls = tls
        self._hub_clock = HubClock.of(hub)
        self._unsent = memoryview(b"")
        self._writer: _IoWatcher | None = None
        self._reader: _IoWatcher | None = hub.loop.io(sock.fileno(), _READ)
        self.t = self.earliest = self._empty_at = monotonic()
        self._drained = True

    def open_for(self, on_readable: Callable[[], None]) -> None:
        """Call *on_readable* (from the hub) whenever there is something to receive.

        Before other connections, until `calm`: the moments of an answer's beginning are worth most, and of
        bytes that wait too long the kernel keeps only the last one's.
        """
        assert self._reader is not None
        self.t = self._empty_at = monotonic()
        self._drained = True
        self.lag_s = -1.0
        self._listen(self._reader, on_readable, _FIRST)

    def calm(self, on_readable: Callable[[], None]) -> None:
        """Be read in turn with the others from now on."""
        if self._reader is not None:
            self._reader.stop()  # the priority of a watcher that runs cannot be changed
            self._listen(self._reader, on_readable, _ORDINARY)

    def rest(self) -> None:
        """Stop calling back; the connection stays open."""
        if self._reader is not None:
            self._reader.stop()

    def receive(self) -> bytes | None:
        """Read once. Return the bytes, `b""` at the end, or None when there is nothing to have now.

        With TLS, None may also mean that a record is not whole yet.
        """
        before = monotonic()
        try:
            data, ancillary, _, _ = self._sock.recvmsg(READ_SIZE, ANCILLARY_SIZE)
        except (BlockingIOError, InterruptedError):
            self._empty_at = before
            self._drained = True
            return None
        except OSError as error:
            return self._ended((error.strerror or str(error)).lower())
        now = monotonic()
        if not data:
            return self._ended("")

        clock = self._hub_clock
        clock.reads += 1
        t = clock.stamps.arrival(ancillary, self.t, now)
        self.stamped = t is not None
        earliest = clock.empty_at
        if earliest < self._empty_at or not self._drained:
            earliest = self._empty_at
        if t is None:
            t = now
        elif earliest > t:
            earliest = self.t if earliest > t + _CONTRADICTION_S else t
        self.t = t
        self.earliest = earliest
        lag_s = now - t
        if lag_s > self.lag_s:
            self.lag_s = lag_s
        if len(data) == READ_SIZE:
            self._drained = False  # more may be waiting, so neither this read nor a poll proves anything
        else:
            self._drained = True
            self._empty_at = before
        if self._tls is not None:
            return self._decrypt(data)
        return data

    def send(self, data: bytes) -> None:
        """Write all of *data*, now or as the peer takes it. A broken connection shows when reading."""
        self._unsent = memoryview(data if self._tls is None else self._tls.encrypt(data))
        self._write()

    @property
    def all_sent(self) -> bool:
        """Whether everything given to `send` has been handed to the kernel."""
        return not self._unsent

    def is_usable(self) -> bool:
        """Return whether a resting connection is still open and silent, as it must be before a request."""
        if self.receive() is not None:
            return False
        return self._tls is None or not self._tls.ended

    def close(self) -> None:
        """Close at once; no end-of-stream is negotiated. May be called again."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.stop()
            reader.close()
        self._stop_writing()
        self._unsent = memoryview(b"")
        self._sock.close()

    @staticmethod
    def _listen(reader: _IoWatcher, on_readable: Callable[[], None], priority: int) -> None:
        reader.priority = priority  # type: ignore[attr-defined] # gevent's stubs leave it out
        reader.start(on_readable)

    def _ended(self, fault: str) -> bytes:
        self.t = self.earliest = monotonic()
        self.fault = fault
        self.clean = not fault and (self._tls is None or self._tls.ended)
        if not self.clean and not fault:
            self.fault = "TLS connection closed without close_notify"
        return b""

    def _decrypt(self, data: bytes) -> bytes | None:
        tls = self._tls
        assert tls is not None
        try:
            plain = tls.decrypt(data)
        except TlsError as error:
            self.refused = error.refused
            return self._ended(str(error))
        if tls.has_output and self.all_sent:
            self.send(b"")  # a key update asks for an answer
        if not tls.ended:
            return plain or None
        if not plain:
            return self._ended("")
        self.at_end = self.clean = True
        return plain

    def _write(self) -> None:
        try:
            self._unsent = self._unsent[self._sock.send(self._unsent) :] if self._unsent else self._unsent
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            # The peer has gone. What it still said can be read, and after it how it went.
            self._unsent = memoryview(b"")
        if not self._unsent:
            self._stop_writing()
        elif self._writer is None:
            self._writer = self.hub.loop.io(self._sock.fileno(), _WRITE)
            self._writer.start(self._write)

    def _stop_writing(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.stop()
            writer.close()

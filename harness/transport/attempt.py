"""One attempt from its first packet to its end: opens or reuses a connection, then waits for the exchange."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import NamedTuple, Protocol

import httpx
from gevent.hub import Hub, Waiter, get_hub, getcurrent
from greenlet import greenlet

from harness.stream.outcome import EndReason
from harness.transport.connection import Connection
from harness.transport.dial import DialError, dial
from harness.transport.exchange import Exchange
from harness.transport.options import TransportError, TransportOptions
from harness.transport.request import Origin, serialize
from harness.transport.sink import StreamSink
from harness.transport.waking import Waker
from harness.transport.watchdog import Watchdog

# A hub this late for a limit was itself busy, and has not seen what the network did meanwhile: the limit is
# put off, once, by as long as it was late.
_OWN_LATENESS_S = 5e-3
_GRACE_S = 1.0


class Keeper(Protocol):
    """Who keeps idle connections between attempts."""

    @property
    def options(self) -> TransportOptions:
        """How to open new ones."""

    def take_idle(self, origin: Origin) -> Connection | None:
        """Return an idle connection that is still good."""

    def keep(self, origin: Origin, connection: Connection) -> None:
        """Take one back after a cleanly ended exchange."""


class Ending(NamedTuple):
    """How an attempt ended: as its session heard it, and the answer's status and headers as sent."""

    reason: EndReason
    detail: str
    head: tuple[int, list[tuple[bytes, bytes]]] | None = None


class Halt(BaseException):
    """Thrown into a greenlet that waits for the network, to end its attempt.

    Not an `Exception`, as it must pass every handler on its way.
    """

    def __init__(self, reason: EndReason) -> None:
        super().__init__(reason)
        self.reason: EndReason = reason


class Interruptible:
    """What a greenlet waits for while a limit, or another greenlet, may end it by `Halt`."""

    def __init__(self, session: StreamSink) -> None:
        self.session = session
        self.hub: Hub = get_hub()
        self.watchdog = Watchdog(self.hub, session, self._due)
        self._waiting: greenlet | None = None
        self._graced: float | None = None  # the deadline that was put off
        self._ending: tuple[EndReason, str] = ("aborted", "")

    def stop(self, reason: EndReason) -> None:
        """End it now, from any greenlet."""
        # From the hub: only there is it sure that the greenlet is waiting.
        self.hub.loop.run_callback(self._throw, reason)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let `Halt` hit the current greenlet inside this block."""
        self._waiting = getcurrent()
        try:
            yield
        finally:
            self._waiting = None

    def end(self, reason: EndReason, detail: str = "") -> None:
        """End the session, if it has not ended."""
        self._ending = reason, detail
        if not self.session.ended:
            self.session.end(reason, monotonic(), detail)

    def _due(self, late_s: float) -> None:
        due = self.session.deadline()
        if late_s > _OWN_LATENESS_S and due != self._graced:
            self._graced = due
            self.watchdog.again(min(late_s, _GRACE_S))
        elif self.session.expire(monotonic()):
            self._throw("closed")
        else:
            self.watchdog.again()

    def _throw(self, reason: EndReason) -> None:
        if self._waiting is not None:
            self._waiting.throw(Halt(reason))


class Attempt(Interruptible):
    """One request over a connection of our own."""

    def __init__(self, keeper: Keeper, session: StreamSink, *, decode: bool = True) -> None:
        super().__init__(session)
        self._keeper = keeper
        self._decode = decode
        self._exchange: Exchange | None = None

    def run(self, method: str, url: httpx.URL, headers: list[tuple[str, str]], body: bytes) -> None:
        """Do everything; return when the session has ended."""
        try:
            origin = Origin.of(url)
            request = serialize(method, url, headers, body)
            with self.interruptible():
                connection = self._connection(origin)
        except Halt as halt:
            self.end(halt.reason)
        except (DialError, TransportError) as error:
            self.end("connect_error", str(error))
        except BaseException:
            self.end("aborted")
            raise
        else:
            self._exchange_on(connection, origin, method, request)
        finally:
            self.watchdog.cancel()

    def stop(self, reason: EndReason) -> None:
        """End the attempt now, from any greenlet."""
        if self._exchange is not None:
            self._exchange.finish(reason, monotonic())
        else:
            super().stop(reason)

    @property
    def ending(self) -> Ending:
        """How it ended; after `run`."""
        return Ending(*(self._exchange.ending if self._exchange else self._ending), self.head)

    @property
    def head(self) -> tuple[int, list[tuple[bytes, bytes]]] | None:
        """Status and headers as they were sent, or None if the answer did not come so far."""
        if self._exchange is None or not self._exchange.response.ready:
            return None
        return self._exchange.response.status, self._exchange.response.raw_headers

    def _connection(self, origin: Origin) -> Connection:
        connection = self._keeper.take_idle(origin)
        if connection is not None:
            self.session.connected(monotonic(), connect_s=None, tls_s=None, peer=connection.peer, reused=True)
            return connection
        dialled = dial(self.hub, origin, self._keeper.options)
        self.session.connected(
            monotonic(), connect_s=dialled.connect_s, tls_s=dialled.tls_s,
            peer=dialled.connection.peer, reused=False,
        )  # fmt: skip
        return dialled.connection

    def _exchange_on(self, connection: Connection, origin: Origin, method: str, request: bytes) -> None:
        waiter: Waiter[None] = Waiter(self.hub)

        def on_end(reusable: bool) -> None:
            if reusable:
                self._keeper.keep(origin, connection)
            # Not at once: the greenlet would run between two reads, and make the second one late.
            Waker.of(self.hub).wake(waiter)

        exchange = Exchange(connection, self.session, self.watchdog, method, on_end, decode=self._decode)
        self._exchange = exchange
        try:
            exchange.start(request)
            waiter.get()
        except BaseException:
            exchange.finish("aborted", monotonic())
            raise
        if exchange.failure is not None:
            raise exchange.failure

    def _throw(self, reason: EndReason) -> None:
        if self._exchange is not None:
            # It got its connection between the call and this.
            self._exchange.finish(reason, monotonic())
        else:
            super()._throw(reason)

"""The transport of one user: its connections, its running exchanges, and the httpx face."""

from __future__ import annotations

from time import monotonic

import httpx
from gevent.hub import Hub, Waiter, get_hub, getcurrent
from greenlet import greenlet

from harness.transport.connection import Connection
from harness.transport.dial import DialError, dial
from harness.transport.exchange import Exchange
from harness.transport.options import TransportError, TransportOptions
from harness.transport.request import Origin, serialize
from harness.transport.sink import StreamSink
from harness.transport.watchdog import Watchdog

# A hub this late for a connect limit was itself busy, and has not seen what the network did meanwhile.
_OWN_LATENESS_S = 5e-3
_GRACE_S = 1.0


class HarnessTransport(httpx.BaseTransport):
    """Sends requests of one user and keeps at most one idle connection per origin."""

    def __init__(self, options: TransportOptions | None = None) -> None:
        self._options = options or TransportOptions()
        self._idle: dict[Origin, Connection] = {}
        self._running: set[_Attempt] = set()

    def stream(
        self,
        method: str,
        url: httpx.URL | str,
        headers: list[tuple[str, str]],
        body: bytes,
        session: StreamSink,
    ) -> None:
        """Make one attempt and push everything about it into *session*; return when it has ended.

        What servers, networks and options do ends in `session.end`, never in an exception. If an
        exception hits the waiting greenlet, the connection is closed, the session ends as
        `aborted`, and the exception goes on.
        """
        attempt = _Attempt(self, session)
        self._running.add(attempt)
        try:
            attempt.run(method, httpx.URL(url), headers, body)
        finally:
            self._running.discard(attempt)

    def abort(self, reason: str = "abandoned") -> None:
        """Close what is running at once; its session ends with *reason*. Any greenlet may call this."""
        for attempt in list(self._running):
            attempt.stop(reason)

    def close(self) -> None:
        """Close the idle connections."""
        while self._idle:
            self._idle.popitem()[1].close()

    def take_idle(self, origin: Origin) -> Connection | None:
        """Return an idle connection to *origin* that is still good, or None."""
        connection = self._idle.pop(origin, None)
        if connection is not None and not connection.is_usable():
            connection.close()
            return None
        return connection

    def keep(self, origin: Origin, connection: Connection) -> None:
        """Take *connection* back after a cleanly ended exchange."""
        if self._options.per_request or origin in self._idle:
            connection.close()
        else:
            self._idle[origin] = connection

    @property
    def options(self) -> TransportOptions:
        """The options given at the start."""
        return self._options


class _Halt(BaseException):
    """Thrown into a greenlet that is opening a connection, to end its attempt.

    Not an `Exception`, as it must pass every handler on its way.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _Attempt:
    """One call of `stream`: opens a connection or takes an idle one, then waits for the exchange."""

    def __init__(self, transport: HarnessTransport, session: StreamSink) -> None:
        self._transport = transport
        self._session = session
        self._hub: Hub = get_hub()
        self._dialling: greenlet | None = getcurrent()
        self._exchange: Exchange | None = None
        self._watchdog = Watchdog(self._hub, session, self._connect_due)

    def run(self, method: str, url: httpx.URL, headers: list[tuple[str, str]], body: bytes) -> None:
        """Do everything; return when the session has ended."""
        try:
            origin = Origin.of(url)
            request = serialize(method, url, headers, body)
            connection = self._connection(origin)
        except _Halt as halt:
            self._end(halt.reason)
        except (DialError, TransportError) as error:
            self._end("connect_error", str(error))
        except BaseException:
            self._end("aborted")
            raise
        else:
            self._exchange_on(connection, origin, method, request)
        finally:
            self._watchdog.cancel()

    def stop(self, reason: str) -> None:
        """End the attempt now, from any greenlet."""
        if self._exchange is not None:
            self._exchange.finish(reason, monotonic())
        elif self._dialling is not None:
            # By then it may have its connection.
            self._hub.loop.run_callback(self._stop_now, reason)

    def _connection(self, origin: Origin) -> Connection:
        try:
            connection = self._transport.take_idle(origin)
            if connection is not None:
                self._session.connected(
                    monotonic(), connect_s=None, tls_s=None, peer=connection.peer, reused=True
                )
                return connection
            dialled = dial(self._hub, origin, self._transport.options)
            self._session.connected(
                monotonic(), connect_s=dialled.connect_s, tls_s=dialled.tls_s,
                peer=dialled.connection.peer, reused=False,
            )  # fmt: skip
            return dialled.connection
        finally:
            self._dialling = None

    def _exchange_on(self, connection: Connection, origin: Origin, method: str, request: bytes) -> None:
        waiter: Waiter[None] = Waiter(self._hub)

        def on_end(reusable: bool) -> None:
            if reusable:
                self._transport.keep(origin, connection)
            # Not at once: the greenlet would run between two reads, and make the second one late.
            self._hub.loop.run_callback(waiter.switch, None)

        exchange = self._exchange = Exchange(connection, self._session, self._watchdog, method, on_end)
        try:
            exchange.start(request)
            waiter.get()
        except BaseException:
            exchange.finish("aborted", monotonic())
            raise
        if exchange.failure is not None:
            raise exchange.failure

    def _connect_due(self, late_s: float) -> None:
        if late_s > _OWN_LATENESS_S:
            self._watchdog.again(min(late_s, _GRACE_S))
        elif self._session.expire(monotonic()):
            self._stop_now("closed")
        else:
            self._watchdog.again()

    def _stop_now(self, reason: str) -> None:
        if self._exchange is not None:
            self._exchange.finish(reason, monotonic())
        elif self._dialling is not None:
            self._dialling.throw(_Halt(reason))

    def _end(self, reason: str, detail: str = "") -> None:
        self._dialling = None
        if not self._session.ended:
            self._session.end(reason, monotonic(), detail)

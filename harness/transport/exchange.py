"""One request and its answer on an open connection, driven by callbacks from the hub."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from harness.stream.outcome import EndReason
from harness.transport.connection import Connection
from harness.transport.decode import DecodeError, Decoder, decoder_for
from harness.transport.response import Response
from harness.transport.sink import StreamSink
from harness.transport.watchdog import Watchdog

# How many reads to make before a limit may fire; a server that fills even these is not silent.
_LAST_READS = 16


class Exchange:
    """Writes one request and pushes the answer into the session until it ends.

    No greenlet runs in between: a read is one callback from the hub. `on_end` is called once, after
    the session's `end`, with whether the connection may serve another request. `failure` is an
    exception that the session raised, for the waiting greenlet. With *decode* false the body is
    pushed as it was sent, whatever its Content-Encoding.
    """

    __slots__ = (
        "_calm", "_decode_body", "_decoder", "_on_end", "_session", "_streaming", "_urgency", "_watchdog",
        "connection", "done", "ending", "failure", "response",
    )  # fmt: skip

    def __init__(
        self,
        connection: Connection,
        session: StreamSink,
        watchdog: Watchdog,
        method: str,
        on_end: Callable[[bool], None],
        *,
        decode: bool = True,
    ) -> None:
        self.connection = connection
        self.response = Response(method)
        self.done = False
        self.ending: tuple[EndReason, str] = ("aborted", "")
        self.failure: BaseException | None = None
        self._session = session
        self._watchdog = watchdog
        self._on_end = on_end
        self._streaming = False  # the headers have been pushed
        self._calm = False  # the first output has come
        self._decode_body = decode
        self._decoder: Decoder | None = None

    def start(self, request: bytes) -> None:
        """Write *request*; everything else comes from the hub."""
        self._session.clock = "kernel" if self.connection.kernel_clock else "user"
        self.connection.open_for(self._readable)
        self._session.sent(monotonic())
        self._watchdog.hand_over(self._due)
        self._urgency = self._session.urgency
        self.connection.send(request)

    def finish(self, reason: EndReason, t: float, detail: str = "") -> None:
        """End the exchange, and close the connection unless it may be used again. First call only."""
        if self.done:
            return
        self.done = True
        self.ending = reason, detail
        self._watchdog.cancel()
        response, connection = self.response, self.connection
        reusable = (
            reason == "eof" and response.complete and response.keep_alive and not response.stray
            and connection.all_sent
        )  # fmt: skip
        if reusable:
            connection.rest()
        else:
            connection.close()
        response.release()
        on_end, self._on_end = self._on_end, _nothing  # or only the garbage collector could free us
        session = self._session
        if connection.lag_s >= 0.0:
            session.lag(connection.lag_s)
        try:
            if not session.ended:
                session.end(reason, t, detail)
        finally:
            on_end(reusable)

    def _readable(self) -> None:
        try:
            data = self.connection.receive()
            if data:
                self._take(data)
            elif data is not None:
                self._peer_closed()
        except BaseException as error:  # noqa: BLE001 - raised again in the greenlet that waits for us
            self._fail(error)

    def _take(self, data: bytes) -> None:
        """Push what one read brought."""
        connection, session, response = self.connection, self._session, self.response
        t = connection.t
        if not connection.stamped:
            session.clock = "user"
        response.feed(data)
        if not self._streaming and response.ready:
            self._streaming = True
            self._push_headers(t)
        pieces = response.pieces
        if pieces and not self.done:
            body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
            pieces.clear()
            if self._decoder is not None:
                body = self._decode(body, t)
            if body:
                session.feed(body, t, connection.earliest)
        if self.done:
            return
        if response.error:
            self.finish("bad_http", t, response.error)
        elif response.complete:
            self.finish("eof", t)
        elif connection.at_end:
            self._peer_closed()
        elif session.urgency != self._urgency:
            self._urgency = session.urgency
            self._watchdog.look()
            if not self._calm and not session.waiting:
                self._calm = True
                connection.calm(self._readable)

    def _push_headers(self, t: float) -> None:
        headers = self.response.headers()
        self._session.headers(self.response.status, headers, t)
        if not self._decode_body:
            return
        try:
            self._decoder = decoder_for(headers.get("content-encoding", ""))
        except DecodeError as error:
            self._session.violation("http.content_encoding")
            self.finish("bad_http", t, str(error))
        else:
            if self._decoder is not None:
                self._session.violation("http.content_encoding")

    def _decode(self, body: bytes, t: float) -> bytes:
        assert self._decoder is not None
        try:
            return self._decoder.decode(body)
        except DecodeError as error:
            self.finish("bad_http", t, str(error))
            return b""

    def _peer_closed(self) -> None:
        connection, response = self.connection, self.response
        if not response.ready:
            reason: EndReason = "connect_error" if connection.refused else "no_response"
            self.finish(reason, connection.t, connection.fault or "connection closed before an answer")
        elif response.until_close and connection.clean:
            self.finish("eof", connection.t)
        else:
            self.finish("cut", connection.t, connection.fault or "connection closed inside the body")

    def _due(self, _late_s: float) -> None:
        """Let a limit fire, but only after a last look into the socket."""
        try:
            for _ in range(_LAST_READS):
                data = self.connection.receive()
                if data is None:
                    break
                if data:
                    self._take(data)
                else:
                    self._peer_closed()
                if self.done:
                    return
            now = monotonic()
            due = self._session.deadline()
            if due is not None and due <= now and self._session.expire(now):
                self.finish("closed", now)
            elif not self.done:
                self._watchdog.again()
        except BaseException as error:  # noqa: BLE001 - raised again in the greenlet that waits for us
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """Close everything after a fault of ours; the waiting greenlet raises it."""
        self.failure = error
        self.finish("aborted", monotonic(), "internal error")


def _nothing(reusable: bool) -> None:
    """Nobody waits for a second end."""

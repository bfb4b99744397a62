"""Attempts that go through a proxy: httpx's own transport, timed from outside.

What the proxy needs (CONNECT, its authentication, SOCKS) is httpx's job. It reads its sockets itself,
so times are the user's (`clock` "user"), and it waits in patched sockets: without gevent's monkey
patching the whole process waits with it.
"""

from __future__ import annotations

import socket
from time import monotonic
from typing import Any

import httpx

from harness.stream.outcome import EndReason
from harness.transport.attempt import Ending, Halt, Interruptible
from harness.transport.decode import DecodeError, decoder_for
from harness.transport.options import TransportOptions
from harness.transport.request import join_address
from harness.transport.sink import StreamSink
from harness.transport.tls import make_ssl_context


def make_proxied(options: TransportOptions, proxy: str) -> httpx.HTTPTransport:
    """Return httpx's transport through *proxy*, with the connection rules of *options*.

    Raises `TransportError` for certificates that cannot be used, `ValueError` or `ImportError` for a
    proxy that httpx cannot use.
    """
    return httpx.HTTPTransport(
        verify=make_ssl_context(options),
        trust_env=False,
        limits=httpx.Limits(
            max_connections=None,
            max_keepalive_connections=0 if options.per_request else 1,
            keepalive_expiry=None,
        ),
        proxy=httpx.Proxy(proxy),
    )


class ProxiedAttempt(Interruptible):
    """One request through a proxy, pushed into the session like any other."""

    def __init__(self, transport: httpx.HTTPTransport, proxy: str, session: StreamSink) -> None:
        super().__init__(session)
        self._transport = transport
        self._where = httpx.URL(proxy).copy_with(userinfo=b"")  # credentials stay out of every message
        self._began = monotonic()
        self._peer: str | None = None
        self._tls_began = self._began
        self._tls_s: float | None = None
        self._sent = False
        self.head: tuple[int, list[tuple[bytes, bytes]]] | None = None

    def run(self, method: str, url: httpx.URL, headers: list[tuple[str, str]], body: bytes) -> None:
        """Do everything; return when the session has ended."""
        self.session.clock = "user"
        try:
            request = httpx.Request(
                method, url, headers=headers, content=body, extensions={"trace": self._trace}
            )
            request.headers.setdefault("accept-encoding", "identity")
            with self.interruptible():
                self._exchange(request)
        except Halt as halt:
            self.end(halt.reason)
        except (httpx.TransportError, httpx.InvalidURL, DecodeError, UnicodeError) as error:
            self._explain(error)
        except BaseException:
            self.end("aborted")
            raise
        finally:
            self.watchdog.cancel()

    @property
    def ending(self) -> Ending:
        """How it ended; after `run`."""
        return Ending(*self._ending, self.head)

    def _exchange(self, request: httpx.Request) -> None:
        session = self.session
        response = self._transport.handle_request(request)
        try:
            self.head = (response.status_code, response.headers.raw)
            session.headers(response.status_code, _flat(response.headers), monotonic())
            self.watchdog.look()
            decoder = None
            encoding = response.headers.get("content-encoding", "")
            if encoding.lower() not in ("", "identity"):
                session.violation("http.content_encoding")
                decoder = decoder_for(encoding)
            assert isinstance(response.stream, httpx.SyncByteStream)
            for piece in response.stream:
                if data := piece if decoder is None else decoder.decode(piece):
                    session.feed(data, monotonic())
                if session.urgency != self.watchdog.urgency:
                    self.watchdog.look()
        finally:
            response.close()
        self.end("eof")

    def _trace(self, event: str, info: dict[str, Any]) -> None:
        """Take httpx's own account of the connection."""
        kind = event.partition(".")[2]
        if kind == "connect_tcp.complete":
            address = info["return_value"].get_extra_info("server_addr")
            self._peer = join_address(*address[:2]) if address else None
            sock = info["return_value"].get_extra_info("socket")
            if sock is not None:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        elif kind == "start_tls.started":
            self._tls_began = monotonic()
        elif kind == "start_tls.complete":
            self._tls_s = (self._tls_s or 0.0) + monotonic() - self._tls_began
        elif kind == "send_request_headers.started" and info["request"].method != b"CONNECT":
            self._connected(monotonic())

    def _connected(self, now: float) -> None:
        reused = self._peer is None
        connect_s = None if reused else now - self._began - (self._tls_s or 0.0)
        self.session.connected(
            now, connect_s=connect_s, tls_s=self._tls_s, peer=self._peer or self._where.netloc.decode(),
            reused=reused,
        )  # fmt: skip
        self._sent = True
        self.session.sent(monotonic())
        self.watchdog.look()

    def _explain(self, error: Exception) -> None:
        line = str(error) or type(error).__name__
        reason: EndReason
        if isinstance(error, DecodeError):
            reason = "bad_http"
        elif not self._sent:
            reason, line = "connect_error", f"through proxy {self._where}: {line}"
        elif (
            isinstance(error, httpx.RemoteProtocolError)
            and "closed" not in line
            and "disconnected" not in line
        ):
            reason = "bad_http"
        else:
            reason = "no_response" if self.head is None else "cut"
        self.end(reason, line)


def _flat(headers: httpx.Headers) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}

"""The transport of one user: its connections, its running attempts, and the httpx face."""

from __future__ import annotations

from functools import lru_cache
from time import monotonic

import httpx

from harness.stream.outcome import EndReason
from harness.transport.attempt import Attempt, Ending
from harness.transport.connection import Connection
from harness.transport.options import TransportError, TransportOptions
from harness.transport.plain import as_httpx_error, fetch
from harness.transport.proxied import ProxiedAttempt, make_proxied
from harness.transport.proxies import ProxyRules
from harness.transport.request import Origin
from harness.transport.sink import StreamSink


class HarnessTransport(httpx.BaseTransport):
    """Sends the requests of one user and keeps at most one idle connection per origin.

    Proxies are those of the environment at the time of making. `--connect-to` goes without.
    """

    def __init__(self, options: TransportOptions | None = None) -> None:
        self.options = options or TransportOptions()
        self._idle: dict[Origin, Connection] = {}
        self._running: set[Attempt | ProxiedAttempt] = set()
        self._rules = ProxyRules({} if self.options.connect_to else None)
        self._proxied: dict[str, httpx.HTTPTransport] = {}

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
        self._run(method, url, headers, body, session)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer an httpx request.

        With a session in `request.extensions["session"]` this is `stream`, and the response has the
        status, the headers and no body. Without one it is an ordinary streaming response. Raises
        the exceptions of httpx when there are no headers to return.
        """
        session = request.extensions.get("session")
        if session is not None:
            headers = [(n.decode("latin-1"), v.decode("latin-1")) for n, v in request.headers.raw]
            ending = self._run(request.method, request.url, headers, request.read(), session)
            if ending.head is None:
                raise as_httpx_error(ending.reason, ending.detail, request)
            status, raw_headers = ending.head
            return httpx.Response(status, headers=raw_headers, stream=httpx.ByteStream(b""))
        proxy = self._rules.proxy_for(request.url)
        if proxy is not None:
            return self._through(proxy).handle_request(request)
        return fetch(self, request)

    def abort(self, reason: EndReason = "abandoned") -> None:
        """Close what is running at once; its session ends with *reason*. Any greenlet may call this."""
        for attempt in list(self._running):
            attempt.stop(reason)

    def close(self) -> None:
        """Close the idle connections."""
        while self._idle:
            self._idle.popitem()[1].close()
        while self._proxied:
            self._proxied.popitem()[1].close()

    def take_idle(self, origin: Origin) -> Connection | None:
        """Return an idle connection to *origin* that is still good, or None."""
        connection = self._idle.pop(origin, None)
        if connection is not None and not connection.is_usable():
            connection.close()
            return None
        return connection

    def keep(self, origin: Origin, connection: Connection) -> None:
        """Take *connection* back after a cleanly ended exchange."""
        if self.options.per_request or origin in self._idle:
            connection.close()
        else:
            self._idle[origin] = connection

    def _run(
        self,
        method: str,
        url: httpx.URL | str,
        headers: list[tuple[str, str]],
        body: bytes,
        session: StreamSink,
    ) -> Ending:
        attempt: Attempt | ProxiedAttempt
        try:
            url = _parsed(url) if isinstance(url, str) else url
            proxy = self._rules.proxy_for(url)
            if proxy is None:
                attempt = Attempt(self, session)
            else:
                attempt = ProxiedAttempt(self._through(proxy), proxy, session)
        except (httpx.InvalidURL, TransportError) as error:
            session.end("connect_error", monotonic(), str(error))
            return Ending("connect_error", str(error))
        self._running.add(attempt)
        try:
            attempt.run(method, url, headers, body)
        finally:
            self._running.discard(attempt)
        return attempt.ending

    def _through(self, proxy: str) -> httpx.HTTPTransport:
        transport = self._proxied.get(proxy)
        if transport is None:
            try:
                transport = self._proxied[proxy] = make_proxied(self.options, proxy)
            except TransportError:
                raise
            except (ValueError, ImportError, httpx.InvalidURL):
                where = httpx.URL(proxy).copy_with(userinfo=b"")
                raise TransportError(
                    f"cannot use the proxy {where}: http://, https:// or socks5:// expected"
                ) from None
        return transport


@lru_cache(maxsize=64)
def _parsed(url: str) -> httpx.URL:
    """Return *url*, parsed once: a run asks the same few addresses for ever."""
    return httpx.URL(url)

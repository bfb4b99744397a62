"""The Prometheus exporter: what was observed, on a port of its own.

`serve` answers scrapes in Prometheus text or OpenMetrics, whichever is asked for. `AggregateCollector` offers
the same series to a `prometheus_client` registry, for those who have an exporter of their own. Everything is
computed when it is asked for; between scrapes nothing runs.
"""

from __future__ import annotations

import errno
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from socketserver import TCPServer, ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from harness.observe.buckets import Histogram
from harness.observe.exposition import bounds_text, labelled, metric_name, series, text
from harness.observe.families import PREFIX
from harness.observe.state import Source

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment


# Under gevent a pause lets the streams be read. It has to be a real one: after a sleep of nothing the hub
# runs what is ready, but does not poll the sockets.
_PAUSE_S = 0.0003


class ExporterError(Exception):
    """The exporter cannot serve; the message is one line that says what to do."""


class AggregateCollector(Collector):
    """What *source* returns at the moment of a scrape, as metrics of `prometheus_client`."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def describe(self) -> Iterable[Metric]:
        """Name nothing in advance, so that registering does not ask the source."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield every family, also those without a sample."""
        for family, found in series(self._source()):
            name = PREFIX + family.name
            metric = Metric(metric_name(family), family.help, family.kind)
            for values, value in found:
                labels = dict(labelled(family, values))
                if isinstance(value, Histogram):
                    counts = list(accumulate(value.counts))
                    for bound, n in zip(bounds_text(value.bounds), counts, strict=True):
                        metric.add_sample(f"{name}_bucket", {**labels, "le": bound}, n)
                    metric.add_sample(f"{name}_count", labels, counts[-1])
                    metric.add_sample(f"{name}_sum", labels, value.sum)
                else:
                    metric.add_sample(name, labels, value)
            yield metric


def registry_of(source: Source) -> CollectorRegistry:
    """Return a registry of its own that holds nothing but the collector of *source*."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(AggregateCollector(source))
    return registry


class Exporter:
    """A running exporter; made by `serve`."""

    def __init__(self, server: _Server, thread: threading.Thread) -> None:
        self._server = server
        self._thread = thread

    @property
    def port(self) -> int:
        """The port it listens on, also when any free one was asked for."""
        return int(self._server.server_address[1])

    def scraped_after(self, t: float) -> bool:
        """Return whether a scrape that began at or after *t* (the exporter's clock) was sent whole."""
        seen = self._server.last_scrape
        return seen is not None and seen >= t

    def close(self) -> None:
        """Stop listening and free the port. Closing twice is harmless."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


def serve(
    source: Source, host: str = "127.0.0.1", port: int = 9646, clock: Callable[[], float] = time.monotonic
) -> Exporter:
    """Listen on *host* and *port* (0: any free one) and answer every GET with the metrics of *source*.

    *clock* is what `Exporter.scraped_after` compares with. Raises `ExporterError` if it cannot listen.
    """
    try:
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        server = _Server(family, address, source, clock)
    except (OSError, OverflowError) as error:
        raise ExporterError(_why_not(error, host, port)) from None
    # A daemon: a scrape in progress must not keep a finished run alive.
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True)
    thread.start()
    return Exporter(server, thread)


def _why_not(error: Exception, host: str, port: int) -> str:
    code = getattr(error, "errno", None)
    if code == errno.EADDRINUSE:
        return (
            f"metrics port {port} on {host} is in use (another run?): "
            "choose another with --metrics-port PORT, or 0 to do without"
        )
    if code == errno.EACCES:
        return f"metrics port {port} is only for root: choose one above 1023 with --metrics-port PORT"
    return f"cannot serve metrics on {host}:{port} ({error}): see --metrics-host and --metrics-port"


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def __init__(self, family: int, address: Any, source: Source, clock: Callable[[], float]) -> None:
        self.address_family = family
        self.last_scrape: float | None = None
        self._source = source
        self._clock = clock
        super().__init__(address, _Quiet)
        self.set_app(self._answer)

    def server_bind(self) -> None:
        # HTTPServer's looks up the host's own name in DNS, which can take seconds and is of no use here.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing about a scraper that hung up; anything else is shown as usual."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def _answer(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] != "GET":
            start_response("405 Method Not Allowed", [("Allow", "GET")])
            return [b""]
        if environ["PATH_INFO"] == "/favicon.ico":
            start_response("404 Not Found", [])
            return [b""]
        began = self._clock()
        _, content_type = choose_encoder(environ.get("HTTP_ACCEPT", ""))
        openmetrics = content_type.startswith("application/openmetrics-text")
        body = text(self._source(), openmetrics, pause=lambda: time.sleep(_PAUSE_S)).encode()
        # Not compressed, even if asked: on this machine that would cost more time than it saves.
        start_response("200 OK", [("Content-Type", content_type)])
        return _Sent(self, body, began)


class _Sent:
    """A response body that notes when it was sent: WSGI closes it after the last byte."""

    def __init__(self, server: _Server, body: bytes, began: float) -> None:
        self._server = server
        self._body = body
        self._began = began
        self._whole = False

    def __len__(self) -> int:
        return 1  # lets the handler set Content-Length

    def __iter__(self) -> Iterator[bytes]:
        yield self._body
        self._whole = True  # asked for more, so the body is written

    def close(self) -> None:
        if self._whole:
            self._server.last_scrape = self._began


class _Quiet(WSGIRequestHandler):
    """A handler without an access log, and without a traceback when a scraper hangs up."""

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""

    def address_string(self) -> str:
        """Return the peer as it is: no look-up of its name."""
        return str(self.client_address[0])

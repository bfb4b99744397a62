"""HTTP over gevent with the kernel's arrival times: the only client-side place that touches sockets."""

from harness.transport.hubclock import HubClock
from harness.transport.options import TransportError, TransportOptions
from harness.transport.sink import StreamSink
from harness.transport.tls import make_ssl_context
from harness.transport.transport import HarnessTransport

__all__ = [
    "HarnessTransport",
    "HubClock",
    "StreamSink",
    "TransportError",
    "TransportOptions",
    "make_ssl_context",
]

"""Plain HTTP errors: a status and the gateway's error body."""

from collections.abc import Callable

from harness.sim.faults.registry import fault
from harness.sim.plan import Plan
from harness.sim.script import Script

_STATUSES = {
    400: "400: the request is wrong",
    401: "401: the key is wrong",
    402: "402: payment required",
    403: "403: not with this key",
    404: "404: no such model",
    408: "408: request timeout",
    409: "409: conflict",
    413: "413: the request is too large",
    422: "422: the request cannot be processed",
    500: "500 in the gateway's error shape",
    502: "502: all upstreams failed",
    504: "504: the upstream took too long",
    529: "529: overloaded",
}


def _refusal(status: int) -> Callable[[Script], Plan]:
    def plan(script: Script) -> Plan:
        yield from script.refuses(status)

    return plan


for _status, _about in _STATUSES.items():
    fault(f"http-{_status}", _about, outcome="http_error", before_stream=True)(_refusal(_status))


@fault("http-503", "503 with Retry-After: 1", outcome="http_error", before_stream=True)
def http_503(script: Script) -> Plan:
    yield from script.refuses(503, Retry_After="1")

"""Stalls that the gateway itself ends, after keepalives, at four fifths of the client's limit."""

from harness.sim.faults.registry import fault
from harness.sim.plan import CLOSE, UNMUTE, Plan
from harness.sim.script import Script

_BEFORE_LIMIT = 0.8
_WITHOUT_LIMIT_S = 3.0


def _silence(script: Script) -> Plan:
    yield from script.opening()
    yield from script.tokens(script.half)
    yield 0.0, UNMUTE, b""
    script.pause(_BEFORE_LIMIT * (script.circumstances.limits.progress.fail_s or _WITHOUT_LIMIT_S))


@fault(
    "stall-error", "half of the answer, keepalives for long, then the gateway's error", outcome="error_event"
)
def stall_error(script: Script) -> Plan:
    yield from _silence(script)
    yield from script.breaks_off()


@fault("stall-truncate", "half of the answer, keepalives for long, then a clean end", outcome="truncated")
def stall_truncate(script: Script) -> Plan:
    yield from _silence(script)
    yield script.next_s, UNMUTE, b""


@fault("stall-cut", "half of the answer, keepalives for long, then the connection breaks", outcome="cut")
def stall_cut(script: Script) -> Plan:
    yield from _silence(script)
    yield script.next_s, CLOSE, b""

"""Bytes that trickle."""

from harness.sim.faults.registry import fault
from harness.sim.plan import CONTENT, PART, Plan
from harness.sim.script import Script

_BYTES = 24
_EACH_S = 0.002


@fault("slow-drip", "a healthy answer whose events trickle in, 24 bytes at a time")
def slow_drip(script: Script) -> Plan:
    for due, kind, data in script.whole():
        if kind == CONTENT:
            while len(data) > _BYTES:
                yield due, PART, data[:_BYTES]
                data = data[_BYTES:]
                due += _EACH_S
        yield due, kind, data

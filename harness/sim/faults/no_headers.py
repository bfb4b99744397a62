"""The request is taken and never answered."""

from harness.sim.faults.registry import fault
from harness.sim.plan import HANG, STALL, Plan
from harness.sim.script import Script


@fault(
    "no-headers", "no answer at all, while the connection stays open", outcome="stalled", before_stream=True
)
def no_headers(script: Script) -> Plan:
    yield 0.0, STALL, b""
    yield 0.0, HANG, b""

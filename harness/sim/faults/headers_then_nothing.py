"""Headers and not one byte of body."""

from harness.sim.faults.registry import fault
from harness.sim.plan import HANG, HEAD, MUTE, STALL, Plan
from harness.sim.script import Script


@fault("headers-then-nothing", "headers, then not one byte of body", outcome="stalled")
def headers_then_nothing(script: Script) -> Plan:
    yield 0.0, HEAD, b""
    yield 0.0, MUTE, b""
    yield 0.0, STALL, b""
    yield 0.0, HANG, b""

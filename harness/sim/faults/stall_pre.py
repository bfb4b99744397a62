"""Nothing but keepalives from the beginning: what no read timeout ever sees."""

from harness.sim.faults.registry import fault
from harness.sim.plan import HANG, STALL, Plan
from harness.sim.script import Script


@fault("stall-pre", "no token at all, only keepalives, for ever", outcome="stalled")
def stall_pre(script: Script) -> Plan:
    yield from script.opening()
    yield 0.0, STALL, b""
    yield 0.0, HANG, b""

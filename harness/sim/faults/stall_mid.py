"""Keepalives and nothing else after half of the answer."""

from harness.sim.faults.registry import fault
from harness.sim.plan import HANG, STALL, Plan
from harness.sim.script import Script


@fault("stall-mid", "half of the answer, then only keepalives, for ever", outcome="stalled")
def stall_mid(script: Script) -> Plan:
    yield from script.opening()
    yield from script.tokens(script.half)
    yield 0.0, STALL, b""
    yield 0.0, HANG, b""

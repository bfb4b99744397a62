"""Silence after half of the answer."""

from harness.sim.faults.registry import fault
from harness.sim.plan import HANG, MUTE, STALL, Plan
from harness.sim.script import Script


@fault("stall-mid-dead", "half of the answer, then not one byte more", outcome="stalled")
def stall_mid_dead(script: Script) -> Plan:
    yield from script.opening()
    yield from script.tokens(script.half)
    yield 0.0, MUTE, b""
    yield 0.0, STALL, b""
    yield 0.0, HANG, b""

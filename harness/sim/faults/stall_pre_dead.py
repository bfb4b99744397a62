"""Silence from the beginning, after what the protocol says before any output."""

from harness.sim.faults.registry import fault
from harness.sim.plan import HANG, MUTE, STALL, Plan
from harness.sim.script import Script


@fault("stall-pre-dead", "no token and then not one byte more, not even a keepalive", outcome="stalled")
def stall_pre_dead(script: Script) -> Plan:
    yield from script.opening()
    yield 0.0, MUTE, b""
    yield 0.0, STALL, b""
    yield 0.0, HANG, b""

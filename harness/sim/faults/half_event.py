"""Events that stop in the middle."""

from harness.sim.faults.registry import fault
from harness.sim.plan import HANG, MUTE, PART, STALL, Plan
from harness.sim.script import Script


def _half(script: Script) -> Plan:
    yield from script.opening()
    yield from script.tokens(script.half)
    event = script.apart(b"never told")
    yield script.next_s, PART, event[: len(event) // 2]


@fault("half-event", "half of the answer, half an event, then not one byte more", outcome="stalled")
def half_event(script: Script) -> Plan:
    yield from _half(script)
    yield 0.0, MUTE, b""
    yield 0.0, STALL, b""
    yield 0.0, HANG, b""


@fault("mid-json-cut", "half of the answer, half an event, then a clean end of the body", outcome="truncated")
def mid_json_cut(script: Script) -> Plan:
    yield from _half(script)

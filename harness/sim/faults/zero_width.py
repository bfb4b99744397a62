"""Fake signs of life: deltas that hold nothing but zero-width characters."""

from harness.sim.faults.registry import fault
from harness.sim.plan import EVENT, STALL, Plan
from harness.sim.script import Script
from harness.sim.words import escaped

_NOTHING = escaped("\u200b\ufeff")
_EACH_S = 5.0
_FEW = 5


@fault("zero-width", "zero-width deltas instead of keepalives before a healthy answer")
def zero_width(script: Script) -> Plan:
    yield from script.opening()
    yield from script.open_channel("content")
    due = script.next_s
    script.pause(_FEW * 0.02)
    for number in range(_FEW):
        yield due + number * 0.02, EVENT, script.apart(_NOTHING)
    yield from script.tokens()
    yield from script.closing()


@fault("zero-width-stall", "half of the answer, then zero-width deltas for ever", outcome="stalled")
def zero_width_stall(script: Script) -> Plan:
    yield from script.opening()
    yield from script.tokens(script.half)
    due = script.next_s
    yield 0.0, STALL, b""
    each_s = _EACH_S * script.circumstances.profile.time_scale
    while True:
        due += each_s
        yield due, EVENT, script.apart(_NOTHING)


@fault("zero-width-only", "an answer of zero-width deltas alone", outcome="empty")
def zero_width_only(script: Script) -> Plan:
    yield from script.opening()
    yield from script.open_channel("content")
    for _ in range(_FEW):
        yield script.next_s, EVENT, script.apart(_NOTHING)
    yield from script.closing()

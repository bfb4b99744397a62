"""Keepalives as events."""

from harness.sim.dialogues.base import named_event
from harness.sim.faults.registry import fault
from harness.sim.plan import CONTENT, EVENT, MUTE, STALL, Plan
from harness.sim.script import Script

_EACH_S = 5.0
_SHAPES = (
    named_event("ping", {"type": "ping"}),
    b"event: ping\n\n",
    b"event: ping\ndata: 2026-01-01T00:00:00Z\n\n",
    b"event: keepalive\ndata: {}\n\n",
)


@fault("pings", "a healthy answer with pings between its tokens")
def pings(script: Script) -> Plan:
    for due, kind, data in script.whole():
        yield due, kind, data
        if kind == CONTENT:
            yield due, EVENT, _SHAPES[0]


@fault("ping-shapes", "a healthy answer with pings of every shape: without data, no JSON, another name")
def ping_shapes(script: Script) -> Plan:
    told = 0
    for due, kind, data in script.whole():
        yield due, kind, data
        if kind == CONTENT:
            yield due, EVENT, _SHAPES[told % len(_SHAPES)]
            told += 1


@fault("ping-only", "half of the answer, then pings and nothing else for ever", outcome="stalled")
def ping_only(script: Script) -> Plan:
    yield from script.opening()
    yield from script.tokens(script.half)
    due = script.next_s
    yield 0.0, MUTE, b""
    yield 0.0, STALL, b""
    each_s = _EACH_S * script.circumstances.profile.time_scale
    while True:
        due += each_s
        yield due, EVENT, _SHAPES[0]

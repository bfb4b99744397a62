"""A proxy that buffers: nothing for the whole time, then everything at once."""

from harness.sim.faults.registry import fault
from harness.sim.plan import HEAD, MUTE, Plan
from harness.sim.script import Script


@fault("burst", "a healthy answer that comes all at once when it is finished")
def burst(script: Script) -> Plan:
    steps = list(script.whole())
    last_s = steps[-1][0]
    yield 0.0, HEAD, b""
    yield 0.0, MUTE, b""
    yield from ((last_s, kind, data) for _, kind, data in steps if kind != HEAD)

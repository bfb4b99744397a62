"""A cut that looks exactly like an end: SDK users never notice."""

from harness.sim.faults.registry import fault
from harness.sim.plan import Plan
from harness.sim.script import Script


@fault("truncate", "half of the answer, then a clean end of the body", outcome="truncated")
def truncate(script: Script) -> Plan:
    yield from script.opening()
    yield from script.tokens(script.half)

"""A healthy answer."""

from harness.sim.faults.registry import fault
from harness.sim.plan import Plan
from harness.sim.script import Script


@fault("ok", "a healthy answer")
def ok(script: Script) -> Plan:
    yield from script.whole()

"""Token counts that are missing or wrong."""

from harness.sim.dialogues import Usage
from harness.sim.faults.registry import fault
from harness.sim.plan import Plan
from harness.sim.script import Script


@fault("usage-missing", "a healthy answer without token counts")
def usage_missing(script: Script) -> Plan:
    yield from script.opening()
    yield from script.tokens()
    yield from script.closing(usage=None)


@fault("usage-wrong", "a healthy answer whose counts say more reasoning than output")
def usage_wrong(script: Script) -> Plan:
    yield from script.opening()
    yield from script.tokens()
    yield from script.closing(usage=Usage(1, 1, 99))

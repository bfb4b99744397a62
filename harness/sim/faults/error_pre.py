"""The gateway's own error event before any output."""

from harness.sim.faults.registry import fault
from harness.sim.plan import Plan
from harness.sim.script import Script


@fault("error-pre", "the gateway's own error event when the first token is due", outcome="error_event")
def error_pre(script: Script) -> Plan:
    yield from script.opening()
    yield from script.breaks_off()

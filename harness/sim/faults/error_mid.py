"""The gateway's own error event in the middle of an answer."""

from harness.sim.faults.registry import fault
from harness.sim.plan import Plan
from harness.sim.script import Script


@fault(
    "error-mid", "half of the answer, then the gateway's own error event and the end", outcome="error_event"
)
def error_mid(script: Script) -> Plan:
    yield from script.opening()
    yield from script.tokens(script.half)
    yield from script.breaks_off()

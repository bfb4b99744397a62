"""The connection dies."""

from harness.sim.faults.registry import fault
from harness.sim.plan import RESET, Plan
from harness.sim.script import Script


@fault("reset", "half of the answer, then the connection is reset", outcome="cut")
def reset(script: Script) -> Plan:
    yield from script.opening()
    yield from script.tokens(script.half)
    # One gap after the last token: a reset at once would make the kernel throw away what was just sent.
    yield script.next_s, RESET, b""

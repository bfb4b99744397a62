"""A pause in the middle that ends before anyone may call it a stall."""

from harness.sim.faults.registry import fault
from harness.sim.faults.slow_first_token import beyond_warning_s
from harness.sim.plan import UNMUTE, Plan
from harness.sim.script import Script


@fault("slow-progress", "a pause in the middle beyond the gateway's warning limit, within its hard one")
def slow_progress(script: Script) -> Plan:
    yield from script.opening()
    yield from script.tokens(script.half)
    limit = script.circumstances.limits.progress
    script.pause(beyond_warning_s(limit.warn_s, limit.fail_s))
    yield 0.0, UNMUTE, b""
    yield from script.tokens()
    yield from script.closing()

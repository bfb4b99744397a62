"""Headers held back until there is something to say."""

from harness.sim.faults.registry import fault
from harness.sim.faults.slow_first_token import beyond_warning_s
from harness.sim.plan import Plan
from harness.sim.script import Script


@fault("late-headers", "headers later than the gateway's warning limit, within its hard one")
def late_headers(script: Script) -> Plan:
    limit = script.circumstances.limits.headers
    late_s = beyond_warning_s(limit.warn_s, limit.fail_s)
    script.pause(late_s)
    yield from script.opening(late_s)
    yield from script.tokens()
    yield from script.closing()

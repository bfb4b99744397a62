"""A model that thinks for long before and in the middle of its answer, under keepalives."""

from harness.sim.faults.registry import fault
from harness.sim.plan import UNMUTE, Plan
from harness.sim.script import Script

# Six periods of a keepalive of 10 s or four of one of 15 s, and then three and two: enough of them to
# measure an interval. Seconds before scaling.
_BEFORE_S = 65.0
_WITHIN_S = 34.0
_OF_LIMIT = 0.8


@fault("long-thinking", "over a minute of unseen reasoning, half of the answer, a long pause, the rest")
def long_thinking(script: Script) -> Plan:
    at = script.circumstances
    before_s, within_s = (seconds * at.profile.time_scale for seconds in (_BEFORE_S, _WITHIN_S))
    if at.limits.first_token.fail_s is not None:
        before_s = min(before_s, _OF_LIMIT * at.limits.first_token.fail_s)
    if at.limits.progress.fail_s is not None:
        within_s = min(within_s, _OF_LIMIT * at.limits.progress.fail_s)
    script.pause(before_s)
    yield from script.opening()
    yield 0.0, UNMUTE, b""
    yield from script.tokens(script.half)
    script.pause(within_s)
    yield from script.tokens()
    script.reasons_unseen(script.count)
    yield from script.closing()

"""Reasoning, shown and hidden."""

from harness.sim.faults.registry import fault
from harness.sim.plan import UNMUTE, Plan
from harness.sim.script import Script

# Two periods and a half of the rarest promised keepalive: two of them are seen. Seconds before scaling.
_THINKING_S = 37.5


@fault("reasoning", "half of the tokens as reasoning, then the answer")
def reasoning(script: Script) -> Plan:
    yield from script.opening()
    if script.count > 1:
        yield from script.tokens(script.half, "reasoning")
    yield from script.tokens()
    yield from script.closing()


@fault("hidden-reasoning", "reasoning that is counted but not sent, under keepalives, then the answer")
def hidden_reasoning(script: Script) -> Plan:
    limit_s = script.circumstances.limits.first_token.fail_s
    thinking_s = _THINKING_S * script.circumstances.profile.time_scale
    script.pause(thinking_s if limit_s is None else min(thinking_s, 0.8 * limit_s))
    yield from script.opening()
    yield 0.0, UNMUTE, b""
    yield from script.tokens()
    script.reasons_unseen(script.count)
    yield from script.closing()

"""Stalls that come back: what `--on-stall watch` is there to find out."""

from harness.sim.faults.registry import fault
from harness.sim.plan import STALL, Plan
from harness.sim.script import Script

_BEYOND = 1.25
# Where a profile has no hard limit nothing is a stall; a pause remains.
_WITHOUT_LIMIT_S = 3.0


def _mid_outcome(script: Script) -> str:
    return "completed" if script.circumstances.limits.progress.fail_s is None else "stalled"


def _pre_outcome(script: Script) -> str:
    return "completed" if script.circumstances.limits.first_token.fail_s is None else "stalled"


@fault(
    "stall-resume",
    "a pause in the middle beyond the hard limit, with keepalives, then the rest",
    _mid_outcome,
)
def stall_resume(script: Script) -> Plan:
    yield from script.opening()
    yield from script.tokens(script.half)
    yield 0.0, STALL, b""
    script.pause(_BEYOND * (script.circumstances.limits.progress.fail_s or _WITHOUT_LIMIT_S))
    yield from script.tokens()
    yield from script.closing()


@fault("stall-pre-resume", "the first token comes beyond the hard limit, after keepalives", _pre_outcome)
def stall_pre_resume(script: Script) -> Plan:
    yield from script.opening()
    yield 0.0, STALL, b""
    script.pause(_BEYOND * (script.circumstances.limits.first_token.fail_s or _WITHOUT_LIMIT_S))
    yield from script.tokens()
    yield from script.closing()

"""A model that thinks for long, in silence, and then answers."""

from harness.sim.faults.registry import fault
from harness.sim.plan import UNMUTE, Plan
from harness.sim.script import Script

# Without a warning limit there is nothing to be late by; this is long for people.
_WITHOUT_LIMIT_S = 3.0


@fault("slow-first-token", "the first token is later than the gateway's warning limit, within its hard one")
def slow_first_token(script: Script) -> Plan:
    limit = script.circumstances.limits.first_token
    script.pause(beyond_warning_s(limit.warn_s, limit.fail_s))
    yield from script.opening()
    # The limit of silence is often below the one of the first token: thinking has to show a sign of life.
    yield 0.0, UNMUTE, b""
    yield from script.tokens()
    yield from script.closing()


def beyond_warning_s(warn_s: float | None, fail_s: float | None) -> float:
    """Return a pause beyond the warning, and never beyond half the way from there to the hard limit."""
    if warn_s is None:
        return _WITHOUT_LIMIT_S if fail_s is None else min(_WITHOUT_LIMIT_S, fail_s / 2)
    late_s = 1.1 * warn_s
    return late_s if fail_s is None else min(late_s, (warn_s + fail_s) / 2)

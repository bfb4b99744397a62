"""A model that is stuck, and a gateway that notices: it gives up with an error, or asks another one.

It acts between the warning and the hard limit of its profile: a gateway that promises to act "after 90
to 150 seconds" has those numbers there.
"""

from harness.gateways import Limit
from harness.sim.faults.registry import fault
from harness.sim.plan import CONTENT, UNMUTE, Plan
from harness.sim.script import Script

_WITHOUT_LIMIT_S = 3.0


def _acts_after_s(warning: Limit, hard: Limit) -> float:
    if hard.fail_s is None:
        return _WITHOUT_LIMIT_S if warning.warn_s is None else 1.2 * warning.warn_s
    return 0.8 * hard.fail_s if warning.warn_s is None else (warning.warn_s + hard.fail_s) / 2


def _stuck_before(script: Script) -> Plan:
    limits = script.circumstances.limits
    yield from script.opening()
    yield 0.0, UNMUTE, b""
    # Both limits run before the first token; the model is as stuck there as in the middle.
    script.pause(_acts_after_s(limits.progress, min((limits.progress, limits.first_token), key=_hard_s)))


def _hard_s(limit: Limit) -> float:
    return float("inf") if limit.fail_s is None else limit.fail_s


@fault("stuck-pre-error", "no token, keepalives until the gateway notices, then its error", "error_event")
def stuck_pre_error(script: Script) -> Plan:
    yield from _stuck_before(script)
    yield from script.breaks_off()


@fault(
    "stuck-error", "half of the answer, keepalives until the gateway notices, then its error", "error_event"
)
def stuck_error(script: Script) -> Plan:
    limits = script.circumstances.limits
    yield from script.opening()
    yield from script.tokens(script.half)
    yield 0.0, UNMUTE, b""
    script.pause(_acts_after_s(limits.progress, limits.progress))
    yield from script.breaks_off()


@fault("stuck-retried", "no token, keepalives until the gateway asks another model, then its whole answer")
def stuck_retried(script: Script) -> Plan:
    yield from _stuck_before(script)
    yield from script.tokens()
    yield from script.closing()


@fault("stuck-restarted", "as stuck-retried, but the beginning of the answer comes twice")
def stuck_restarted(script: Script) -> Plan:
    yield from _stuck_before(script)
    first: list[bytes] = []
    for due, kind, data in script.tokens(script.half):
        first += [data] * (kind == CONTENT)
        yield due, kind, data
    for data in first:
        yield script.next_s, CONTENT, data
    yield from script.tokens()
    yield from script.closing()

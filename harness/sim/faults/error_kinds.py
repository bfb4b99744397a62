"""In-stream errors in the gateway's own shape, of kinds that call for different reactions."""

from dataclasses import replace

from harness.sim.faults.registry import fault
from harness.sim.plan import Plan
from harness.sim.script import Script


def _after_half(script: Script, kind: str, code: str, message: str) -> Plan:
    yield from script.opening()
    yield from script.tokens(script.half)
    yield from script.breaks_off(replace(script.error_facts(), type=kind, code=code, message=message))


@fault("error-rate-limit", "half of the answer, then a rate limit as an event: worth a retry", "error_event")
def error_rate_limit(script: Script) -> Plan:
    yield from _after_half(script, "rate_limit_error", "rate_limit_exceeded", "Rate limit reached.")


@fault("error-invalid", "half of the answer, then invalid_request_error: a retry is in vain", "error_event")
def error_invalid(script: Script) -> Plan:
    yield from _after_half(script, "invalid_request_error", "context_length_exceeded", "Too many tokens.")


@fault(
    "error-hostile-text", "an error whose message holds control characters and 10,000 letters", "error_event"
)
def error_hostile_text(script: Script) -> Plan:
    message = "\x1b[31mred\x07\r\n\u202eright to left " + "x" * 10_000
    yield from _after_half(script, "server_error", "server_error", message)

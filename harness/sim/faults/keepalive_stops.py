"""Keepalives end with the first output, as HopBase's once did; a pause shows that they are missing."""

from harness.sim.faults.registry import fault
from harness.sim.plan import MUTE, Plan
from harness.sim.script import Script


@fault("keepalive-stops", "no keepalive after the first token, and a pause long enough to notice")
def keepalive_stops(script: Script) -> Plan:
    at = script.circumstances
    yield from script.opening()
    yield from script.tokens(1)
    yield 0.0, MUTE, b""
    if at.profile.keepalive is not None:
        # Between the keepalive's own bound and the limit of silence: a broken promise, but no stall.
        violation_s = at.profile.keepalive.violation_s
        silence_s = at.limits.silence.fail_s
        script.pause(1.2 * violation_s if silence_s is None else (violation_s + silence_s) / 2)
    yield from script.tokens()
    yield from script.closing()

"""Healthy answers that end otherwise than with `stop`."""

from harness.sim.faults.registry import fault
from harness.sim.plan import Plan
from harness.sim.script import Script


def _told(script: Script, channel: str, finish: str) -> Plan:
    yield from script.opening()
    yield from script.tokens(channel=channel)
    yield from script.closing(finish)


@fault("tool-call", "a tool call, its arguments in fragments")
def tool_call(script: Script) -> Plan:
    yield from _told(script, "tool", "tool")


@fault("refusal", "the model refuses")
def refusal(script: Script) -> Plan:
    yield from _told(script, "refusal", "refusal")


@fault("length", "the token limit ends the answer")
def length(script: Script) -> Plan:
    yield from _told(script, "content", "length")


@fault("filter", "a content filter ends the answer")
def content_filter(script: Script) -> Plan:
    yield from _told(script, "content", "filter")

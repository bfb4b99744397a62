"""Comments where they do not belong: inside an event."""

from harness.sim.faults.registry import fault
from harness.sim.plan import COMMENT, CONTENT, EVENT, PART, Plan
from harness.sim.script import Script


@fault("comment-inside-event", "a comment line between the lines of an event, which parsers must skip")
def comment_inside_event(script: Script) -> Plan:
    yield from _interrupted(script, b": keepalive\n")


@fault("comment-splits-event", "a comment and a blank line between the lines of an event: its name is lost")
def comment_splits_event(script: Script) -> Plan:
    yield from _interrupted(script, b": keepalive\n\n")


def _interrupted(script: Script, comment: bytes) -> Plan:
    for due, kind, data in script.whole():
        name, newline, rest = data.partition(b"\n")
        if kind == CONTENT and name.startswith(b"event:"):
            yield due, PART, name + newline
            yield due, COMMENT, comment
            yield due, CONTENT, rest
        elif kind in (CONTENT, EVENT):
            # An unnamed event has but one line: the comment can only stand before it.
            yield due, COMMENT, comment
            yield due, kind, data
        else:
            yield due, kind, data

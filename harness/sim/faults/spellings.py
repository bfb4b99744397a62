"""Healthy answers, spelled in ways that are legal and break careless parsers (see `dialects`)."""

from collections.abc import Callable

from harness.sim import dialects
from harness.sim.faults.registry import fault
from harness.sim.plan import COMMENT, CONTENT, LAST_BODY, Plan
from harness.sim.script import Script


@fault("id-and-keepalive", "ids on every event, and comments: a decoder that keeps the id sees empty events")
def id_and_keepalive(script: Script) -> Plan:
    for due, kind, data in dialects.numbered(script.whole()):
        yield due, kind, data
        if kind == CONTENT:
            yield due, COMMENT, b": keepalive\n\n"


def _filtered(change: dialects.Filter) -> Callable[[Script], Plan]:
    return lambda script: change(script.whole())


def _spelled(spelling: dialects.Spelling) -> Callable[[Script], Plan]:
    def plan(script: Script) -> Plan:
        for due, kind, data in script.whole():
            yield due, kind, spelling(data) if kind <= LAST_BODY else data

    return plan


for _name, _about, _change in (
    (
        "retry-preamble",
        "a reconnection time as a block of its own before a healthy answer",
        dialects.retry_first,
    ),
    ("split", "a healthy answer whose events come in several segments", dialects.split_events),
    ("split-utf8", "a healthy answer cut in the middle of letters", dialects.split_letters),
    ("gathered", "a healthy answer with several tokens in one segment", dialects.gathered),
    (
        "pre-output-buffered",
        "nothing before the first token, then all at once",
        dialects.buffered_before_output,
    ),
):
    fault(_name, _about)(_filtered(_change))

for _name, _about, _spelling in (
    ("crlf", "a healthy answer with CR LF line ends", dialects.crlf),
    ("cr", "a healthy answer with CR line ends", dialects.cr),
    ("mixed", "a healthy answer with mixed line ends", dialects.mixed_ends),
    ("data-without-space", "a healthy answer without the space after `data:`", dialects.without_space),
):
    fault(_name, _about)(_spelled(_spelling))

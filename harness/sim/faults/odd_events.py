"""Healthy answers with something odd in between that a reader has to survive."""

from collections.abc import Iterator

from harness.sim.faults.registry import fault
from harness.sim.plan import CONTENT, EVENT, LAST_BODY, Plan
from harness.sim.script import Script


def _after_first(script: Script, odd: bytes) -> Plan:
    told = False
    for due, kind, data in script.whole():
        yield due, kind, data
        if kind == CONTENT and not told:
            told = True
            yield due, EVENT, odd


@fault("empty-data", "an event with empty data in a healthy answer: fatal for the OpenAI SDK")
def empty_data(script: Script) -> Plan:
    yield from _after_first(script, b"data:\n\n")


@fault("event-without-data", "an event line without data in a healthy answer")
def event_without_data(script: Script) -> Plan:
    yield from _after_first(script, b"event: something\n\n")


@fault("unknown-event", "an event that nobody knows in a healthy answer")
def unknown_event(script: Script) -> Plan:
    yield from _after_first(script, b'event: gateway.note\ndata: {"type":"gateway.note","note":"hello"}\n\n')


@fault("unknown-field", "fields that SSE does not know in a healthy answer")
def unknown_field(script: Script) -> Plan:
    yield from _after_first(script, b"trace: 12\nfoo\n\n")


@fault("error-null", "an event with `error: null` in a healthy answer: no error")
def error_null(script: Script) -> Plan:
    for due, kind, data in script.whole():
        if kind == CONTENT:
            head, brace, rest = data.partition(b"data: {")
            data = head + brace + b'"error":null,' + rest
        yield due, kind, data


@fault("bom", "a byte order mark before a healthy answer")
def bom(script: Script) -> Plan:
    marks: Iterator[bytes] = iter((b"\xef\xbb\xbf",))
    for due, kind, data in script.whole():
        yield due, kind, next(marks, b"") + data if kind <= LAST_BODY else data


@fault("bad-utf8", "a healthy answer with bytes that are no UTF-8")
def bad_utf8(script: Script) -> Plan:
    yield from script.opening()
    yield from script.tokens(script.half)
    yield from script.odd_token(b"caf\xe9 \xf0\x9f \xff")
    yield from script.tokens()
    yield from script.closing()


@fault("large-event", "a token of one mebibyte in a healthy answer")
def large_event(script: Script) -> Plan:
    yield from script.opening()
    yield from script.tokens(script.half)
    yield from script.odd_token(b"x" * 1_048_576)
    yield from script.tokens()
    yield from script.closing()

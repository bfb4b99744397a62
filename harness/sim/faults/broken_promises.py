"""Whole answers that break one thing which gateways' own documents promise, and nothing else.

Each is a change of single events; an answer in a protocol that a change does not concern stays healthy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from harness.sim.faults.registry import fault
from harness.sim.heads import STREAM_TYPE, answer
from harness.sim.plan import CONTENT, EVENT, LAST_BODY, PROGRESS, RAW, TERMINAL, Plan, Step
from harness.sim.script import Script

Payload = dict[str, Any]
Change = Callable[[Payload], Payload]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_DATA = b"data: "


def _payload(event: bytes) -> Payload | None:
    """Return the JSON object in *event*; None if it holds none."""
    data = event.partition(_DATA)[2]
    found = _decode(data) if data.startswith(b"{") else None
    return found if isinstance(found, dict) else None


def _with(event: bytes, payload: Payload) -> bytes:
    """Return *event* with *payload* as its data."""
    return event.partition(_DATA)[0] + _DATA + _encode(payload) + b"\n\n"


def _each(script: Script, change: Callable[[bytes, Payload], bytes]) -> Plan:
    """Tell a healthy answer with every event of JSON changed by *change*."""
    for due, kind, data in script.whole():
        payload = _payload(data) if kind <= LAST_BODY else None
        yield due, kind, data if payload is None else change(data, payload)


def _kind(payload: Payload) -> str:
    return str(payload.get("type", ""))


@fault("changing-id", "a healthy answer whose later half has another id")
def changing_id(script: Script) -> Plan:
    seen = iter(range(10**9))

    def change(event: bytes, payload: Payload) -> bytes:
        if "id" in payload and next(seen) > script.half:
            return _with(event, payload | {"id": f"{payload['id']}-other"})
        if _kind(payload) == "response.completed":
            response = payload["response"]
            return _with(event, payload | {"response": response | {"id": f"{response['id']}-other"}})
        return event

    yield from _each(script, change)


@fault("same-id", "a healthy answer whose id is that of every other one")
def same_id(script: Script) -> Plan:
    suffix = script.dialogue.identity.suffix.encode()
    for due, kind, data in script.whole():
        yield due, kind, data.replace(suffix, b"0" * len(suffix)) if kind <= LAST_BODY else data


@fault("rewritten", "a healthy answer in which one word is not what the model said, another one each time")
def rewritten(script: Script) -> Plan:
    word = script.dialogue.identity.suffix.encode()
    for due, kind, data in script.whole():
        # In echoes too: the answer still agrees with itself.
        yield due, kind, data.replace(b"sea ", word + b" ") if kind <= LAST_BODY else data


@fault("named-chat-events", "a healthy answer with event lines also where the protocol has none")
def named_chat_events(script: Script) -> Plan:
    yield from _each(
        script, lambda event, _: event if event.startswith(b"event:") else b"event: chunk\n" + event
    )


@fault("two-data-lines", "a healthy answer whose JSON stands in two data lines each")
def two_data_lines(script: Script) -> Plan:
    def change(event: bytes, payload: Payload) -> bytes:
        head, _, body = event.partition(_DATA + b"{")
        return head + b"data: {\ndata: " + body

    yield from _each(script, change)


@fault("no-event-lines", "a healthy answer whose events have lost their names, which only the data repeat")
def no_event_lines(script: Script) -> Plan:
    def change(event: bytes, payload: Payload) -> bytes:
        return event.partition(b"\n")[2] if event.startswith(b"event:") else event

    yield from _each(script, change)


@fault("other-event-names", "a healthy answer in which one event's name is not the type in its data")
def other_event_names(script: Script) -> Plan:
    told = iter((True,))

    def change(event: bytes, payload: Payload) -> bytes:
        if event.startswith(b"event:") and _kind(payload).endswith("delta") and next(told, False):
            return b"event: gateway.delta\n" + event.partition(b"\n")[2]
        return event

    yield from _each(script, change)


def _nowhere(script: Script) -> str:
    return "empty" if script.circumstances.protocol == "chat" else "completed"


@fault("text-elsewhere", "a healthy answer whose text is not where the Chat protocol has it", _nowhere)
def text_elsewhere(script: Script) -> Plan:
    def change(event: bytes, payload: Payload) -> bytes:
        if choices := payload.get("choices"):
            delta = choices[0].pop("delta")
            moved = {"delta": {}, "text": delta.get("content")} if "content" in delta else {"delta": delta}
            return _with(event, payload | {"choices": [choices[0] | moved]})
        return event

    yield from _each(script, change)


@fault("usage-first", "a healthy answer whose token counts come before its finish reason")
def usage_first(script: Script) -> Plan:
    held: Step | None = None
    for step in script.whole():
        payload = _payload(step[2]) if step[1] == EVENT else None
        choices = (payload or {}).get("choices")
        if choices and choices[0].get("finish_reason"):
            held = step
            continue
        counts = held is not None and payload is not None and payload.get("usage")
        if held is not None and not counts:  # nobody asked for counts
            yield held
        yield step
        if held is not None and counts:
            yield held
        held = None


@fault("no-choices", "a chunk without choices in a healthy answer")
def no_choices(script: Script) -> Plan:
    told = iter((True,))
    for due, kind, data in script.whole():
        yield due, kind, data
        payload = _payload(data) if kind == CONTENT else None
        if payload is not None and "choices" in payload and next(told, False):
            del payload["choices"]
            yield due, EVENT, _with(data, payload)


def _without(name: str, about: str, kinds: tuple[str, ...], path: tuple[str, ...]) -> None:
    """Enter a fault that leaves the field at *path* out of the events of *kinds*."""

    def change(event: bytes, payload: Payload) -> bytes:
        if _kind(payload) not in kinds:
            return event
        place = payload
        for key in path[:-1]:
            place = place[key]
        place.pop(path[-1], None)
        return _with(event, payload)

    def plan(script: Script) -> Plan:
        yield from _each(script, change)

    fault(name, about)(plan)


_without("created-without-status", "a healthy answer whose response.created has no status",
         ("response.created",), ("response", "status"))  # fmt: skip
_without("delta-without-place", "a healthy answer whose deltas do not say which item they belong to",
         ("response.output_text.delta",), ("item_id",))  # fmt: skip
_without("start-without-role", "a healthy answer whose message_start has no role",
         ("message_start",), ("message", "role"))  # fmt: skip


@fault("wrong-total", "a healthy answer whose token counts do not add up")
def wrong_total(script: Script) -> Plan:
    def change(event: bytes, payload: Payload) -> bytes:
        usage = payload.get("usage") or (payload.get("response") or {}).get("usage")
        if usage and "total_tokens" in usage:
            usage["total_tokens"] += 1
            return _with(event, payload)
        return event

    yield from _each(script, change)


@fault("no-block-start", "a healthy answer whose blocks are never opened nor closed")
def no_block_start(script: Script) -> Plan:
    for due, kind, data in script.whole():
        if not data.startswith((b"event: content_block_start", b"event: content_block_stop")):
            yield due, kind, data


@fault("role-with-text", "a healthy answer whose role comes with the first text and not before it")
def role_with_text(script: Script) -> Plan:
    waiting: Iterator[bool] | None = None
    for due, kind, data in script.whole():
        payload = _payload(data) if kind in (CONTENT, PROGRESS, EVENT) else None
        choices = (payload or {}).get("choices")
        if payload is None or not choices:
            yield due, kind, data
        elif waiting is None and choices[0]["delta"].get("role"):
            waiting = iter((True,))
        elif waiting is not None and kind == CONTENT and next(waiting, False):
            choices[0]["delta"] = {"role": "assistant"} | choices[0]["delta"]
            yield due, kind, _with(data, payload)
        else:
            yield due, kind, data


@fault(
    "keepalive-as-data",
    "a keepalive written as an event: whoever reads lines parses it as JSON",
    "protocol_error",
)
def keepalive_as_data(script: Script) -> Plan:
    told = False
    for due, kind, data in script.whole():
        yield due, kind, data
        if kind == CONTENT and not told:
            told = True
            # Settled here: a right client is gone before the healthy rest.
            yield due, TERMINAL, b"data: : keepalive\n\n"


@fault(
    "broken-off-500", "a stream that broke off, sent whole under status 500", "http_error", before_stream=True
)
def broken_off_500(script: Script) -> Plan:
    at = script.circumstances
    told = [*script.opening(), *script.tokens(script.half), *script.breaks_off()]
    body = b"".join(data for _, kind, data in told if kind <= LAST_BODY)
    yield 0.0, RAW, answer(500, dict(at.own_headers), body, STREAM_TYPE)

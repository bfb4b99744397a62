"""Statements about Anthropic Messages streams."""

from __future__ import annotations

from typing import Any

from harness.judge.check.answers import WHOLE
from harness.judge.check.observation import Case, Observation, Payload, inner
from harness.judge.check.verdict import Seen, Verdict, fine, wrong

_BLOCK = ("content_block_start", "content_block_delta", "content_block_stop")


def order(case: Case) -> Verdict:
    """`message_start`, per block start, deltas and stop, then `message_delta`, then `message_stop`."""

    def test(stream: Observation) -> Seen | None:
        events = [event for event in stream.events if event.type != "ping"]
        if not stream.ended or not events:
            return None
        fault = _order_fault(events)
        if fault is None:
            return fine(f"{len(events)} events in order")
        event, what = fault
        return wrong(what, event.block.raw, event.block.at_s)

    return case.each(WHOLE, test, protocol="messages")


def _order_fault(events: list[Payload]) -> tuple[Payload, str] | None:
    """Return the first event that is out of order, and why; None if all are in order."""
    state, is_open = "start", False
    for event in events:
        kind = event.type
        if state == "start":
            if kind != "message_start":
                return event, f"{kind or 'an unnamed event'} before message_start"
            state = "blocks"
        elif state == "blocks" and kind in _BLOCK:
            if (kind == "content_block_start") == is_open:
                return event, f"{kind} while {'a' if is_open else 'no'} block is open"
            is_open = kind != "content_block_stop"
        elif state in ("blocks", "closing") and kind == "message_delta":
            if is_open:
                return event, "message_delta while a block is open"
            state = "closing"
        elif state == "closing" and kind == "message_stop":
            state = "end"
        else:
            return event, f"{kind or 'an unnamed event'} in the state {state}"
    return None if state == "end" else (events[-1], "no message_stop at the end")


def delta(case: Case) -> Verdict:
    """`message_delta` carries the stop reason and the output count."""

    def test(stream: Observation) -> Seen | None:
        found = [(e, body) for e, body in stream.payloads if e.type == "message_delta"]
        if not found:
            return None
        event, body = found[-1]
        reason, output = inner(body, "delta", "stop_reason"), inner(body, "usage", "output_tokens")
        right = bool(reason) and isinstance(output, int)
        return Seen(
            right, f"stop_reason {reason!r}, output_tokens {output!r}", event.block.raw, event.block.at_s
        )

    return case.each(WHOLE, test, protocol="messages")


def shapes(case: Case) -> Verdict:
    """`message_start`, text deltas and `message_stop` have the documented fields."""

    def test(stream: Observation) -> Seen | None:
        if not stream.is_stream or not stream.payloads:
            return None
        for event, body in stream.payloads:
            missing = _missing(event.type, body)
            if missing:
                return wrong(f"{event.type} without {missing}", event.block.raw, event.block.at_s)
        return fine(f"{len(stream.payloads)} events as documented", stream.payloads[0][0].block.raw)

    return case.each(WHOLE, test, protocol="messages")


def _missing(kind: str, body: dict[str, Any]) -> str:
    if kind == "message_start":
        message = body.get("message")
        wanted = {
            "id": bool(inner(body, "message", "id")),
            "role assistant": inner(body, "message", "role") == "assistant",
            "model": bool(inner(body, "message", "model")),
            "empty content": isinstance(message, dict) and message.get("content") == [],
            "usage.input_tokens": isinstance(inner(body, "message", "usage", "input_tokens"), int),
        }
        return ", ".join(name for name, there in wanted.items() if not there)
    if kind == "content_block_delta" and inner(body, "delta", "type") == "text_delta":
        return "" if isinstance(inner(body, "delta", "text"), str) and "index" in body else "text and index"
    return ""

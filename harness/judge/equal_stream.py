"""A stream that means what a timeline says: one small event per entry, of the right kind in its protocol.

Timelines hold times and kinds and no text, so this is what can be judged of them again. What a kind leaves
open is chosen so that the stream is well formed: the terminal announces its finish itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any


def equal_stream(protocol: str, kinds: Iterable[str]) -> Iterator[bytes]:
    """Yield the bytes for each of *kinds*. Raises `ValueError` for a protocol or kind that nobody knows."""
    if protocol not in _EVENTS:
        raise ValueError(f"unknown protocol {protocol!r}")
    events = _EVENTS[protocol]
    for kind in kinds:
        if kind == "comment":
            yield b": comment\n\n"
        elif kind in ("lifecycle", "aux", "media", "usage"):
            yield events["lifecycle"]
        elif kind in events:
            yield events[kind]
        else:
            raise ValueError(f"unknown kind {kind!r}")


def _data(body: dict[str, Any], named: bool = True) -> bytes:
    name = f"event: {body['type']}\n" if named and "type" in body else ""
    return f"{name}data: {json.dumps(body)}\n\n".encode()


def _chat(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return _data({"object": "chat.completion.chunk", "choices": [choice]})


def _block(kind: str, field: str) -> bytes:
    delta = {"type": kind, field: "x"}
    return _data({"type": "content_block_delta", "index": 0, "delta": delta})


_PING = b"event: ping\ndata: {}\n\n"
_BROKEN = b"data: {broken\n\n"
_ERROR: dict[str, Any] = {"error": {"type": "unknown", "message": "a timeline keeps no words"}}

_EVENTS: dict[str, dict[str, bytes]] = {
    "chat": {
        "lifecycle": _chat({}),
        "content": _chat({"content": "x"}),
        "reasoning": _chat({"reasoning_content": "x"}),
        "tool": _chat({"tool_calls": [{"index": 0, "function": {"arguments": "x"}}]}),
        "refusal": _chat({"refusal": "x"}),
        "keepalive": _PING,
        "terminal": _chat({}, "stop") + b"data: [DONE]\n\n",
        "error": _data(_ERROR),
        "broken": _BROKEN,
    },
    "responses": {
        "lifecycle": _data({"type": "response.in_progress", "response": {}}),
        "content": _data({"type": "response.output_text.delta", "delta": "x"}),
        "reasoning": _data({"type": "response.reasoning_text.delta", "delta": "x"}),
        "tool": _data({"type": "response.function_call_arguments.delta", "delta": "x"}),
        "refusal": _data({"type": "response.refusal.delta", "delta": "x"}),
        "keepalive": _PING,
        "terminal": _data({"type": "response.completed", "response": {"status": "completed"}}),
        "error": _data({"type": "error", **_ERROR}),
        "broken": _BROKEN,
    },
    "messages": {
        "lifecycle": _data({"type": "content_block_start", "index": 0, "content_block": {"type": "text"}}),
        "content": _block("text_delta", "text"),
        "reasoning": _block("thinking_delta", "thinking"),
        "tool": _block("input_json_delta", "partial_json"),
        "refusal": _block("text_delta", "text"),
        "keepalive": _PING,
        "terminal": _data({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})
        + _data({"type": "message_stop"}),
        "error": _data({"type": "error", **_ERROR}),
        "broken": _BROKEN,
    },
}

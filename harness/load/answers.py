"""The text of an answer, out of the raw bytes of its stream: what the next turn of a conversation quotes."""

from __future__ import annotations

from typing import Any

import msgspec

from harness.wire.sse import Event, SseParser


def text_of(protocol: str, raw: bytes) -> str:
    """Return what a user of *protocol* saw in *raw*; whatever is no text of the answer is left out."""
    pick = _PICKS[protocol]
    parts: list[str] = []
    for item in SseParser().feed(raw):
        if not isinstance(item, Event):
            continue
        try:
            data = msgspec.json.decode(item.raw)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue  # `[DONE]`, or what the stream's own judge has complained about
        text = pick(data) if isinstance(data, dict) else None
        if isinstance(text, str):
            parts.append(text)
    return "".join(parts)


def _chat(data: dict[str, Any]) -> object:
    choices = data.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    delta = first.get("delta") if isinstance(first, dict) else None
    return delta.get("content") if isinstance(delta, dict) else None


def _responses(data: dict[str, Any]) -> object:
    return data.get("delta") if data.get("type") == "response.output_text.delta" else None


def _messages(data: dict[str, Any]) -> object:
    delta = data.get("delta") if data.get("type") == "content_block_delta" else None
    return delta.get("text") if isinstance(delta, dict) else None


_PICKS = {"chat": _chat, "responses": _responses, "messages": _messages}

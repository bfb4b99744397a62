"""Anthropic Messages: named events, blocks with a start and a stop, `message_stop` at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.sim.dialogues.base import Dialogue, ErrorFacts, Usage, named_event
from harness.sim.words import TOOL_NAME

_STOP = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool": "tool_use",
    "filter": "refusal",
    "refusal": "refusal",
}
_MARK = "\x00"
_MARK_JSON = b"\\u0000"


class Messages(Dialogue):
    """One message stream."""

    _index = -1

    def lifecycle(self) -> list[bytes]:
        message: dict[str, Any] = {"id": f"msg_{self.identity.suffix}"}
        if not self.accent.abbreviated:
            message |= {"type": "message"}
        message |= {"role": "assistant", "model": self.identity.model, "content": []}
        usage = {"input_tokens": self.usage_in, "output_tokens": 1}
        if not self.accent.abbreviated:
            message |= {"stop_reason": None, "stop_sequence": None}
            usage |= {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
        return [self._event({"type": "message_start", "message": message | {"usage": usage}})]

    def begin(self, channel: str) -> list[bytes]:
        self._index += 1
        if self.accent.abbreviated:
            return []
        block: dict[str, Any] = {"type": "text", "text": ""}
        if channel == "reasoning":
            block = {"type": "thinking", "thinking": "", "signature": ""}
        elif channel == "tool":
            block = {
                "type": "tool_use",
                "id": f"toolu_{self.identity.suffix}",
                "name": TOOL_NAME,
                "input": {},
            }
        return [self._event({"type": "content_block_start", "index": self._index, "content_block": block})]

    def renderer(self, channel: str) -> Callable[[bytes], bytes]:
        delta = {
            "content": {"type": "text_delta", "text": _MARK},
            "refusal": {"type": "text_delta", "text": _MARK},
            "reasoning": {"type": "thinking_delta", "thinking": _MARK},
            "tool": {"type": "input_json_delta", "partial_json": _MARK},
        }[channel]
        event = self._event({"type": "content_block_delta", "index": self._index, "delta": delta})
        before, after = event.split(_MARK_JSON)
        return lambda piece: before + piece + after

    def finish(self, channel: str, text: str) -> list[bytes]:
        if self.accent.abbreviated:
            return []
        events = []
        if channel == "reasoning":
            delta = {"type": "signature_delta", "signature": "c2ltdWxhdGVk"}
            events.append(self._event({"type": "content_block_delta", "index": self._index, "delta": delta}))
        events.append(self._event({"type": "content_block_stop", "index": self._index}))
        return events

    def ending(self, finish: str, usage: Usage | None) -> tuple[list[bytes], list[bytes]]:
        delta: dict[str, Any] = {"stop_reason": _STOP[finish]}
        if not self.accent.abbreviated:
            delta |= {"stop_sequence": None}
        closing: dict[str, Any] = {"type": "message_delta", "delta": delta}
        if usage is not None:
            closing |= {"usage": {"output_tokens": usage.output}}
        return [self._event(closing)], [self._event({"type": "message_stop"}), *self.done()]

    def error(self, facts: ErrorFacts) -> bytes:
        if facts.shape == "data" or self.accent.data_errors:
            return self.data_error(facts)
        return self._event({"type": "error", "error": {"type": facts.type, "message": facts.message}})

    def whole(self, text: str, finish: str, usage: Usage) -> dict[str, Any]:
        return {
            "id": f"msg_{self.identity.suffix}",
            "type": "message",
            "role": "assistant",
            "model": self.identity.model,
            "content": [{"type": "text", "text": text}],
            "stop_reason": _STOP[finish],
            "stop_sequence": None,
            "usage": {"input_tokens": usage.input, "output_tokens": usage.output},
        }

    @staticmethod
    def _event(payload: dict[str, Any]) -> bytes:
        return named_event(payload["type"], payload)

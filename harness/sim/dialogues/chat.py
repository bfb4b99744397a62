"""OpenAI Chat Completions: unnamed events, one JSON chunk each, `[DONE]` at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.sim.dialogues.base import DONE, Dialogue, ErrorFacts, Usage, data_event
from harness.sim.words import TOOL_NAME

_FINISH = {
    "stop": "stop",
    "length": "length",
    "tool": "tool_calls",
    "filter": "content_filter",
    "refusal": "stop",
}
# A piece is put in place of this mark; no field holds a control character.
_MARK = "\x00"
_MARK_JSON = b"\\u0000"


class Chat(Dialogue):
    """One `chat.completion.chunk` stream."""

    naming_a_tool_is_progress = True
    _role_told = False

    def _chunk(self, delta: dict[str, Any] | None, finish: str | None = None) -> dict[str, Any]:
        who = self.identity
        chunk: dict[str, Any] = {
            "id": f"chatcmpl-{who.id_prefix}{who.suffix}",
            "object": "chat.completion.chunk",
        }
        if not self.accent.abbreviated:
            chunk |= {"created": who.created}
        chunk |= {"model": who.model}
        if delta is None:
            return chunk | {"choices": []}
        choice: dict[str, Any] = {"index": 0, "delta": delta}
        if not self.accent.abbreviated:
            choice |= {"logprobs": None}
            chunk |= {"system_fingerprint": "fp_simulated"}
            if self.include_usage:
                chunk |= {"usage": None}
        return chunk | {"choices": [choice | {"finish_reason": finish}]}

    def lifecycle(self) -> list[bytes]:
        if self.accent.abbreviated and self.accent.role_with_text:
            return []
        return [data_event(self._chunk({"role": "assistant", "content": ""}))]

    def begin(self, channel: str) -> list[bytes]:
        if channel != "tool":
            return []
        call: dict[str, Any] = {
            "index": 0,
            "id": f"call_{self.identity.suffix}",
            "type": "function",
            "function": {"name": TOOL_NAME, "arguments": ""},
        }
        return [data_event(self._chunk({"tool_calls": [call]}))]

    def renderer(self, channel: str) -> Callable[[bytes], bytes]:
        deltas: dict[str, dict[str, Any]] = {
            "content": {"content": _MARK},
            "reasoning": {"reasoning_content": _MARK},
            "refusal": {"refusal": _MARK},
            "tool": {"tool_calls": [{"index": 0, "function": {"arguments": _MARK}}]},
        }
        delta = deltas[channel]
        before, after = data_event(self._chunk(delta)).split(_MARK_JSON)
        if not (self.accent.abbreviated and self.accent.role_with_text) or self._role_told:
            return lambda piece: before + piece + after
        first_before, first_after = data_event(self._chunk({"role": "assistant"} | delta)).split(_MARK_JSON)

        def render(piece: bytes) -> bytes:
            if self._role_told:
                return before + piece + after
            self._role_told = True
            return first_before + piece + first_after

        return render

    def finish(self, channel: str, text: str) -> list[bytes]:
        return []

    def ending(self, finish: str, usage: Usage | None) -> tuple[list[bytes], list[bytes]]:
        events = [data_event(self._chunk({}, _FINISH[finish]))]
        if self.include_usage and usage is not None:
            events.append(data_event(self._chunk(None) | {"usage": self._usage(usage)}))
        return events, [DONE]

    def error(self, facts: ErrorFacts) -> bytes:
        if facts.shape or self.accent.data_errors:
            return self.data_error(facts)
        body = {"message": facts.message, "type": facts.type, "param": None, "code": facts.code}
        return data_event({"error": body})

    def whole(self, text: str, finish: str, usage: Usage) -> dict[str, Any]:
        message = {"role": "assistant", "content": text, "refusal": None}
        choice: dict[str, Any] = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": _FINISH[finish],
        }
        return self._chunk(None) | {"object": "chat.completion", "created": self.identity.created,
                                    "choices": [choice], "usage": self._usage(usage)}  # fmt: skip

    @staticmethod
    def _usage(usage: Usage) -> dict[str, Any]:
        return {
            "prompt_tokens": usage.input,
            "completion_tokens": usage.output,
            "total_tokens": usage.input + usage.output,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
        }

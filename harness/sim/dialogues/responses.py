"""OpenAI Responses: named events with a running number, items and parts, a whole response at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.sim.dialogues.base import Dialogue, ErrorFacts, Usage, named_event
from harness.sim.words import TOOL_NAME

_MARK = "\x00"
_MARK_JSON = b"\\u0000"
_NUMBER_MARK = -1
_NUMBER_JSON = b'"sequence_number":-1'

_DELTA = {
    "content": "response.output_text.delta",
    "refusal": "response.refusal.delta",
    "reasoning": "response.reasoning_summary_text.delta",
    "tool": "response.function_call_arguments.delta",
}


class Responses(Dialogue):
    """One response stream."""

    _number = 0
    _index = -1

    def lifecycle(self) -> list[bytes]:
        created = self._event({"type": "response.created"}, response=self._response("in_progress"))
        if self.accent.abbreviated:
            return [created]
        return [
            created,
            self._event({"type": "response.in_progress"}, response=self._response("in_progress")),
        ]

    def begin(self, channel: str) -> list[bytes]:
        self._index += 1
        if self.accent.abbreviated:
            return []
        item = self._item(channel, "in_progress", "")
        events = [self._event({"type": "response.output_item.added"}, output_index=self._index, item=item)]
        if channel == "reasoning":
            part = {"type": "summary_text", "text": ""}
            added = {"type": "response.reasoning_summary_part.added"}
            events.append(self._event(added, **self._place("summary_index"), part=part))
        elif channel != "tool":
            added = {"type": "response.content_part.added"}
            events.append(self._event(added, **self._place(), part=self._part(channel, "")))
        return events

    def renderer(self, channel: str) -> Callable[[bytes], bytes]:
        payload: dict[str, Any] = {"type": _DELTA[channel]}
        if not self.accent.abbreviated:
            payload |= {"sequence_number": _NUMBER_MARK}
        where = {"reasoning": "summary_index", "tool": ""}.get(channel, "content_index")
        payload |= self._place(where) | {"delta": _MARK}
        if channel == "content" and not self.accent.abbreviated:
            payload |= {"logprobs": []}
        event = named_event(payload["type"], payload)
        before, after = event.split(_MARK_JSON)
        if self.accent.abbreviated:
            return lambda piece: before + piece + after
        head, rest = before.split(_NUMBER_JSON)
        head += b'"sequence_number":'

        def render(piece: bytes) -> bytes:
            self._number += 1
            return b"%b%d%b%b%b" % (head, self._number - 1, rest, piece, after)

        return render

    def finish(self, channel: str, text: str) -> list[bytes]:
        self._items = [*self._items, self._item(channel, "completed", text)]
        if self.accent.abbreviated:
            return []
        events = []
        if channel == "tool":
            done = {"type": "response.function_call_arguments.done"}
            events.append(self._event(done, **self._place(""), name=TOOL_NAME, arguments=text))
        elif channel == "reasoning":
            where = self._place("summary_index")
            events.append(self._event({"type": "response.reasoning_summary_text.done"}, **where, text=text))
            part = {"type": "summary_text", "text": text}
            events.append(self._event({"type": "response.reasoning_summary_part.done"}, **where, part=part))
        else:
            where = self._place()
            if channel == "content":
                events.append(
                    self._event({"type": "response.output_text.done"}, **where, text=text, logprobs=[])
                )
            else:
                events.append(self._event({"type": "response.refusal.done"}, **where, refusal=text))
            done = {"type": "response.content_part.done"}
            events.append(self._event(done, **where, part=self._part(channel, text)))
        item = self._items[-1]
        events.append(self._event({"type": "response.output_item.done"}, output_index=self._index, item=item))
        return events

    _items: list[dict[str, Any]] = []  # noqa: RUF012 - never changed in place, `finish` makes a new list

    def ending(self, finish: str, usage: Usage | None) -> tuple[list[bytes], list[bytes]]:
        name, response = "response.completed", self._response("completed", usage)
        if finish in ("length", "filter"):
            name, response = "response.incomplete", self._response("incomplete", usage)
            reason = "max_output_tokens" if finish == "length" else "content_filter"
            response |= {"incomplete_details": {"reason": reason}}
        return [], [self._event({"type": name}, response=response), *self.done()]

    def error(self, facts: ErrorFacts) -> bytes:
        if facts.shape == "data" or self.accent.data_errors:
            return self.data_error(facts)
        if facts.shape == "event":
            error = {"type": "error", "code": facts.code, "message": facts.message, "param": None}
            return self._event(error)
        response = self._response("failed")
        response |= {"error": {"code": facts.code or facts.type, "message": facts.message}}
        return self._event({"type": "response.failed"}, response=response)

    def whole(self, text: str, finish: str, usage: Usage) -> dict[str, Any]:
        self._index = 0
        self._items = [self._item("content", "completed", text)]
        response = self._response("incomplete" if finish == "length" else "completed", usage)
        if finish == "length":
            response |= {"incomplete_details": {"reason": "max_output_tokens"}}
        return response

    def _event(self, kind: dict[str, Any], **fields: Any) -> bytes:
        if not self.accent.abbreviated:
            kind = kind | {"sequence_number": self._number}
            self._number += 1
        return named_event(kind["type"], kind | fields)

    def _place(self, index: str = "content_index") -> dict[str, Any]:
        place: dict[str, Any] = {"item_id": self._item_id(), "output_index": self._index}
        return place | {index: 0} if index else place

    def _item_id(self) -> str:
        return f"item_{self._index}_{self.identity.suffix}" if self._index else f"msg_{self.identity.suffix}"

    @staticmethod
    def _part(channel: str, text: str) -> dict[str, Any]:
        if channel == "refusal":
            return {"type": "refusal", "refusal": text}
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}

    def _item(self, channel: str, status: str, text: str) -> dict[str, Any]:
        item: dict[str, Any] = {"id": self._item_id(), "status": status}
        if channel == "tool":
            call = {"type": "function_call", "call_id": f"call_{self.identity.suffix}", "name": TOOL_NAME}
            return item | call | {"arguments": text}
        if channel == "reasoning":
            return item | {
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": text}] if text else [],
            }
        content = [self._part(channel, text)] if text else []
        return item | {"type": "message", "role": "assistant", "content": content}

    def _response(self, status: str, usage: Usage | None = None) -> dict[str, Any]:
        response: dict[str, Any] = {"id": f"resp_{self.identity.suffix}"}
        if self.accent.abbreviated:
            response |= {"status": status}
        else:
            response |= {
                "object": "response",
                "created_at": self.identity.created,
                "status": status,
                "error": None,
                "incomplete_details": None,
                "instructions": None,
                "metadata": {},
                "model": self.identity.model,
                "output": self._items,
                "parallel_tool_calls": True,
                "temperature": 1.0,
                "tool_choice": "auto",
                "tools": [],
                "top_p": 1.0,
                "usage": None,
            }
        if usage is not None:
            response |= {"usage": {
                "input_tokens": usage.input,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens": usage.output,
                "output_tokens_details": {"reasoning_tokens": usage.reasoning},
                "total_tokens": usage.input + usage.output,
            }}  # fmt: skip
        return response

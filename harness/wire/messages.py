"""Anthropic Messages: named events; ``message_start``, blocks, ``message_delta``, ``message_stop``.

The machine is `NEXT`: state and event give the next state or the violation. The stream goes on
after a violation in the state the event would have led to, as a tolerant client does.
"""

from __future__ import annotations

from typing import Any, Final

from harness.wire.grammar import (
    PING_NAMES,
    Grammar,
    as_dict,
    as_int,
    as_text,
    looks_like_error,
    overwrite,
    text_signal,
)
from harness.wire.signals import (
    AUX,
    CONTENT,
    KEEPALIVE,
    LIFECYCLE,
    PROGRESS,
    REASONING,
    TERMINAL,
    TOOL,
    USAGE,
    VISIBLE,
    Finish,
    Usage,
)  # fmt: skip

START, BETWEEN, IN_BLOCK, CLOSING, DONE = "start", "between", "in_block", "closing", "done"

# (state, event) -> (next state, violation or None)
NEXT: Final[dict[tuple[str, str], tuple[str, str | None]]] = {
    (START, "message_start"): (BETWEEN, None),
    (START, "content_block_start"): (IN_BLOCK, "msg.no_message_start"),
    (START, "content_block_delta"): (BETWEEN, "msg.no_message_start"),
    (START, "content_block_stop"): (BETWEEN, "msg.no_message_start"),
    (START, "message_delta"): (CLOSING, "msg.no_message_start"),
    (START, "message_stop"): (DONE, "msg.no_message_start"),
    (BETWEEN, "message_start"): (BETWEEN, "msg.message_start_twice"),
    (BETWEEN, "content_block_start"): (IN_BLOCK, None),
    (BETWEEN, "content_block_delta"): (BETWEEN, "msg.no_block_start"),
    (BETWEEN, "content_block_stop"): (BETWEEN, "msg.no_block_start"),
    (BETWEEN, "message_delta"): (CLOSING, None),
    (BETWEEN, "message_stop"): (DONE, "msg.stop_without_reason"),
    (IN_BLOCK, "message_start"): (IN_BLOCK, "msg.message_start_twice"),
    (IN_BLOCK, "content_block_start"): (IN_BLOCK, "msg.interleaved"),
    (IN_BLOCK, "content_block_delta"): (IN_BLOCK, None),
    (IN_BLOCK, "content_block_stop"): (BETWEEN, None),
    (IN_BLOCK, "message_delta"): (CLOSING, "msg.block_open_at_end"),
    (IN_BLOCK, "message_stop"): (DONE, "msg.block_open_at_end"),
    (CLOSING, "message_start"): (CLOSING, "msg.message_start_twice"),
    (CLOSING, "content_block_start"): (IN_BLOCK, "msg.block_after_delta"),
    (CLOSING, "content_block_delta"): (CLOSING, "msg.block_after_delta"),
    (CLOSING, "content_block_stop"): (CLOSING, "msg.block_after_delta"),
    (CLOSING, "message_delta"): (CLOSING, None),
    (CLOSING, "message_stop"): (DONE, None),
}
EVENTS: Final = frozenset(event for _, event in NEXT)

# delta type -> (channel, field with the text)
DELTAS: Final[dict[str, tuple[int, str]]] = {
    "text_delta": (CONTENT, "text"),
    "thinking_delta": (REASONING, "thinking"),
    "input_json_delta": (TOOL, "partial_json"),
    "signature_delta": (AUX, ""),
    "citations_delta": (AUX, ""),
    "compaction_delta": (AUX, ""),
}

# block type -> delta types that fit it; blocks that are not named here come whole.
FITTING: Final[dict[str, frozenset[str]]] = {
    "text": frozenset({"text_delta", "citations_delta"}),
    "thinking": frozenset({"thinking_delta", "signature_delta"}),
    "tool_use": frozenset({"input_json_delta"}),
    "server_tool_use": frozenset({"input_json_delta"}),
    "mcp_tool_use": frozenset({"input_json_delta"}),
    "compaction": frozenset({"compaction_delta"}),
}

CALLS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})

FINISH: Final[dict[str, Finish]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool",
    "refusal": "refusal",
    "pause_turn": "pause",
}


class MessagesGrammar(Grammar):
    """One Messages stream."""

    __slots__ = ("_blocks", "_index", "_kind", "_state")

    prefix = "msg"
    after_terminal_rule = "msg.after_stop"

    def __init__(self, *, usage_requested: bool = False) -> None:
        super().__init__(usage_requested=usage_requested)
        self._state = START
        self._index = -1  # of the open block
        self._kind: str | None = None
        self._blocks = 0

    def knows(self, name: str) -> bool:
        return name in EVENTS

    def chunk(self, name: str, body: dict[str, Any]) -> int:
        facts = self.facts
        kind = body.get("type")
        if name == "error":
            return self.error(body, name)
        if kind != name:
            kind = self._settle_name(name, kind)
        if kind == "content_block_delta" and self._state is IN_BLOCK and body.get("index") == self._index:
            return self._delta(body)  # the path of nearly every event
        if kind in PING_NAMES:
            return KEEPALIVE
        if kind == "error":
            return self.error(body, name)
        if kind not in EVENTS:
            if name == "message" and (shape := looks_like_error(body)):
                return self.error(body, name, shape)
            facts.violate("msg.unknown_event")
            return LIFECYCLE
        state, violation = NEXT[self._state, kind]
        if violation is not None:
            facts.violate(violation)
        signal = self._take(kind, body)
        self._state = state
        return signal

    def _settle_name(self, name: str, kind: Any) -> str:
        """Which of the two names counts when they differ: the data's, if it is one."""
        if name == "message":
            self.facts.violate("msg.no_event_name")
            return as_text(kind)
        if name in PING_NAMES:
            return name
        if not isinstance(kind, str):
            self.facts.violate("msg.no_type")
            return name
        self.facts.violate("msg.type_mismatch")
        return kind if kind in EVENTS else name

    def _take(self, kind: str, body: dict[str, Any]) -> int:
        match kind:
            case "message_start":
                return self._message_start(as_dict(body.get("message")))
            case "content_block_start":
                return self._block_start(body)
            case "content_block_delta":
                if self._state is IN_BLOCK:
                    self.facts.violate("msg.interleaved")
                return self._delta(body)
            case "content_block_stop":
                if self._state is IN_BLOCK and body.get("index") != self._index:
                    self.facts.violate("msg.interleaved")
                return AUX
            case "message_delta":
                return self._message_delta(body)
        self.facts.terminal = True
        if not self.facts.finished:
            if self._state is CLOSING:
                self.facts.violate("msg.stop_without_reason")
            self.facts.finish = "other"
        return TERMINAL

    def _message_start(self, message: dict[str, Any]) -> int:
        if isinstance(message.get("id"), str):
            self.facts.response_id = message["id"]
        if usage := as_dict(message.get("usage")):
            # Its output count is a placeholder; only the one of message_delta counts.
            self.facts.usage = Usage(
                input=as_int(usage.get("input_tokens")), cached=as_int(usage.get("cache_read_input_tokens"))
            )
        return LIFECYCLE

    def _block_start(self, body: dict[str, Any]) -> int:
        index, block = body.get("index"), as_dict(body.get("content_block"))
        if index != self._blocks:
            self.facts.violate("msg.bad_index")
        self._index = index if isinstance(index, int) else self._blocks
        self._blocks = max(self._blocks, self._index) + 1
        kind = block.get("type")
        self._kind = kind if isinstance(kind, str) else None
        signal = text_signal(block.get("text"), CONTENT) | text_signal(block.get("thinking"), REASONING)
        if self._kind in CALLS:
            self.facts.has_output = True  # a call without arguments is an answer too
            if block.get("input"):
                signal |= TOOL | VISIBLE  # all arguments at once
        if signal & PROGRESS:
            self.facts.has_output = True
        return signal or AUX

    def _delta(self, body: dict[str, Any]) -> int:
        delta = as_dict(body.get("delta"))
        kind = delta.get("type")
        known = DELTAS.get(kind) if isinstance(kind, str) else None
        if known is None:
            self.facts.violate("msg.unknown_delta")
            return AUX
        if self._state is IN_BLOCK and kind not in FITTING.get(self._kind or "", ()):
            self.facts.violate("msg.delta_kind")
        channel, field = known
        if channel == AUX:
            return AUX
        signal = text_signal(delta.get(field), channel)
        if signal & PROGRESS:
            self.facts.has_output = True
        return signal or LIFECYCLE

    def _message_delta(self, body: dict[str, Any]) -> int:
        facts = self.facts
        reason = as_dict(body.get("delta")).get("stop_reason")
        if isinstance(reason, str) and reason:
            facts.finish = FINISH.get(reason, "other")
            facts.finished = True
        usage = as_dict(body.get("usage"))
        if usage:
            known = facts.usage or Usage()
            details = as_dict(usage.get("output_tokens_details"))
            facts.usage = Usage(
                input=overwrite(known.input, usage.get("input_tokens")),
                output=overwrite(known.output, usage.get("output_tokens")),
                reasoning=overwrite(known.reasoning, details.get("thinking_tokens")),
                cached=overwrite(known.cached, usage.get("cache_read_input_tokens")),
            )
        return USAGE

    def end_of_body(self) -> None:
        facts = self.facts
        if facts.finished and not facts.terminal and facts.error is None:
            facts.violate("msg.stop_missing")

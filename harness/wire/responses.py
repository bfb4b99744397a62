"""OpenAI Responses: named events, ``response.created`` first, one terminal ``response.…`` event last.

Three nested machines. The response: START until ``response.created`` (or ``.queued``), RUN until a
terminal. Items, keyed by ``output_index``, and parts, keyed by (``output_index``,
``content_index``), are open between their ``.added`` and ``.done``. Items may overlap in time, so
nothing is "current". `DELTAS`, `OPENS`, `CLOSES` and `TERMINALS` are the tables.
"""

from __future__ import annotations

from typing import Any, Final

from harness.wire.grammar import PING_NAMES, Grammar, as_dict, as_int, as_text, looks_like_error, text_signal
from harness.wire.signals import (
    AUX,
    CONTENT,
    KEEPALIVE,
    LIFECYCLE,
    MEDIA,
    REASONING,
    REFUSAL,
    TERMINAL,
    TOOL,
    Finish,
    Usage,
)  # fmt: skip

# event -> (channel, field with the output)
DELTAS: Final[dict[str, tuple[int, str]]] = {
    "response.output_text.delta": (CONTENT, "delta"),
    "response.refusal.delta": (REFUSAL, "delta"),
    "response.reasoning_text.delta": (REASONING, "delta"),
    "response.reasoning_summary_text.delta": (REASONING, "delta"),
    "response.function_call_arguments.delta": (TOOL, "delta"),
    "response.custom_tool_call_input.delta": (TOOL, "delta"),
    "response.mcp_call_arguments.delta": (TOOL, "delta"),
    "response.code_interpreter_call_code.delta": (TOOL, "delta"),
    "response.shell_call_command.added": (TOOL, "command"),
    "response.shell_call_command.delta": (TOOL, "delta"),
    "response.audio.delta": (MEDIA, "delta"),
    "response.audio.transcript.delta": (MEDIA, "delta"),
    "response.image_generation_call.partial_image": (MEDIA, "partial_image_b64"),
}

LIFECYCLES: Final = frozenset({"response.created", "response.queued", "response.in_progress"})

# What opens an item or part, and what closes it: event -> the index fields that make its key.
OPENS: Final[dict[str, tuple[str, ...]]] = {
    "response.output_item.added": ("output_index",),
    "response.content_part.added": ("output_index", "content_index"),
}
CLOSES: Final[dict[str, tuple[str, ...]]] = {
    "response.output_item.done": ("output_index",),
    "response.content_part.done": ("output_index", "content_index"),
}

# Deltas that live in a part; the others live in an item, but shell commands and audio in neither.
IN_PART: Final = frozenset(
    {"response.output_text.delta", "response.refusal.delta", "response.reasoning_text.delta"}
)
IN_ITEM: Final = frozenset({
    "response.reasoning_summary_text.delta", "response.function_call_arguments.delta",
    "response.custom_tool_call_input.delta", "response.mcp_call_arguments.delta",
    "response.code_interpreter_call_code.delta",
})  # fmt: skip

# ``.done`` echoes whose text must equal the deltas before it: event -> (its delta event, field)
ECHOES: Final[dict[str, tuple[str, str]]] = {
    "response.output_text.done": ("response.output_text.delta", "text"),
    "response.refusal.done": ("response.refusal.delta", "refusal"),
    "response.reasoning_text.done": ("response.reasoning_text.delta", "text"),
    "response.reasoning_summary_text.done": ("response.reasoning_summary_text.delta", "text"),
    "response.function_call_arguments.done": ("response.function_call_arguments.delta", "arguments"),
    "response.custom_tool_call_input.done": ("response.custom_tool_call_input.delta", "input"),
    "response.mcp_call_arguments.done": ("response.mcp_call_arguments.delta", "arguments"),
    "response.code_interpreter_call_code.done": ("response.code_interpreter_call_code.delta", "code"),
    "response.audio.transcript.done": ("response.audio.transcript.delta", "transcript"),
}

TERMINALS: Final = frozenset({
    "response.completed", "response.incomplete", "response.failed", "response.done", "error",
})  # fmt: skip

_STATUS_EVENTS: Final = frozenset(
    f"response.{tool}.{status}"
    for tool, statuses in {
        "mcp_call": ("in_progress", "completed", "failed"),
        "mcp_list_tools": ("in_progress", "completed", "failed"),
        "code_interpreter_call": ("in_progress", "interpreting", "completed"),
        "file_search_call": ("in_progress", "searching", "completed"),
        "web_search_call": ("in_progress", "searching", "completed"),
        "image_generation_call": ("in_progress", "generating", "completed"),
        "compaction": ("compacting",),
    }.items()
    for status in statuses
)

AUXES: Final = _STATUS_EVENTS | {
    "response.output_text.done", "response.output_text.annotation.added", "response.refusal.done",
    "response.reasoning_text.done", "response.reasoning_summary_part.added",
    "response.reasoning_summary_part.done", "response.reasoning_summary_text.done",
    "response.function_call_arguments.done", "response.custom_tool_call_input.done",
    "response.mcp_call_arguments.done",
    "response.code_interpreter_call_code.done", "response.shell_call_command.done",
    "response.shell_call_output_content.delta", "response.shell_call_output_content.done",
    "response.audio.done", "response.audio.transcript.done",
}  # fmt: skip

EVENTS: Final = LIFECYCLES | TERMINALS | AUXES | DELTAS.keys() | OPENS.keys() | CLOSES.keys()

INCOMPLETE: Final[dict[str, Finish]] = {"max_output_tokens": "length", "content_filter": "filter"}

# Output items that are an answer without any text, because the client has to run something. Tools
# that the server runs by itself (web search, MCP, …) only lead to an answer.
CALLS: Final = frozenset({
    "function_call", "custom_tool_call", "shell_call", "local_shell_call", "computer_call",
    "apply_patch_call",
})  # fmt: skip
CALL_DELTAS: Final = frozenset({
    "response.function_call_arguments.delta", "response.custom_tool_call_input.delta",
    "response.shell_call_command.added", "response.shell_call_command.delta",
})  # fmt: skip

# A hostile server's indexes must not grow our memory; no answer has so many items and parts.
MOST_PLACES: Final = 10_000


class ResponsesGrammar(Grammar):
    """One Responses stream."""

    __slots__ = (
        "_called", "_created", "_created_came", "_lengths", "_open", "_opened", "_refused", "_sequence",
    )  # fmt: skip

    prefix = "resp"
    after_terminal_rule = "resp.after_terminal"

    def __init__(self, *, usage_requested: bool = False) -> None:
        super().__init__(usage_requested=usage_requested)
        self._created = False  # or excused: it is missed only once
        self._created_came = False
        self._opened: set[tuple[Any, ...]] = set()
        self._open: set[tuple[Any, ...]] = set()
        self._lengths: dict[tuple[Any, ...], int] = {}
        self._sequence: int | None = None
        self._called = False
        self._refused = False

    def knows(self, name: str) -> bool:
        return name in EVENTS

    def chunk(self, name: str, body: dict[str, Any]) -> int:
        facts = self.facts
        kind = body.get("type")
        if kind != name:
            kind = self._settle_name(name, kind, body)
        number = body.get("sequence_number")
        if number is not None:
            self._numbered(number)
        delta = DELTAS.get(kind)
        if delta is not None:
            return self._delta(kind, body, *delta)
        if kind in PING_NAMES:
            return KEEPALIVE
        if kind not in EVENTS:
            if name == "message" and (shape := looks_like_error(body)):
                return self.error(body, name, shape)
            facts.violate("resp.unknown_event")
            return LIFECYCLE
        if kind in TERMINALS:
            return self._terminal(kind, body, name)
        if kind in LIFECYCLES:
            return self._lifecycle(kind, as_dict(body.get("response")))
        if not self._created:
            self._missed_created()
        if kind in OPENS:
            return self._opens(kind, body)
        if kind in CLOSES:
            self._closes(self._key(body, CLOSES[kind]))
        elif kind in ECHOES:
            self._echo(kind, body)
        return AUX

    def _settle_name(self, name: str, kind: Any, body: dict[str, Any]) -> Any:
        """Which of the two names counts when they differ: ``error`` always, then the data's if it is one."""
        if name == "error":
            return "error"
        if name == "message":
            self.facts.violate("resp.no_event_name")
            return as_text(kind)
        if name in PING_NAMES:
            return name
        if not isinstance(kind, str):
            self.facts.violate("resp.no_type")
            return name
        self.facts.violate("resp.type_mismatch")
        return kind if kind in EVENTS else name

    def _numbered(self, number: Any) -> None:
        last = self._sequence
        if last is not None and number == last + 1 and number.__class__ is int:
            self._sequence = number
            return
        value = as_int(number)
        if value is None or (last is not None and value <= last):
            self.facts.violate("resp.sequence_not_increasing")
        elif last is not None and value != last + 1:
            self.facts.violate("resp.sequence_gap")
        if value is not None:
            self._sequence = value

    def _missed_created(self) -> None:
        self._created = True
        self.facts.violate("resp.no_created")

    def _lifecycle(self, kind: str, response: dict[str, Any]) -> int:
        if kind == "response.created":
            if self._created_came:
                self.facts.violate("resp.created_twice")
            self._created = self._created_came = True
        elif kind == "response.queued":
            self._created = True
        elif not self._created:
            self._missed_created()
        self._identify(response)
        return LIFECYCLE

    def _identify(self, response: dict[str, Any]) -> None:
        id_ = response.get("id")
        if not isinstance(id_, str) or not id_:
            return
        if self.facts.response_id not in (None, id_):
            self.facts.violate("resp.id_changed")
        self.facts.response_id = id_

    def _key(self, body: dict[str, Any], fields: tuple[str, ...]) -> tuple[Any, ...]:
        return tuple(as_int(body.get(field)) for field in fields)

    def _opens(self, kind: str, body: dict[str, Any]) -> int:
        key = self._key(body, OPENS[kind])
        if len(self._opened) < MOST_PLACES:
            self._opened.add(key)
            self._open.add(key)
        if kind == "response.output_item.added" and as_text(as_dict(body.get("item")).get("type")) in CALLS:
            self._called = self.facts.has_output = True
        return LIFECYCLE

    def _closes(self, key: tuple[Any, ...]) -> None:
        self._open.discard(key)
        if len(key) == 1 and (parts := {k for k in self._open if k[0] == key[0]}):
            self._open -= parts
            self.facts.violate("resp.part_open_at_item_end")

    def _delta(self, kind: str, body: dict[str, Any], channel: int, field: str) -> int:
        text: Any = body.get(field)
        signal = text_signal(text, channel)
        if signal == KEEPALIVE:
            return signal  # a fake delta that relays send as a sign of life: it belongs to no item
        if not self._created:
            self._missed_created()
        if not signal:
            return LIFECYCLE
        self.facts.has_output = True
        index = body.get("output_index")
        part = body.get("content_index" if kind in IN_PART else "summary_index")
        if index.__class__ is not int or part.__class__ is not int:
            index, part = as_int(index), as_int(part)
        place = (kind, index, part)
        lengths = self._lengths
        sent = lengths.get(place)
        if sent is not None:
            lengths[place] = sent + len(text)  # the path of nearly every event
            return signal
        if kind in IN_PART and (index, part) not in self._opened:
            self._require((index,), "resp.no_item")
            self._require((index, part), "resp.no_part")
        elif kind in IN_ITEM:
            self._require((index,), "resp.no_item")
        if len(lengths) < MOST_PLACES:
            lengths[place] = len(text)
        if channel == REFUSAL:
            self._refused = True
        elif kind in CALL_DELTAS:
            self._called = True
        return signal

    def _require(self, key: tuple[Any, ...], rule: str) -> None:
        """Count once per item or part that it was never announced."""
        if key not in self._opened and len(self._opened) < MOST_PLACES:
            self._opened.add(key)
            self.facts.violate(rule)

    def _echo(self, kind: str, body: dict[str, Any]) -> None:
        """Deltas must add up to the echo; lengths suffice to see a lost piece, and keep no text."""
        delta_kind, field = ECHOES[kind]
        text = body.get(field)
        if not isinstance(text, str) or not text:
            return
        second = "content_index" if delta_kind in IN_PART else "summary_index"
        sent = self._lengths.get((delta_kind, *self._key(body, ("output_index", second))))
        self.facts.has_output = True
        if sent != len(text):
            self.facts.violate("resp.text_mismatch")

    def _terminal(self, kind: str, body: dict[str, Any], name: str) -> int:
        facts = self.facts
        response = as_dict(body.get("response"))
        if kind == "error":
            return self.error(body, name)
        self._identify(response)
        status = response.get("status")
        if kind == "response.failed" or response.get("error") or status == "failed":
            return self.error(response or body, name, kind)
        if not self._created:
            self._missed_created()
        if kind == "response.done":
            facts.violate("resp.done_alias")
        incomplete = kind == "response.incomplete" or status == "incomplete"
        if self._open and not incomplete:
            facts.violate("resp.item_open_at_end")
        self._usage(as_dict(response.get("usage")))
        self._output(response.get("output"))
        if incomplete:
            reason = as_dict(response.get("incomplete_details")).get("reason")
            facts.finish = INCOMPLETE.get(reason, "other") if isinstance(reason, str) else "other"
        elif status == "cancelled":
            facts.finish = "other"
        else:
            facts.finish = "refusal" if self._refused else "tool" if self._called else "stop"
        facts.terminal = facts.finished = True
        return TERMINAL

    def _usage(self, usage: dict[str, Any]) -> None:
        if not usage:
            return
        self.facts.usage = found = Usage(
            input=as_int(usage.get("input_tokens")),
            output=as_int(usage.get("output_tokens")),
            reasoning=as_int(as_dict(usage.get("output_tokens_details")).get("reasoning_tokens")),
            cached=as_int(as_dict(usage.get("input_tokens_details")).get("cached_tokens")),
        )
        self.check_total(usage, found)

    def _output(self, output: Any) -> None:
        """An answer that came only in the terminal event is output too, though not a streamed one."""
        for item in output if isinstance(output, list) else ():
            found = as_dict(item)
            if as_text(found.get("type")) in CALLS:
                self._called = self.facts.has_output = True
            content = found.get("content")
            for part in content if isinstance(content, list) else ():
                if as_dict(part).get("text") or as_dict(part).get("refusal"):
                    self.facts.has_output = True

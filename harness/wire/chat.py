"""OpenAI Chat Completions: unnamed events with one ``chat.completion.chunk`` each, then ``[DONE]``.

    state      what ends it                                      then
    OPEN       a chunk with a choice                             STREAM
    STREAM     every choice seen has its finish reason           FINISHED
    FINISHED   ``[DONE]``                                        DONE
    any        an object with a truthy ``error``                 error
    any        ``[DONE]``                                        DONE, with a violation

The state is not stored: it is which choices are open and whether ``[DONE]`` came. A clean end of
body in OPEN or STREAM is a truncation, in FINISHED a whole answer without its terminator.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from harness.wire.grammar import (
    PING_NAMES,
    Grammar,
    as_dict,
    as_int,
    as_text,
    looks_like_error,
    overwrite,
    text_signal,
)  # fmt: skip
from harness.wire.plain import decode_plain
from harness.wire.signals import (
    AUX,
    CONTENT,
    ERROR,
    KEEPALIVE,
    LIFECYCLE,
    MEDIA,
    PROGRESS,
    REASONING,
    REFUSAL,
    TERMINAL,
    TOOL,
    USAGE,
    VISIBLE,
    ErrorFacts,
    Finish,
    Usage,
)  # fmt: skip

FINISH: Final[dict[str, Finish]] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "length": "length",
    "max_tokens": "length",
    "tool_calls": "tool",
    "function_call": "tool",
    "content_filter": "filter",
    "refusal": "refusal",
}

# So many events that are no plain chunks, and the stream is one that has none (a thinking model's).
MOST_MISSES: Final = 8

_SHOWN: Final = CONTENT | VISIBLE

# OpenAI's own bound for `n`; a hostile server's indexes must not grow our memory.
MOST_CHOICES: Final = 128


class ChatGrammar(Grammar):
    """One Chat Completions stream."""

    __slots__ = ("_current", "_finished", "_misses", "_open", "_refused", "_usage_chunks")

    prefix = "chat"
    after_terminal_rule = "chat.after_done"

    def __init__(self, *, usage_requested: bool = False) -> None:
        super().__init__(usage_requested=usage_requested)
        self._open: set[Any] = set()
        self._current: Any = None  # the choice that spoke last, while it and the stream are open
        self._misses = 0
        self._finished: dict[Any, str] = {}
        self._usage_chunks = 0
        self._refused = False

    def event(self, name: str, raw: bytes) -> int:
        # Only if this changes nothing but `has_output`: what follows would say the same, at twice the price.
        if self._current is not None and self._misses < MOST_MISSES:
            try:
                chunk = decode_plain(raw)
            except (msgspec.DecodeError, RecursionError):
                self._misses += 1
            else:
                (choice,) = chunk.choices
                facts = self.facts
                if choice.index == self._current and chunk.id == facts.response_id and name == "message":
                    text = choice.delta.content
                    if text.isascii() and text and not text.isspace():  # what `text_signal` would say
                        facts.has_output = True
                        return _SHOWN
                    signal = text_signal(text, CONTENT)
                    if signal & PROGRESS:
                        facts.has_output = True
                        return signal
                else:
                    self._misses += 1
        return super().event(name, raw)

    def chunk(self, name: str, body: dict[str, Any]) -> int:
        facts = self.facts
        choices = body.get("choices")
        if name != "message":
            if name in PING_NAMES:
                return KEEPALIVE
            if name == "error":
                return self.error(body, name)
            facts.violate("chat.named_event")
            if choices is None:
                return LIFECYCLE
        usage = body.get("usage")
        id_ = body.get("id")
        if id_ != facts.response_id and isinstance(id_, str) and id_:
            if facts.response_id is not None:
                facts.violate("chat.id_changed")
            facts.response_id = id_
        signal = 0
        if choices.__class__ is list and choices:
            for choice in choices:
                signal |= self._choice(choice)
            if facts.error is not None:
                return ERROR
        elif not usage:
            signal = self._without_choices(body, choices)
        if usage.__class__ is dict and usage:
            signal |= self._usage(usage, alone=not choices)
        if signal & PROGRESS:
            facts.has_output = True
            signal &= ~KEEPALIVE  # one choice of several had a sign of life only
        return signal or LIFECYCLE

    def _choice(self, choice: Any) -> int:
        if choice.__class__ is not dict:
            self.facts.violate("chat.bad_choice")
            return 0
        delta = choice.get("delta")
        if delta.__class__ is not dict:
            # Some relays send the whole message in the only chunk; null stands for an empty delta.
            delta = as_dict(choice.get("message"))
        content = delta.get("content")
        signal = text_signal(content, CONTENT) if content.__class__ is str else 0
        if len(delta) > 1 or not signal:
            signal = self._delta(delta, signal)
        index = choice.get("index", 0)
        if index.__class__ is not int:
            index = as_int(index) or 0
        if index != self._current:
            if index in self._open:
                self._current = index
            else:
                self._unopened(index, delta, signal)
        reason = choice.get("finish_reason")
        if reason is not None:
            self._finish(index, reason, choice)
        if choice.get("error"):
            self.error(choice, "message", "chunk.choice_error")
        if not signal and choice.get("logprobs"):
            return AUX
        return signal

    def _unopened(self, index: int, delta: dict[str, Any], signal: int) -> None:
        """Take the first delta of a choice, or one of a choice that had finished."""
        facts = self.facts
        if index in self._finished:
            if signal & PROGRESS:
                facts.violate("chat.delta_after_finish")
        elif len(self._open) + len(self._finished) >= MOST_CHOICES:
            facts.violate("chat.too_many_choices")
        else:
            self._open.add(index)
            facts.finished = False
            if not delta.get("role"):
                facts.violate("chat.no_role")

    def _delta(self, delta: dict[str, Any], signal: int) -> int:
        """Return the signal of a delta whose text `content` means *signal*."""
        content = delta.get("content")
        if content.__class__ is list:  # Mistral: parts, some of them thinking
            for part in content:
                found = as_dict(part)
                signal |= text_signal(found.get("text"), CONTENT)
                thoughts = found.get("thinking")
                for thought in thoughts if isinstance(thoughts, list) else ():
                    signal |= text_signal(as_dict(thought).get("text"), REASONING)
        signal |= text_signal(delta.get("reasoning_content"), REASONING)
        signal |= text_signal(delta.get("reasoning"), REASONING)
        details = delta.get("reasoning_details")
        if not signal & REASONING and details.__class__ is list:
            for part in details:
                detail = as_dict(part)
                signal |= text_signal(
                    detail.get("text") or detail.get("summary") or detail.get("data"), REASONING
                )
        refusal = text_signal(delta.get("refusal"), REFUSAL)
        if refusal & REFUSAL:
            self._refused = True
        signal |= refusal
        calls = delta.get("tool_calls")
        if calls.__class__ is list:
            for call in calls:
                found = as_dict(call)
                signal |= _function(found.get("function")) | _function(found.get("custom"))
        signal |= _function(delta.get("function_call"))
        audio = as_dict(delta.get("audio"))
        if audio.get("data") or audio.get("transcript") or delta.get("images"):
            signal |= MEDIA | VISIBLE
        if signal & PROGRESS:
            signal &= ~KEEPALIVE
        return signal

    def _finish(self, index: int, reason: Any, choice: dict[str, Any]) -> None:
        facts = self.facts
        if not isinstance(reason, str) or not reason:
            facts.violate("chat.finish_empty")
            return
        if reason == "error":  # OpenRouter's own finish reason, also seen without an error object
            self._current = None
            if not choice.get("error"):
                facts.error = ErrorFacts(
                    "stream", "error", None, "finish_reason is error", True, "chunk.finish_error"
                )
            return
        if index in self._open:
            self._open.remove(index)
            self._current = None
            self._finished[index] = reason
        if not self._finished:
            return
        first = min(self._finished)
        facts.finish = FINISH.get(self._finished[first], "other")
        if self._refused and facts.finish == "stop":
            facts.finish = "refusal"
        facts.finished = not self._open

    def _without_choices(self, body: dict[str, Any], choices: Any) -> int:
        facts = self.facts
        kind = as_text(body.get("type"))
        if kind in PING_NAMES:
            return KEEPALIVE
        if kind == "error":
            return self.error(body, "message")
        if (choices is None or body.get("object") == "error") and (shape := looks_like_error(body)):
            return self.error(body, "message", shape)
        if body.get("moderation"):
            return AUX
        if choices is None:
            facts.violate("chat.no_choices")
        return LIFECYCLE

    def _usage(self, usage: dict[str, Any], *, alone: bool) -> int:
        facts = self.facts
        if alone:
            self._usage_chunks += 1
            if not facts.finished:
                facts.violate("chat.usage_before_finish")
            if self._usage_chunks > 1:
                facts.violate("chat.usage_twice")
        if not self.usage_requested and facts.usage is None:
            facts.violate("chat.usage_unrequested")
        known = facts.usage or Usage()
        details = as_dict(usage.get("completion_tokens_details"))
        facts.usage = found = Usage(
            input=overwrite(known.input, usage.get("prompt_tokens")),
            output=overwrite(known.output, usage.get("completion_tokens")),
            reasoning=overwrite(known.reasoning, details.get("reasoning_tokens")),
            cached=overwrite(known.cached, as_dict(usage.get("prompt_tokens_details")).get("cached_tokens")),
        )
        self.check_total(usage, found)
        return USAGE

    def done(self) -> int:
        self._current = None
        facts = self.facts
        facts.terminal = True
        if not self._open and not self._finished:
            facts.violate("chat.empty_stream")
        elif not facts.finished:
            facts.violate("chat.done_without_finish")
        if self.usage_requested and facts.usage is None:
            facts.violate("chat.usage_missing")
        return TERMINAL

    def end_of_body(self) -> None:
        if self.facts.finished and not self.facts.terminal and self.facts.error is None:
            self.facts.violate("chat.done_missing")

    def error(self, body: dict[str, Any], name: str, shape: str | None = None) -> int:
        self._current = None
        if shape is None and body.get("choices"):
            shape = "chunk.error"  # OpenRouter: a normal chunk with a top-level error
        return super().error(body, name, shape)

    def _done_counts_after_end(self) -> bool:
        return self.facts.terminal  # a second [DONE]; after an error one is customary


def _function(function: Any) -> int:
    """A tool call makes progress with its name or with a piece of its arguments."""
    if function.__class__ is not dict:
        return 0
    if function.get("name") or function.get("arguments") or function.get("input"):
        return TOOL | VISIBLE
    return 0

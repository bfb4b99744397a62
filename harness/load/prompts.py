"""What the users ask: a small built-in set of different lengths, or the user's own JSONL file."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec


class PromptsError(ValueError):
    """A prompts file cannot be used; the message names file and line and what was expected."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A conversation: messages with ``role`` and ``content``, as the Chat protocol writes them.

    The first `shared` messages are the same in many requests, so that a prefix cache can know them.
    """

    messages: tuple[dict[str, Any], ...]
    shared: int = 0

    def behind(self, prefix: Prompt) -> Prompt:
        """Return the conversation with the messages of *prefix* shared in front of it."""
        return Prompt((*prefix.messages, *self.messages), len(prefix.messages))

    @classmethod
    def of(cls, prompt: str | Prompt | list[dict[str, Any]]) -> Prompt:
        """Return *prompt* as a conversation: a text is the one message of a user."""
        if isinstance(prompt, Prompt):
            return prompt
        if isinstance(prompt, str):
            return cls(({"role": "user", "content": prompt},))
        return cls(tuple(prompt))


_NOTES = (
    "The service accepted 1,240 requests in the first minute and 1,198 in the second. "
    "Latency rose from 180 ms to 420 ms while the queue grew to 61 entries; at 14:07 the cache was "
    "restarted and the queue drained within 40 seconds. Two replicas were later found to share a disk. "
)

# From one line to a few thousand characters: time to first token depends on the length of the prompt.
BUILT_IN: tuple[Prompt, ...] = tuple(
    Prompt.of(text)
    for text in (
        "Write a haiku about the sea.",
        "Explain in three sentences what a streaming response is and why people like it.",
        "List ten questions that an engineer should ask before buying capacity, one line each.",
        "Summarise these notes of an incident for a manager, in five bullet points:\n\n" + _NOTES * 4,
        "Turn these notes into a post-mortem with causes, effects and three actions:\n\n" + _NOTES * 12,
    )
)


def read_prompts(path: str) -> tuple[Prompt, ...]:
    """Return the prompts of the JSONL file *path*: ``{"prompt": "…"}`` or ``{"messages": […]}`` a line.

    Raises `PromptsError` for a file that cannot be read, holds no prompt, or has a wrong line.
    """
    try:
        lines = Path(path).read_bytes().removeprefix(codecs.BOM_UTF8).splitlines()
    except OSError as error:
        raise PromptsError(f"cannot read prompts {path}: {error.strerror}") from None
    prompts = [
        _prompt(line, f"{path}, line {number}") for number, line in enumerate(lines, 1) if line.strip()
    ]
    if not prompts:
        raise PromptsError(
            f'{path} holds no prompt: write one JSON object a line, as in {{"prompt": "Hello"}}'
        )
    return tuple(prompts)


def _prompt(line: bytes, place: str) -> Prompt:
    expected = 'expected {"prompt": "…"} or {"messages": [{"role": "user", "content": "…"}]}'
    try:
        data = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise PromptsError(f"{place}: not JSON; {expected}") from None
    if not isinstance(data, dict):
        raise PromptsError(f"{place}: {expected}")
    text, messages = data.get("prompt"), data.get("messages")
    if isinstance(text, str) and text:
        return Prompt.of(text)
    if isinstance(messages, list) and messages and all(_is_message(m) for m in messages):
        return Prompt.of(messages)
    raise PromptsError(f"{place}: {expected}")


def _is_message(message: Any) -> bool:
    return (
        isinstance(message, dict)
        and isinstance(message.get("role"), str)
        and isinstance(message.get("content"), str | list)
    )

"""The neutral facts that the grammars emit: what one event meant, whatever the protocol.

An event's meaning is an int of flags, so that the path of an event is a table look-up and a mask.
Every event sets exactly one of the channel flags, but a chunk that carries text *and* a tool call
sets both. `VISIBLE` goes with a progress flag when the text has a character that a person can see.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

CONTENT = 1 << 0
REASONING = 1 << 1
TOOL = 1 << 2
REFUSAL = 1 << 3
MEDIA = 1 << 4
VISIBLE = 1 << 5
AUX = 1 << 6
LIFECYCLE = 1 << 7
KEEPALIVE = 1 << 8
USAGE = 1 << 9
TERMINAL = 1 << 10
ERROR = 1 << 11
BROKEN = 1 << 12  # bytes that are not the protocol

PROGRESS = CONTENT | REASONING | TOOL | REFUSAL | MEDIA

CHANNEL_NAMES: dict[int, str] = {
    CONTENT: "content",
    REASONING: "reasoning",
    TOOL: "tool",
    REFUSAL: "refusal",
    MEDIA: "media",
    AUX: "aux",
    LIFECYCLE: "lifecycle",
    KEEPALIVE: "keepalive",
    USAGE: "usage",
    TERMINAL: "terminal",
    ERROR: "error",
    BROKEN: "broken",
}

Finish = Literal["stop", "length", "tool", "filter", "refusal", "pause", "other"]


def channel_name(signal: int) -> str:
    """Return the name of the strongest channel in *signal*: errors and terminals before progress."""
    for flag in (ERROR, BROKEN, TERMINAL, CONTENT, REFUSAL, TOOL, REASONING, MEDIA):
        if signal & flag:
            return CHANNEL_NAMES[flag]
    for flag, name in CHANNEL_NAMES.items():
        if signal & flag:
            return name
    return "lifecycle"


@dataclass(frozen=True, slots=True)
class ErrorFacts:
    """An error as the gateway stated it. `shape` names the frame it came in; texts are as sent."""

    layer: Literal["http", "stream", "transport", "client"]
    type: str | None
    code: str | None
    message: str
    retryable: bool
    shape: str


@dataclass(slots=True)
class Usage:
    """Token counts as the gateway reported them; None where it did not."""

    input: int | None = None
    output: int | None = None
    reasoning: int | None = None
    cached: int | None = None


@dataclass(slots=True)
class Facts:
    """What a grammar knows of its stream so far; the session reads it when the stream ends."""

    response_id: str | None = None
    finish: Finish | None = None
    finished: bool = False  # every choice seen has its finish reason
    has_output: bool = False
    terminal: bool = False
    usage: Usage | None = None
    error: ErrorFacts | None = None
    broken: str | None = None  # why the bytes are not the protocol
    violations: dict[str, int] = field(default_factory=dict)

    def violate(self, rule: str) -> None:
        """Count one breach of *rule*. Violations never change an outcome."""
        self.violations[rule] = self.violations.get(rule, 0) + 1

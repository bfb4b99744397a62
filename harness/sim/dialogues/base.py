"""What every protocol's renderer offers: events as bytes, no time, no transport.

An answer is told in this order: `lifecycle`, then for each channel `begin`, its tokens, `finish`, then
`ending`. A channel is one of ``content``, ``reasoning``, ``tool``, ``refusal``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode

DONE = b"data: [DONE]\n\n"


def data_event(payload: Mapping[str, Any]) -> bytes:
    """Return an unnamed event with *payload* as JSON."""
    return b"data: " + _encode(payload) + b"\n\n"


def named_event(name: str, payload: Mapping[str, Any]) -> bytes:
    """Return an event called *name* with *payload* as JSON."""
    return b"event: " + name.encode() + b"\ndata: " + _encode(payload) + b"\n\n"


@dataclass(frozen=True, slots=True)
class Accent:
    """How a gateway speaks a protocol."""

    abbreviated: bool = False
    """As gateways' own documents show it: optional and some required fields and events left out."""
    data_errors: bool = False
    """Errors are a bare `data: {"error": …}` in every protocol."""
    done_everywhere: bool = False
    """`[DONE]` ends the streams of protocols that do not know it, too."""
    role_with_text: bool = False
    """Abbreviated Chat only: the first piece of text comes in the chunk that names the role."""


@dataclass(frozen=True, slots=True)
class ErrorFacts:
    """What an in-stream error says, apart from its shape."""

    type: str
    message: str
    code: str | None = None
    shape: str = ""
    """``data``, ``event`` or ``response.failed``; empty: the protocol's own official shape."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts. `output` includes `reasoning`."""

    input: int
    output: int
    reasoning: int = 0


@dataclass(frozen=True, slots=True)
class Identity:
    """What makes an answer this answer."""

    suffix: str
    """Unique part of all its ids."""
    model: str
    created: int
    """Unix seconds."""
    id_prefix: str = ""
    """What the gateway puts before the suffix of a Chat id."""


class Dialogue(ABC):
    """Renders one answer. Keeps what the protocol must repeat at its end: text, indexes, numbers."""

    naming_a_tool_is_progress = False
    """The event that opens a tool call already carries a delta with its name."""

    def __init__(self, identity: Identity, accent: Accent, include_usage: bool, usage_in: int) -> None:
        self.identity = identity
        self.accent = accent
        self.include_usage = include_usage
        self.usage_in = usage_in

    @abstractmethod
    def lifecycle(self) -> list[bytes]:
        """Return the events that come before anything is generated."""

    @abstractmethod
    def begin(self, channel: str) -> list[bytes]:
        """Return the events that open *channel*."""

    @abstractmethod
    def renderer(self, channel: str) -> Callable[[bytes], bytes]:
        """Return what turns a piece (already escaped for JSON) into a token event of *channel*.

        The one hot path here: everything that does not change is rendered once.
        """

    @abstractmethod
    def finish(self, channel: str, text: str) -> list[bytes]:
        """Return the events that close *channel*, whose tokens said *text*."""

    @abstractmethod
    def ending(self, finish: str, usage: Usage | None) -> tuple[list[bytes], list[bytes]]:
        """Return the events up to the terminal, and the terminal with what follows it.

        *finish* is ``stop``, ``length``, ``tool``, ``filter`` or ``refusal``; no *usage*: it is left out.
        """

    @abstractmethod
    def error(self, facts: ErrorFacts) -> bytes:
        """Return an in-stream error in the shape that *facts* asks for."""

    @abstractmethod
    def whole(self, text: str, finish: str, usage: Usage) -> dict[str, Any]:
        """Return the same answer for a request without `stream`."""

    def data_error(self, facts: ErrorFacts) -> bytes:
        """Return the bare `data: {"error": …}` that many gateways send whatever the protocol."""
        body: dict[str, Any] = {"message": facts.message, "type": facts.type}
        if facts.code is not None:
            body["code"] = facts.code
        return data_event({"error": body})

    def done(self) -> list[bytes]:
        """Return `[DONE]` where the dialect adds it to a protocol that does not know it."""
        return [DONE] if self.accent.done_everywhere else []

"""The chunk that nearly every event of a chat is: one choice with a piece of text, and nothing else.

Decoded into a type of its own it costs half of what a dictionary does. Whatever has more in it (a role, a
tool call, an error, usage, a second choice, a value of another type) does not fit the type; the grammar then
takes it the general way.
"""

from __future__ import annotations

import msgspec


class Delta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """What the chunk adds."""

    content: str


class Choice(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The only choice of the chunk."""

    delta: Delta
    index: int = 0
    finish_reason: None = None
    logprobs: None = None


class PlainChunk(msgspec.Struct, gc=False):
    """One piece of text. Other fields of the chunk (`model`, `created`, …) mean nothing to us."""

    id: str
    choices: tuple[Choice]
    usage: None = None
    error: None = None


decode_plain = msgspec.json.Decoder(PlainChunk).decode
"""Bytes → `PlainChunk`. Raises `msgspec.DecodeError` where the event is something else, or no JSON."""

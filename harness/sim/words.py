"""What the simulated model says: one piece of text per token, always the same ones.

Every piece has a visible character (so each one is a token for any reader), and together they hold
what breaks careless clients: multi-byte letters, an emoji, quotes, a backslash, a line break, the
line separator U+2028, a `data:` inside text.
"""

from __future__ import annotations

import msgspec

PIECES: tuple[str, ...] = (
    "The ", "sea ", "keeps ", "talking", ", ", "olas ", "que ", "vienen ", "y ", "niños ", "que ",
    "cuentan", ": ", "uno, ", "dos…", "\nStraße ", "und ", "Brücke", "; ", "東京", "は", "夜", ". ",
    'A "quoted" ', "word, ", "a back\\slash, ", "an 😀 ", "smile, ", "a tab\tand ",
    "a line\u2028separator, ", "data: ", "and ", "then ", "the ", "next ", "wave ", "arrives", ". ",
    "Again, ", "again, ",
)  # fmt: skip

TOOL_PIECES: tuple[str, ...] = ("sea, ", "wind ", "and ", "tide ", "tables ", "for ", "Lisbon, ")
TOOL_NAME = "look_up"


def escaped(text: str) -> bytes:
    """Return *text* as the inside of a JSON string, without its quotes."""
    return msgspec.json.encode(text)[1:-1]


PIECES_JSON: tuple[bytes, ...] = tuple(escaped(piece) for piece in PIECES)


def said(start: int, stop: int) -> str:
    """Return the text of tokens *start* to *stop* (exclusive)."""
    return "".join(PIECES[k % len(PIECES)] for k in range(start, stop))


def tool_arguments(count: int) -> list[str]:
    """Return the JSON arguments of a tool call, cut into *count* fragments."""
    if count == 1:
        return ['{"query":"tides"}']
    inner = [TOOL_PIECES[k % len(TOOL_PIECES)] for k in range(count - 2)]
    return ['{"query":"', *inner, 'tides"}']

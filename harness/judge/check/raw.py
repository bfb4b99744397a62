"""A reader of raw SSE lines that shares nothing with the parser it is there to check on.

It keeps what a parser throws away: the exact bytes of every line, comments in their place, line ends, and
when each line was whole. Lines end with CR LF, LF or CR; a blank line ends a block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_BOM = b"\xef\xbb\xbf"
_CR, _LF = 13, 10


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its end; `at_s` is when its end was read."""

    at_s: float
    text: bytes
    end: bytes

    @property
    def is_comment(self) -> bool:
        """Whether parsers have to ignore it."""
        return self.text.startswith(b":")

    @property
    def field(self) -> tuple[bytes, bytes]:
        """Name and value, as SSE reads them."""
        name, _, value = self.text.partition(b":")
        return name, value.removeprefix(b" ")


@dataclass(frozen=True, slots=True)
class Block:
    """Lines up to a blank one; `whole` is false for what the end of the body cut off."""

    lines: tuple[Line, ...]
    whole: bool

    @property
    def at_s(self) -> float:
        """When its last line was whole."""
        return self.lines[-1].at_s

    @property
    def comments(self) -> list[Line]:
        """Its comment lines."""
        return [line for line in self.lines if line.is_comment]

    @property
    def fields(self) -> list[tuple[bytes, bytes]]:
        """Its other lines as names and values."""
        return [line.field for line in self.lines if not line.is_comment]

    def values(self, name: bytes) -> list[bytes]:
        """Return the values of all fields called *name*."""
        return [value for field, value in self.fields if field == name]

    @property
    def data(self) -> bytes | None:
        """Its data as a parser joins them; None without any."""
        values = self.values(b"data")
        return b"\n".join(values) if values else None

    @property
    def event(self) -> bytes | None:
        """The name in its last `event:` line."""
        names = self.values(b"event")
        return names[-1] if names else None

    @property
    def raw(self) -> bytes:
        """Its bytes, without the blank line."""
        return b"".join(line.text + line.end for line in self.lines)


def read_lines(chunks: Iterable[tuple[float, bytes]]) -> Iterator[Line]:
    """Yield the lines of a body that came in *chunks*, each with the time at which it was read.

    A last line without an end is yielded with an empty one.
    """
    rest = bytearray()
    begun = after_cr = False
    at_s = 0.0
    for at_s, data in chunks:
        for byte in data:
            if after_cr:
                after_cr = False
                end = b"\r\n" if byte == _LF else b"\r"
                yield Line(at_s, _text(rest, begun), end)
                rest.clear()
                begun = True
                if byte == _LF:
                    continue
            if byte == _CR:
                after_cr = True
            elif byte == _LF:
                yield Line(at_s, _text(rest, begun), b"\n")
                rest.clear()
                begun = True
            else:
                rest.append(byte)
    if after_cr or rest:
        yield Line(at_s, _text(rest, begun), b"\r" if after_cr else b"")


def read_blocks(chunks: Iterable[tuple[float, bytes]]) -> list[Block]:
    """Return the blocks of a body; blank lines that end nothing are left out."""
    blocks: list[Block] = []
    lines: list[Line] = []
    for line in read_lines(chunks):
        if line.text:
            lines.append(line)
        elif lines:
            blocks.append(Block(tuple(lines), whole=True))
            lines = []
    if lines:
        blocks.append(Block(tuple(lines), whole=False))
    return blocks


def without_comments(body: bytes) -> bytes:
    """Return *body* without its comments, and without the blank lines that end nothing else."""
    kept = []
    for block in read_blocks([(0.0, body)]):
        fields = b"".join(line.text + line.end for line in block.lines if not line.is_comment)
        kept.append(fields + (block.lines[-1].end or b"") * block.whole if fields else b"")
    return b"".join(kept)


def _text(rest: bytearray, begun: bool) -> bytes:
    text = bytes(rest)
    return text if begun else text.removeprefix(_BOM)

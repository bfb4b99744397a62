r"""Incremental parser of ``text/event-stream``, by the rules of WHATWG HTML, "Server-sent events".

Promises: any split of the input gives the same items; malformed UTF-8 becomes U+FFFD and never an
exception; time is linear in the input; memory is bounded by `max_event_bytes`. It refuses to know
what the data means and what time it is.

Theory of operation. Bytes are cut into lines at LF, CRLF or lone CR and at nothing else (U+2028 or
U+0085 inside data end no line). What follows the last line end waits in `_partial`, a bytearray,
whose append is amortised O(1): ten megabytes in one-byte chunks stay linear. A CR at the end of a
chunk ends its line at once, so that no event waits for the next chunk; an LF that then comes first
is the second half of that CRLF and is dropped.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

# HopBase's public gateway scans lines up to 8 MiB, httpx2 events up to 1 MiB: twice the larger one.
MAX_EVENT_BYTES: Final = 16 * 1024 * 1024

# Only in C can a regular expression find mixed line ends fast; pure-LF input never gets here.
_LINE_END: Final = re.compile(rb"\r\n|\r|\n")

_BOM: Final = b"\xef\xbb\xbf"


class Event(msgspec.Struct, frozen=True, gc=False):
    """A dispatched event: its `type` (``message`` if unnamed), raw data bytes and last event id."""

    type: str
    raw: bytes
    id: str

    @property
    def data(self) -> str:
        """The data as text, malformed UTF-8 replaced."""
        return self.raw.decode("utf-8", "replace")


class Comment(msgspec.Struct, frozen=True, gc=False):
    """A comment line: what follows the colon, minus one leading space.

    `inside` is true when fields of an unfinished event stand before it in the same block.
    """

    raw: bytes
    inside: bool

    @property
    def text(self) -> str:
        """The comment as text, malformed UTF-8 replaced."""
        return self.raw.decode("utf-8", "replace")


class EmptyBlock(msgspec.Struct, frozen=True, gc=False):
    """A block that dispatches nothing, but makes an empty event in decoders that trip over it.

    Those are blocks without data that name an event or set a reconnection time, and any blank line at
    all once an id was seen. `type` is the event name that is lost (None if it had none); `split` is
    true when a comment stood between that name and the blank line: an event torn in two.
    """

    type: str | None
    split: bool


class ErrorField(msgspec.Struct, frozen=True, gc=False):
    """A line ``error: …``: an error written as a field name, which every conformant parser ignores."""


class Retry(msgspec.Struct, frozen=True, gc=False):
    """A ``retry`` field with a valid reconnection time in milliseconds."""

    milliseconds: int


class Overflow(msgspec.Struct, frozen=True, gc=False):
    """An event or line grew beyond the limit; the parser takes nothing more after it."""

    limit_bytes: int


Item = Event | Comment | EmptyBlock | ErrorField | Retry | Overflow


class SseParser:
    """One stream's parser: `feed` bytes, get items.

    `last_event_id` and `retry_ms` are the stream's state as a reconnecting client would send it.
    """

    __slots__ = (
        "_after_cr", "_at_start", "_between", "_block_comment", "_data", "_fields", "_id", "_names",
        "_partial", "_retried", "_type", "last_event_id", "max_event_bytes", "overflowed", "retry_ms",
    )  # fmt: skip

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self.max_event_bytes = max_event_bytes
        self.overflowed = False
        self.last_event_id = ""
        self.retry_ms: int | None = None
        self._partial = bytearray()
        self._after_cr = False
        self._at_start = True
        self._between = False  # events: a whole one may follow
        self._data: list[bytes] = []
        self._type: str | None = None
        self._id = ""
        self._retried = False
        self._fields = 0  # bytes of field lines since the last blank line, comments not counted
        self._block_comment = False
        self._names: dict[bytes, str] = {}

    @property
    def pending_bytes(self) -> int:
        """Bytes of an event (or line) that has begun and is not yet dispatched; 0 between events."""
        return len(self._partial) + self._fields

    def single(self, data: bytes) -> tuple[str, bytes] | None:
        """Return type and data of the event if *data* is one whole event with one line of data, else None.

        Nearly every read is one. If so, it has been taken; if not, call `feed`. The general way would say
        the same, at twice the price.
        """
        if not self._between or len(data) - 1 > self.max_event_bytes:
            return None
        raw = data[6:-2]
        # Slices and numbers, because a method or a search for bytes has its arguments parsed first.
        if data[:6] == b"data: " and data[-2:] == b"\n\n" and 10 not in raw and 13 not in raw:
            return "message", raw
        if data[:7] == b"event: " and data[-2:] == b"\n\n" and 13 not in data:
            begin = data.find(b"\n") + 1
            raw = data[begin + 6 : -2]
            name = self._names.get(data[7 : begin - 1])  # the general way learns it
            if name is not None and data[begin : begin + 6] == b"data: " and 10 not in raw:
                return name or "message", raw
        return None

    def feed(self, data: bytes) -> list[Item]:
        """Return the items that *data* completes, in order. After an `Overflow` returns nothing."""
        items: list[Item] = []
        self._between = False
        if self._after_cr and data:
            self._after_cr = False
            if data[0] == 10:
                data = data[1:]
        if self.overflowed or not data:
            return items
        if self._at_start:
            data = self._strip_bom(data)
            if not data:
                return items
        if b"\r" in data:
            lines = _LINE_END.split(data)
            self._after_cr = data[-1] == 13
        else:
            lines = data.split(b"\n")
        rest = lines.pop()
        if lines:
            if self._partial:
                lines[0] = bytes(self._partial) + lines[0]
                self._partial.clear()
            self._lines(lines, items)
            if self.overflowed:
                return items
        if rest:
            self._partial += rest
            if len(self._partial) + self._fields > self.max_event_bytes:
                self._overflow(items)
        else:
            self._between = not (self._fields or self._after_cr or self._partial)
        return items

    def _lines(self, lines: list[bytes], items: list[Item]) -> None:
        """Take whole lines. The three that make up nearly every stream are told apart by one byte."""
        for line in lines:
            if not line:
                self._blank(items)
            elif line[0] == 58:  # a colon begins a comment
                if len(line) + self._fields > self.max_event_bytes:
                    self._overflow(items)
                    return
                items.append(Comment(line[2:] if line[1:2] == b" " else line[1:], self._fields > 0))
                if self._type is not None:
                    self._block_comment = True
            else:
                self._fields += len(line) + 1
                if self._fields > self.max_event_bytes:
                    self._overflow(items)
                    return
                if line.startswith(b"data: "):
                    self._data.append(line[6:])
                elif line.startswith(b"event: ") and (known := self._names.get(line[7:])) is not None:
                    self._type = known
                else:
                    self._field(line, items)

    def _strip_bom(self, data: bytes) -> bytes:
        """Drop one leading byte order mark, which may come in pieces."""
        head = bytes(self._partial) + data
        if len(head) < len(_BOM) and _BOM.startswith(head):
            self._partial[:] = head
            return b""
        self._at_start = False
        self._partial.clear()
        return head.removeprefix(_BOM)

    def _field(self, line: bytes, items: list[Item]) -> None:
        name, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if name == b"event":
            known = self._names.get(value)
            if known is None:
                known = value.decode("utf-8", "replace")
                if len(self._names) < 256:  # names are few; a hostile server's are not
                    self._names[value] = known
            self._type = known
        elif name == b"data":  # without a space, or a bare "data" without even a colon
            self._data.append(value)
        elif name == b"id":
            if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
        elif name == b"retry":
            if value.isdigit() and len(value) < 20:
                self.retry_ms = int(value)
                self._retried = True
                items.append(Retry(self.retry_ms))
        elif name == b"error":
            items.append(ErrorField())

    def _blank(self, items: list[Item]) -> None:
        data = self._data
        if data:
            raw = data[0] if len(data) == 1 else b"\n".join(data)
            items.append(Event(self._type or "message", raw, self._id))
            data.clear()
        elif self._type or self._retried or self._id:
            items.append(EmptyBlock(self._type or None, self._block_comment))
        self.last_event_id = self._id
        self._type = None
        self._retried = False
        self._fields = 0
        self._block_comment = False

    def _overflow(self, items: list[Item]) -> None:
        self.overflowed = True
        items.append(Overflow(self.max_event_bytes))
        self._partial = bytearray()
        self._data.clear()
        self._fields = 0

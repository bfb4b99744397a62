"""The truth log: what was really sent and when, one JSON line per streaming request."""

from __future__ import annotations

from typing import IO

import msgspec


class TruthLine(msgspec.Struct):
    """One streaming request. Offsets are seconds from `sent_at`, None where it did not happen."""

    request: str | None
    attempt: int
    protocol: str
    fault: str
    outcome: str
    """What a right client with the profile's limits records."""
    sent_at: float
    """Unix seconds: the request was read whole."""
    first_byte_s: float | None = None
    first_content_s: float | None = None
    end_s: float | None = None
    tokens: int = 0
    """Events that carried new output."""
    comments: int = 0
    client_left: bool = False


class TruthLog:
    """Appends lines to *file*; nothing is on disk before `flush`, which the server calls each second."""

    def __init__(self, file: IO[bytes] | None) -> None:
        self._file = file
        self._encode = msgspec.json.Encoder().encode
        self._pending: list[bytes] = []

    def add(self, line: TruthLine) -> None:
        """Take *line* into the log."""
        if self._file is not None:
            self._pending.append(self._encode(line) + b"\n")

    def flush(self) -> None:
        """Write what has gathered: whole lines only."""
        if self._file is not None and self._pending:
            self._file.write(b"".join(self._pending))
            self._file.flush()
            self._pending.clear()

    def close(self) -> None:
        """Flush and close."""
        self.flush()
        if self._file is not None:
            self._file.close()

"""Heads of HTTP/1.1 answers as bytes."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

STREAM_TYPE = "text/event-stream"

# Statuses that vendors use and the standard library does not know.
_REASONS = {**{int(s): s.phrase for s in HTTPStatus}, 499: "Client Closed Request", 524: "A Timeout Occurred",
            529: "Overloaded"}  # fmt: skip


def head(status: int, headers: Mapping[str, str]) -> bytes:
    """Return the status line and *headers* with the blank line that ends them."""
    lines = [
        f"HTTP/1.1 {status} {_REASONS.get(status, 'Unknown')}",
        *(f"{k}: {v}" for k, v in headers.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def answer(
    status: int, headers: Mapping[str, str], body: bytes, content_type: str = "application/json"
) -> bytes:
    """Return a whole answer whose length is given."""
    return head(status, {"Content-Type": content_type, "Content-Length": str(len(body)), **headers}) + body

"""What a check can say of a statement, and of one stream: values, no judgement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["kept", "broken", "not observed", "not testable here"]

EXCERPT_BYTES = 200


@dataclass(frozen=True, slots=True)
class Verdict:
    """One statement's verdict: the reason in a line, and lines that can be pasted into a ticket."""

    status: Status
    reason: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """A verdict and the statement that it is about."""

    id: str
    name: str
    statement: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Seen:
    """What one stream showed of a statement. `raw` are the bytes that show it, `at_s` when they came."""

    ok: bool
    what: str
    raw: bytes | None = None
    at_s: float | None = None


def fine(what: str, raw: bytes | None = None, at_s: float | None = None) -> Seen:
    """Return that a stream kept it."""
    return Seen(True, what, raw, at_s)


def wrong(what: str, raw: bytes | None = None, at_s: float | None = None) -> Seen:
    """Return that a stream broke it."""
    return Seen(False, what, raw, at_s)


def excerpt(raw: bytes) -> str:
    """Return bytes as one line of text that shows every character; cut to `EXCERPT_BYTES`."""
    shown = raw[:EXCERPT_BYTES].decode("utf-8", "replace")
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in shown)
    return text if len(raw) <= EXCERPT_BYTES else f"{text}… ({len(raw)} bytes)"

"""Keys that come back: a gateway that repeats a request's key in its answer must not get it into a record.

"Incorrect API key provided: sk-…" is what some answer, and records, metrics, pages and reports show what
gateways say. What a request's secret headers hold is taken out before anything is cut, kept or counted.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from msgspec import structs

from harness.load.exchange import Call
from harness.stream import Attempt, Session

HIDDEN = "[key]"

# Always secret, however short; of other headers only a long value can be one.
_SECRET_NAMES = frozenset({"authorization", "x-api-key", "api-key", "proxy-authorization", "cookie"})
_SECRET_LENGTH = 16
# A value this short would be found in ordinary words.
_SHORTEST = 6


def secrets_in(call: Call) -> tuple[str, ...]:
    """Return what *call* sends and nobody should read, longest first."""
    return _secrets_in(call.headers)


@lru_cache(maxsize=256)
def _secrets_in(headers: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Find them once for all requests of a key."""
    found = set()
    for name, value in headers:
        if name.lower() in _SECRET_NAMES or len(value) >= _SECRET_LENGTH:
            found |= {value, value.removeprefix("Bearer ")}
    public = {"application/json", "text/event-stream"}
    return tuple(sorted((v for v in found - public if len(v) >= _SHORTEST), key=len, reverse=True))


def hide(text: str, secrets: tuple[str, ...]) -> str:
    """Return *text* without *secrets*."""
    for secret in secrets:
        if secret in text:
            text = text.replace(secret, HIDDEN)
    return text


def hide_in_error(session: Session, secrets: tuple[str, ...]) -> None:
    """Take *secrets* out of what the gateway said was wrong."""
    error = session.error
    if error is not None:
        session.error = replace(
            error,
            message=hide(error.message, secrets),
            type=None if error.type is None else hide(error.type, secrets),
            code=None if error.code is None else hide(error.code, secrets),
        )


def hide_in_record(record: Attempt, secrets: tuple[str, ...]) -> Attempt:
    """Return *record* without *secrets* in the names that the gateway chose."""
    chosen = {
        "server_request_id": record.server_request_id,
        "response_id": record.response_id,
    }
    clean = {name: hide(text, secrets) for name, text in chosen.items() if text is not None}
    if any(clean[name] != chosen[name] for name in clean):
        record = structs.replace(record, **clean)
    words = record.keepalive.text
    if words is not None and hide(words, secrets) != words:
        record = structs.replace(
            record, keepalive=structs.replace(record.keepalive, text=hide(words, secrets))
        )
    return record

"""How an attempt ended when its connection did, and what kind of error that is."""

from __future__ import annotations

from typing import Final, Literal

from harness.stream.outcome import EndReason, Outcome
from harness.wire.signals import ErrorFacts, Facts

# Answers whose body is an error message, not a stream.
NOT_STREAMS: Final = frozenset({"http_error", "not_a_stream"})

# What the stream itself can decide before its connection ends.
SETTLED_BY_STREAM: Final = frozenset({"completed", "empty", "truncated", "error_event"})


def outcome_of_terminal(facts: Facts, *, needs_finish: bool) -> Outcome:
    """Return the outcome of a stream whose terminal came; *needs_finish*: it has to be announced."""
    if not facts.has_output:
        return "empty"
    return "completed" if facts.finished or not needs_finish else "truncated"


def outcome_of_end(
    reason: EndReason, status: int | None, facts: Facts, terminator: Literal["required", "optional"]
) -> Outcome:
    """Return the outcome of an exchange that ended before anything else decided it.

    *status* is None if no headers came; *facts* are what the grammar knows by then.
    """
    match reason:
        case "aborted" | "abandoned":
            return reason
        case "closed":
            return "aborted"
        case "connect_error":
            return "connect_error"
        case "bad_http":
            return "protocol_error"
    if status is None:
        return "no_response"
    if reason != "eof":
        return "cut"
    if not facts.finished:
        return "truncated"
    if terminator == "required":
        return "unterminated"
    return "completed" if facts.has_output else "empty"


def transport_error(outcome: Outcome, reason: EndReason, detail: str) -> ErrorFacts | None:
    """Return the error behind *outcome* if the transport is where it happened."""
    if outcome not in ("cut", "no_response", "connect_error", "protocol_error"):
        return None
    kind = "bad_http" if outcome == "protocol_error" else outcome
    return ErrorFacts("transport", kind, None, detail, True, f"transport.{kind}")

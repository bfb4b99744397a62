"""How an attempt can end: exactly one outcome each, and which of them are failures."""

from __future__ import annotations

from typing import Literal, get_args

Outcome = Literal[
    "completed", "unterminated", "empty", "error_event", "http_error", "not_a_stream", "stalled", "truncated",
    "cut", "connect_error", "no_response", "protocol_error", "abandoned", "aborted",
]  # fmt: skip
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

# Counted apart: neither the gateway's success nor its failure.
CLIENT_ENDED: frozenset[str] = frozenset({"abandoned", "aborted"})

# After these a closed-loop user waits before its next request: nothing was streamed, so a dead
# gateway would otherwise be hammered as fast as it refuses.
BACK_OFF: frozenset[str] = frozenset({"connect_error", "no_response", "http_error"})

RetryOutcome = Literal["not_needed", "recovered", "exhausted", "not_retryable", "deadline"]

StallClass = Literal[
    "no_connect", "no_headers", "headers_no_body", "keepalive_only_pre", "keepalive_only_mid",
    "dead_silence_pre", "dead_silence_mid", "half_event", "over_total",
]  # fmt: skip
SoftStallClass = Literal[
    "keepalive_late", "keepalive_violation", "slow_progress", "burst", "post_terminal_hang"
]
STALL_CLASSES: tuple[str, ...] = get_args(StallClass) + get_args(SoftStallClass)

Phase = Literal[
    "connect", "before_headers", "before_first_byte", "before_first_token", "mid_stream", "after_terminal"
]

# How the transport saw an exchange end.
EndReason = Literal[
    "eof",  # the body ended as HTTP says a body ends
    "cut",  # the connection broke inside the body
    "no_response",  # closed before the headers were whole
    "connect_error",  # no connection came about
    "bad_http",  # bytes that are not HTTP
    "closed",  # closed by us because the session asked for it
    "abandoned",  # closed by the user, on purpose
    "aborted",  # the run ended first
]


def is_failure(outcome: str) -> bool:
    """Return whether *outcome* counts against the gateway."""
    return outcome != "completed" and outcome not in CLIENT_ENDED

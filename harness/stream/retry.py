"""Which failures are worth sending again, and what became of a request in the end."""

from __future__ import annotations

from typing import Final

from harness.stream.outcome import CLIENT_ENDED, RetryOutcome
from harness.stream.record import Attempt

# Broken before or inside the stream without a word of why: sending the whole request again may help.
# An answer that came whole (`unterminated`, `empty`) or no stream at all would come the same again.
_RETRYABLE: Final = frozenset({"connect_error", "no_response", "stalled", "truncated", "cut"})

# The gateway said what was wrong, and that decides.
_BY_ERROR: Final = frozenset({"error_event", "http_error"})


def is_retryable(record: Attempt) -> bool:
    """Return whether sending the request of *record* again, whole, can help."""
    if record.outcome in _BY_ERROR:
        return record.error is not None and record.error.retryable
    return record.outcome in _RETRYABLE


def retry_outcome(last: Attempt, attempts: int) -> RetryOutcome | None:
    """Return what became of a request whose *last* attempt was its number *attempts*; None if the client ended it."""
    if last.outcome in CLIENT_ENDED:
        return None
    if last.success:
        return "not_needed" if attempts == 1 else "recovered"
    return "exhausted" if is_retryable(last) else "not_retryable"

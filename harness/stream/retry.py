"""What a client does after a failure: the official SDKs' policy, and the whole-request resend.

Pure: the time that has passed, the wall clock (for ``Retry-After`` dates) and the random number come
in as arguments. Constants are those of the official Python SDKs (openai 3.57, anthropic 2.14), which
share a skeleton and differ where the tables here differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import mktime_tz, parsedate_tz
from typing import Final, Literal

from harness.stream.outcome import CLIENT_ENDED, RetryOutcome
from harness.stream.record import Attempt, Retry

PolicyName = Literal["none", "sdk", "resend"]
POLICIES: Final[tuple[PolicyName, ...]] = ("none", "sdk", "resend")

MAX_RETRIES: Final = 2
FIRST_DELAY_S: Final = 0.5
LONGEST_DELAY_S: Final = 8.0
JITTER: Final = 0.25

# The openai SDK does not wait longer than this for a server: it gives up instead.
OPENAI_LONGEST_ORDER_S: Final = 120.0
# The anthropic SDK waits as long as it is told, up to what its timer can hold.
ANTHROPIC_LONGEST_ORDER_S: Final = 4_294_967.0

_RETRIED_STATUS: Final = frozenset({408, 409, 429})

# Broken without a word of why: sending the whole request again may help. An answer that came whole
# (`unterminated`, `empty`) or no stream at all would come the same again.
_RETRYABLE: Final = frozenset({"connect_error", "no_response", "stalled", "truncated", "cut"})

# The gateway said what was wrong, and that decides.
_BY_ERROR: Final = frozenset({"error_event", "http_error"})


@dataclass(frozen=True, slots=True)
class Policy:
    """A retry policy with its bounds; `budget_s` counts from the planned start of the request."""

    name: PolicyName = "none"
    max_retries: int = MAX_RETRIES
    budget_s: float | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do after an attempt: `retry` for its record; `outcome` is None if a retry follows."""

    retry: Retry
    outcome: RetryOutcome | None


def decide(
    policy: Policy,
    record: Attempt,
    headers: Mapping[str, str],
    *,
    elapsed_s: float,
    wall: float,
    draw: float,
) -> Verdict:
    """Return what *policy* does after the attempt in *record*, whose response had *headers* (lower case).

    *elapsed_s* has passed since the planned start, *wall* is unix time, *draw* is uniform in [0, 1).
    """
    if record.outcome in CLIENT_ENDED:
        return Verdict(Retry("none"), None)
    if record.success:
        return Verdict(Retry("none"), "not_needed" if record.attempt == 1 else "recovered")
    reason = reason_of(record)
    if policy.name == "none":
        return Verdict(Retry("none"), "exhausted" if is_retryable(record) else "not_retryable")
    anthropic = record.protocol == "messages"
    order_s = ordered_delay(headers, wall)
    retryable = _sdk_retries(record, headers, order_s, anthropic=anthropic)
    if policy.name == "resend" and not retryable and record.status is not None and 200 <= record.status < 300:
        retryable = is_retryable(record)
    if not retryable:
        return Verdict(Retry("give_up", reason), "not_retryable")
    if record.attempt > policy.max_retries:
        return Verdict(Retry("give_up", reason), "exhausted")
    delay_s = delay(record.attempt - 1, order_s, draw, anthropic=anthropic)
    if policy.budget_s is not None and elapsed_s + delay_s > policy.budget_s:
        return Verdict(Retry("give_up", reason), "deadline")
    return Verdict(Retry("retry", reason, round(delay_s, 6)), None)


def is_retryable(record: Attempt) -> bool:
    """Return whether sending the request of *record* again, whole, can help."""
    if record.outcome in _BY_ERROR:
        return record.error is not None and record.error.retryable
    return record.outcome in _RETRYABLE


def reason_of(record: Attempt) -> str:
    """Return why a retry is considered: the outcome, an HTTP error with its status."""
    return f"http_{record.status}" if record.outcome == "http_error" else record.outcome


def delay(attempt: int, order_s: float | None, draw: float, *, anthropic: bool) -> float:
    """Return the wait in seconds after attempt *attempt* (from 0): the server's order, else backoff."""
    if order_s is not None and anthropic:
        return min(order_s, ANTHROPIC_LONGEST_ORDER_S)
    if order_s is not None and order_s <= OPENAI_LONGEST_ORDER_S:
        return order_s
    backoff_s = min(FIRST_DELAY_S * 2.0**attempt, LONGEST_DELAY_S)
    return float(backoff_s * (1.0 - JITTER * draw))


def ordered_delay(headers: Mapping[str, str], wall: float) -> float | None:
    """Return the wait that the server asks for, in seconds; None if it asks for none that can be kept.

    ``retry-after-ms`` goes before ``Retry-After``, which is a number of seconds or an HTTP date. Zero,
    negative, not a number, unreadable: none.
    """
    order_s = _number(headers.get("retry-after-ms"), 1e-3)
    if order_s is None:
        order_s = _number(headers.get("retry-after"), 1.0)
    if order_s is None and (text := headers.get("retry-after")):
        try:
            date = parsedate_tz(text)
            order_s = None if date is None else mktime_tz(date) - wall
        except (ValueError, TypeError, OverflowError, OSError):
            return None
    return order_s if order_s is not None and order_s > 0.0 else None


def _number(text: str | None, unit_s: float) -> float | None:
    try:
        return float(text) * unit_s if text else None
    except ValueError:
        return None


def _sdk_retries(
    record: Attempt, headers: Mapping[str, str], order_s: float | None, *, anthropic: bool
) -> bool:
    """Return whether the official SDK of the protocol would send the request again."""
    if record.status is None:  # no answer at all: refused, closed, timed out, or no HTTP
        return True
    if record.outcome != "http_error":
        return False  # after the headers of a 2xx nothing is ever retried
    if not anthropic and order_s is not None and OPENAI_LONGEST_ORDER_S < order_s < math.inf:
        return False
    wish = headers.get("x-should-retry")
    if wish in ("true", "false"):
        return wish == "true"
    return record.status in _RETRIED_STATUS or record.status >= 500

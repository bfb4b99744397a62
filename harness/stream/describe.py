"""One line that tells a person what happened to a stream: what was seen, for how long, after what."""

from __future__ import annotations

from harness.gateways import format_duration
from harness.stream.record import Attempt, Stall

_STALLS = {
    "no_connect": "no connection within {limit}",
    "no_headers": "no response headers for {waited} after the request was sent",
    "headers_no_body": "headers, but not one byte of the body for {waited}",
    "keepalive_only_pre": "stuck: no token for {waited}; {alive}",
    "keepalive_only_mid": "stuck: no token for {waited} after {tokens}; {alive}",
    "dead_silence_pre": "silent: no byte for {waited} before the first token",
    "dead_silence_mid": "silent: no byte for {waited} after {tokens}",
    "half_event": "half an event, then no byte for {waited}",
    "over_total": "still running at the total limit of {limit}, after {tokens}",
    "keepalive_late": "keepalive late: {waited} without one",
    "keepalive_violation": "keepalive promise broken: {waited} without one",
    "slow_progress": "slow: {waited} {slow}",
    "burst": "burst: many events at once, as from a proxy that buffers",
    "post_terminal_hang": "connection left open for {waited} after the end",
}

# What a soft limit was waiting for, by phase.
_SLOW = {
    "connect": "to connect",
    "before_headers": "without response headers",
    "before_first_byte": "without a byte of the body",
    "before_first_token": "without a first token",
    "after_terminal": "in all",
}


def describe(record: Attempt) -> str:
    """Return what happened to the attempt in one line, without a line break."""
    match record.outcome:
        case "completed":
            finish = record.finish or "other"
            return f"completed ({finish}): {_tokens(record)} in {format_duration(record.end_s)}"
        case "unterminated":
            return f"whole answer ({_tokens(record)}), but its terminator never came"
        case "empty":
            return "ended as promised, but without any output"
        case "error_event":
            return f"error inside the stream after {_tokens(record)}: {_error(record)}"
        case "http_error":
            return f"HTTP {record.status}: {_error(record)}"
        case "not_a_stream":
            return f"HTTP {record.status}, but no event stream: {_error(record)}"
        case "stalled":
            return stall_line(record.stall, record) if record.stall else "stalled"
        case "truncated":
            return f"cut off cleanly after {_tokens(record)}: the body ended before the answer did"
        case "cut":
            return f"connection broke after {_tokens(record)}: {_error(record)}"
        case "connect_error":
            return f"no connection: {_error(record)}"
        case "no_response":
            return f"no response: {_error(record)}"
        case "protocol_error":
            return f"not the protocol: {_error(record)}"
        case "abandoned":
            return f"left by its user after {_tokens(record)}, {format_duration(record.end_s)}"
    return f"the run ended first, after {_tokens(record)} in {format_duration(record.end_s)}"


def failure_name(record: Attempt) -> str:
    """Return the outcome with the stall class: the name under which failures of a kind are counted."""
    return (
        f"{record.outcome}/{record.stall.class_}"
        if record.outcome == "stalled" and record.stall
        else record.outcome
    )


def stall_line(stall: Stall, record: Attempt) -> str:
    """Return one line for a hard or soft stall of *record*."""
    keepalives = record.keepalive.comments + record.keepalive.pings
    alive = f"{_count(keepalives, 'keepalive')} in all" if keepalives else "other bytes came"
    return _STALLS[stall.class_].format(
        slow=_SLOW.get(stall.phase, "without a token"),
        limit=format_duration(stall.limit_s),
        waited=format_duration(stall.ended_s - stall.began_s),
        tokens=_tokens(record),
        alive=alive,
    )


def _tokens(record: Attempt) -> str:
    return _count(record.progress.count, "token event")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number:,} {noun}s"


def _error(record: Attempt) -> str:
    error = record.error
    if error is None:
        return "no further words"
    both = error.type and error.code
    name = f"{error.type} ({error.code})" if both else error.type or error.code or ""
    if error.layer == "transport":
        return error.message or name
    return (
        f"{name}: {error.message}" if name and error.message else error.message or name or "no further words"
    )

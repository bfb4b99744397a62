"""Turns an ended session into its record: offsets from `t0`, numbers rounded to the microsecond."""

from __future__ import annotations

import math
from array import array

import msgspec

from harness.stream.record import (
    SCHEMA,
    Attempt,
    ErrorRecord,
    Identity,
    KeepaliveRecord,
    Progress,
    RequestSummary,
    Retry,
    Stall,
    Tokens,
)  # fmt: skip
from harness.stream.session import Session
from harness.wire.signals import ErrorFacts

# A server's words are cut here: enough to recognise an error, too little to flood a log.
MESSAGE_CHARS = 200
NAME_CHARS = 100


def assemble(
    session: Session,
    identity: Identity,
    epoch: float,
    *,
    retry: Retry,
    final: bool,
    summary: RequestSummary | None = None,
) -> Attempt:
    """Return the record of *session*, which must have ended.

    *epoch* is the unix time of monotonic zero. *summary* belongs to the line with `final`.
    """
    assert session.ended_at is not None
    assert session.outcome is not None
    pace, facts, first = session.pace, session.grammar.facts, session.first
    zero = session.zero
    ended_at = session.ended_at

    def offset(moment: float | None) -> float | None:
        return None if moment is None else round(moment - zero, 6)

    return Attempt(
        schema=SCHEMA,
        run=identity.run,
        request=identity.request,
        attempt=identity.attempt,
        final=final,
        protocol=identity.protocol,
        gateway=identity.gateway,
        simulated=identity.simulated,
        scenario=identity.scenario,
        model=identity.model,
        worker=identity.worker,
        phase=identity.phase,
        scheduled_at=round(identity.scheduled_at, 6),
        sent_at=round(epoch + zero, 6),
        clock=session.clock,
        lag_max_s=rounded(session.lag_max_s),
        uncertain_max_s=rounded(max(session.uncertainties, default=None)),
        uncertain_events=len(session.uncertainties),
        reused_connection=session.reused,
        status=session.status,
        peer=session.peer,
        server_request_id=_server_request_id(session),
        response_id=_name(facts.response_id),
        connect_s=rounded(session.connect_s),
        tls_s=rounded(session.tls_s),
        headers_s=offset(session.headers_at),
        first_byte_s=offset(session.first_byte),
        first_event_s=offset(first.get("first_event")),
        first_token_s=offset(first.get("first_token")),
        first_content_s=offset(first.get("first_content")),
        first_reasoning_s=offset(first.get("first_reasoning")),
        first_tool_s=offset(first.get("first_tool")),
        last_token_s=offset(session.last_progress),
        last_byte_s=offset(session.last_byte),
        terminal_s=offset(session.terminal_at),
        end_s=round(ended_at - zero, 6),
        events=session.events,
        bytes=session.bytes,
        reads=session.reads,
        tokens=tokens_of(session),
        progress=_progress(session),
        keepalive=KeepaliveRecord(
            comments=pace.comments,
            pings=pace.pings,
            first_s=offset(pace.first_keepalive),
            gap_min_s=rounded(pace.interval_min_s),
            gap_mean_s=rounded(pace.interval_sum_s / pace.interval_count if pace.interval_count else None),
            gap_max_s=rounded(pace.interval_max_s),
            late=pace.late,
            violations=pace.violations,
            text=escape(pace.text, NAME_CHARS) if pace.text is not None else None,
        ),
        silence_max_s=rounded(pace.silence_max_s) if pace.silence_max_at is not None else None,
        silence_max_at_s=offset(pace.silence_max_at),
        silence_end_s=None if session.last_byte is None else round(max(0.0, ended_at - session.last_byte), 6),
        outcome=session.outcome,
        finish=facts.finish if session.outcome in ("completed", "unterminated", "empty") else None,
        stall=_rounded_stall(session.stalls.hard),
        soft_stalls=[s for s in map(_rounded_stall, session.stalls.soft) if s is not None],
        error=_error(session.error),
        violations=facts.violations,
        retry=retry,
        request_summary=msgspec.UNSET if summary is None else summary,
    )


def tokens_of(session: Session) -> Tokens:
    """Return the stream's token counts: the gateway's own where it sent them, else progress events."""
    usage = session.grammar.facts.usage
    if usage is not None and usage.output is not None:
        return Tokens(usage.input, usage.output, usage.reasoning, usage.cached, "usage")
    known = usage.input if usage is not None else None
    cached = usage.cached if usage is not None else None
    return Tokens(known, session.progress_count, None, cached, "events")


def escape(text: str, chars: int) -> str:
    """Return *text* with control characters as escapes, cut to *chars* characters."""
    text = text[:chars]
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)[:chars]


def rounded(seconds: float | None) -> float | None:
    """Return *seconds* to the microsecond: finer digits are noise and triple the file."""
    return None if seconds is None else round(seconds, 6)


def quantile(ordered: array[float] | list[float], q: float) -> float:
    """Return the *q* quantile of *ordered* values, interpolated linearly (type 7)."""
    place = q * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def _progress(session: Session) -> Progress:
    pace = session.pace
    if not pace.gaps:
        return Progress(session.progress_count, None, None, None, None)
    ordered = sorted(pace.gaps)
    assert pace.gap_max_at is not None
    return Progress(
        count=session.progress_count,
        gap_p50_s=round(quantile(ordered, 0.5), 6),
        gap_p99_s=round(quantile(ordered, 0.99), 6),
        gap_max_s=round(pace.gap_max_s, 6),
        gap_max_at_s=round(pace.gap_max_at - session.zero, 6),
    )


def _rounded_stall(stall: Stall | None) -> Stall | None:
    if stall is None:
        return None
    return Stall(
        stall.class_,
        stall.phase,
        round(stall.limit_s, 6),
        round(stall.began_s, 6),
        round(stall.ended_s, 6),
        stall.fatal,
    )


def _error(facts: ErrorFacts | None) -> ErrorRecord | None:
    if facts is None:
        return None
    return ErrorRecord(
        layer=facts.layer,
        type=_name(facts.type),
        code=_name(facts.code),
        message=escape(facts.message, MESSAGE_CHARS),
        retryable=facts.retryable,
        shape=facts.shape,
    )


def _name(text: str | None) -> str | None:
    return None if text is None else escape(text, NAME_CHARS)


def _server_request_id(session: Session) -> str | None:
    headers = session.response_headers
    return _name(headers.get("x-request-id") or headers.get("request-id"))

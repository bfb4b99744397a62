"""What one ended attempt adds to the totals: the table from the record's fields to the metrics."""

from __future__ import annotations

from harness.observe import families as f
from harness.observe.labels import NONE, Labels, Vocabulary
from harness.observe.live import OpenStream
from harness.observe.totals import Totals
from harness.stream.outcome import CLIENT_ENDED
from harness.stream.record import Attempt, Stall

_CLOCKS = (
    (f.HEADERS, "headers_s"),
    (f.FIRST_BYTE, "first_byte_s"),
    (f.FIRST_TOKEN, "first_token_s"),
    (f.FIRST_CONTENT, "first_content_s"),
    (f.LONGEST_SILENCE, "silence_max_s"),
)

# These ended before or without a stream: their time says nothing about how long streams last.
_NO_STREAM = CLIENT_ENDED | {"http_error", "not_a_stream", "connect_error", "no_response"}


class Vocabularies:
    """The bounded label values of one run that a server or a user's options choose."""

    def __init__(self) -> None:
        self.models = Vocabulary(100)
        self.error_types = Vocabulary(50)
        self.rules = Vocabulary(200)
        self.statuses = Vocabulary(60)
        self.reasons = Vocabulary(50)


def count_attempt(
    totals: Totals,
    words: Vocabularies,
    labels: Labels,
    session: OpenStream,
    record: Attempt,
    threshold_s: float,
) -> None:
    """Count *record* and what the session knew beyond it; gaps are counted elsewhere, as they come."""
    status = NONE if record.status is None else words.statuses.fold(str(record.status))
    totals.count(f.ATTEMPTS, (*labels, record.outcome, record.finish or NONE, status))
    for family, clock in _CLOCKS:
        value = getattr(record, clock)
        if value is not None:
            totals.histogram(family, labels).add(value)
    if record.first_byte_s is not None and record.outcome not in _NO_STREAM:
        totals.histogram(f.STREAM_DURATION, labels).add(record.end_s)
    _count_waits(totals, labels, session, record)
    for stall in (record.stall, *record.soft_stalls):
        if stall is not None:
            _count_stall(totals, labels, stall)
    for class_, n in session.soft_stall_counts.items():
        kept = sum(stall.class_ == class_ for stall in record.soft_stalls)
        if n > kept:  # the record's list is full; their durations are in no histogram
            totals.count(f.STALLS, (*labels, class_, "false"), n - kept)
    if record.error is not None and record.error.layer == "stream":
        phase = "before_first_token" if record.first_token_s is None else "mid_stream"
        totals.count(
            f.ERROR_EVENTS, (*labels, words.error_types.fold(record.error.type or record.error.code), phase)
        )
    for rule, n in record.violations.items():
        totals.count(f.VIOLATIONS, (*labels, words.rules.fold(rule)), n)
    for kind in ("input", "output", "reasoning"):
        if n := getattr(record.tokens, kind):
            totals.count(f.TOKENS, (*labels, kind), n)
    _count_retries(totals, words, labels, record)
    _count_health(totals, session, record, threshold_s)


def _count_waits(totals: Totals, labels: Labels, session: OpenStream, record: Attempt) -> None:
    for kind, interval_s in session.keepalive_gaps:
        totals.histogram(f.KEEPALIVE_INTERVAL, (*labels, kind)).add(interval_s)
    keepalive = record.keepalive
    for family, kind, n in (
        (f.KEEPALIVES, "comment", keepalive.comments),
        (f.KEEPALIVES, "ping", keepalive.pings),
        (f.KEEPALIVE_DEVIATIONS, "late", keepalive.late),
        (f.KEEPALIVE_DEVIATIONS, "violation", keepalive.violations),
        (f.WAIT, "thinking", session.thinking_s),
        (f.WAIT, "dead", session.dead_s),
    ):
        if n > 0:
            totals.count(family, (*labels, kind), n)


def _count_stall(totals: Totals, labels: Labels, stall: Stall) -> None:
    key = (*labels, stall.class_, "true" if stall.fatal else "false")
    totals.count(f.STALLS, key)
    totals.histogram(f.STALL_DURATION, key).add(stall.ended_s - stall.began_s)


def _count_retries(totals: Totals, words: Vocabularies, labels: Labels, record: Attempt) -> None:
    if record.retry.decision == "retry":
        reason = words.reasons.fold(record.retry.reason)
        totals.count(f.RETRIES, (*labels, reason))
        totals.histogram(f.RETRY_WAIT, (*labels, reason)).add(record.retry.delay_s or 0.0)
    summary = record.request_summary
    if record.final and summary:
        totals.count(f.REQUESTS, (*labels, summary.outcome, summary.retry_outcome or NONE))
        totals.histogram(f.REQUEST_ATTEMPTS, labels).add(summary.attempts)
        if summary.wasted_tokens:
            totals.count(f.TOKENS, (*labels, "wasted"), summary.wasted_tokens)


def _count_health(totals: Totals, session: OpenStream, record: Attempt, threshold_s: float) -> None:
    health = totals.health
    health.events += record.events
    health.attempts += 1
    health.attempts_user_clock += record.clock == "user"
    if record.first_token_s is not None:
        health.first_tokens += 1
        health.first_tokens_uncertain += session.first_token_window_s > threshold_s
    for width_s in session.uncertainties:
        health.events_uncertain += width_s > threshold_s
        health.uncertain_max_s = max(health.uncertain_max_s, width_s)

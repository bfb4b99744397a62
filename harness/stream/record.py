"""The attempt record, schema ``harness.attempt/1``: one JSON line per HTTP exchange.

Offsets are seconds from `t0`, the moment before the request was written; None where it did not
happen; `connect_s` and `tls_s` are durations. Field order is the order in the file.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from harness.stream.outcome import Outcome, RetryOutcome

SCHEMA = "harness.attempt/1"


class Tokens(msgspec.Struct, frozen=True):
    """Token counts; with source ``events`` `output` is the number of progress events."""

    input: int | None
    output: int | None
    reasoning: int | None
    cached: int | None
    source: Literal["usage", "events"]


class Progress(msgspec.Struct, frozen=True):
    """Gaps between consecutive progress events, seconds."""

    count: int
    gap_p50_s: float | None
    gap_p99_s: float | None
    gap_max_s: float | None
    gap_max_at_s: float | None


class KeepaliveRecord(msgspec.Struct, frozen=True):
    """Signs of life without content. The gaps are intervals in the sense of the gateway's promise."""

    comments: int
    pings: int
    first_s: float | None
    gap_min_s: float | None
    gap_mean_s: float | None
    gap_max_s: float | None
    late: int
    violations: int
    text: str | None


class Stall(msgspec.Struct, frozen=True, rename={"class_": "class"}):
    """Overdue since `began_s`, beyond `limit_s`, until `ended_s`; `fatal` if it ended the stream."""

    class_: str
    phase: str
    limit_s: float
    began_s: float
    ended_s: float
    fatal: bool


class ErrorRecord(msgspec.Struct, frozen=True):
    """An error with the server's text cut to 200 characters and control characters escaped."""

    layer: Literal["http", "stream", "transport", "client"]
    type: str | None
    code: str | None
    message: str
    retryable: bool
    shape: str


class Retry(msgspec.Struct, frozen=True):
    """What the retry policy decided after this attempt."""

    decision: Literal["none", "retry", "give_up"]
    reason: str | None = None
    delay_s: float | None = None


class RequestSummary(msgspec.Struct, frozen=True):
    """The request as its user saw it; times count from the planned start."""

    attempts: int
    outcome: Outcome
    retry_outcome: RetryOutcome | None
    first_token_s: float | None
    first_content_s: float | None
    end_s: float
    wasted_tokens: int
    wasted_source: Literal["usage", "events"] | None


class Attempt(msgspec.Struct, frozen=True):
    """One attempt. The docs' record reference explains each field."""

    schema: str
    run: str
    request: str
    attempt: int
    final: bool
    protocol: str
    gateway: str
    simulated: bool
    scenario: str
    model: str
    worker: str
    phase: Literal["warmup", "measure"]
    scheduled_at: float
    sent_at: float | None
    clock: Literal["kernel", "user"]
    lag_max_s: float | None
    uncertain_max_s: float | None
    uncertain_events: int
    reused_connection: bool
    status: int | None
    peer: str | None
    server_request_id: str | None
    response_id: str | None
    connect_s: float | None
    tls_s: float | None
    headers_s: float | None
    first_byte_s: float | None
    first_event_s: float | None
    first_token_s: float | None
    first_content_s: float | None
    first_reasoning_s: float | None
    first_tool_s: float | None
    last_token_s: float | None
    last_byte_s: float | None
    terminal_s: float | None
    end_s: float
    events: int
    bytes: int
    reads: int
    tokens: Tokens
    progress: Progress
    keepalive: KeepaliveRecord
    silence_max_s: float | None
    silence_max_at_s: float | None
    silence_end_s: float | None
    outcome: Outcome
    finish: str | None
    stall: Stall | None
    soft_stalls: list[Stall]
    error: ErrorRecord | None
    violations: dict[str, int]
    retry: Retry
    request_summary: RequestSummary | msgspec.UnsetType = msgspec.UNSET

    @property
    def success(self) -> bool:
        """Whether the stream did what its user wanted."""
        return self.outcome == "completed"


class Identity(msgspec.Struct, frozen=True):
    """Who an attempt belongs to: the part of a record that is known before it starts."""

    run: str
    request: str
    attempt: int
    protocol: str
    gateway: str
    simulated: bool
    scenario: str
    model: str
    worker: str
    phase: Literal["warmup", "measure"]
    scheduled_at: float


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Attempt)


def to_json(record: Attempt) -> bytes:
    """Return the record as one line of JSON, without the line end."""
    return _ENCODER.encode(record)


def from_json(line: bytes) -> Attempt:
    """Return the record in *line*. Raises `ValueError` if it is not one of this schema version."""
    try:
        record = _DECODER.decode(line)
    except msgspec.DecodeError as error:
        raise ValueError(f"not a record of {SCHEMA}: {error}") from None
    if record.schema != SCHEMA:
        raise ValueError(f"schema {record.schema!r}, expected {SCHEMA!r}")
    return record

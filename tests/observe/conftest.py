"""Made-up sessions and records: every test states only what it is about."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from harness.observe.aggregate import Aggregate, Labels
from harness.stream.record import (
    SCHEMA,
    Attempt,
    ErrorRecord,
    KeepaliveRecord,
    Progress,
    RequestSummary,
    Retry,
    Stall,
    Tokens,
)

LABELS = Labels("r1", "chat", "sim:hopbase", "default", "m1")


@dataclass
class FakeSession:
    """What the aggregate reads of a session. Times are monotonic seconds."""

    phase: str = "mid_stream"
    opened: float = 100.0
    t0: float | None = 100.0
    last_byte: float | None = None
    last_progress: float | None = None
    slow_after_s: float | None = None
    gaps: array[float] = field(default_factory=lambda: array("d"))
    keepalive_gaps: list[tuple[str, float]] = field(default_factory=list)
    thinking_s: float = 0.0
    dead_s: float = 0.0
    uncertainties: list[float] = field(default_factory=list)
    soft_stall_counts: dict[str, int] = field(default_factory=dict)
    first_token_window_s: float = 0.0

    def timeline(self) -> dict[str, Any]:
        return {"t": [0.1, 0.2], "kind": ["content", "comment"], "dropped": 0}


def make_record(**changed: Any) -> Attempt:
    """A completed chat stream: headers 50 ms, first token 400 ms, five tokens, done at 1 s."""
    outcome = changed.get("outcome", "completed")
    final = changed.get("final", True)
    summary = RequestSummary(1, outcome, "not_needed", 0.4, 0.4, 1.0, 0, None) if final else msgspec.UNSET
    fields: dict[str, Any] = {
        "schema": SCHEMA,
        "run": "r1",
        "request": "q1",
        "attempt": 1,
        "final": final,
        "protocol": "chat",
        "gateway": "sim:hopbase",
        "simulated": True,
        "scenario": "default",
        "model": "m1",
        "worker": "local",
        "phase": "measure",
        "scheduled_at": 1.0,
        "sent_at": 1.0,
        "clock": "kernel",
        "lag_max_s": 0.0,
        "uncertain_max_s": None,
        "uncertain_events": 0,
        "reused_connection": False,
        "status": 200,
        "peer": None,
        "server_request_id": None,
        "response_id": None,
        "connect_s": 0.001,
        "tls_s": None,
        "headers_s": 0.05,
        "first_byte_s": 0.1,
        "first_event_s": 0.1,
        "first_token_s": 0.4,
        "first_content_s": 0.4,
        "first_reasoning_s": None,
        "first_tool_s": None,
        "last_token_s": 0.9,
        "last_byte_s": 1.0,
        "terminal_s": 1.0,
        "end_s": 1.0,
        "events": 7,
        "bytes": 700,
        "reads": 7,
        "tokens": Tokens(10, 5, None, None, "usage"),
        "progress": Progress(5, 0.125, 0.13, 0.13, 0.5),
        "keepalive": make_keepalive(),
        "silence_max_s": 0.3,
        "silence_max_at_s": 0.1,
        "silence_end_s": 0.0,
        "outcome": "completed",
        "finish": "stop",
        "stall": None,
        "soft_stalls": [],
        "error": None,
        "violations": {},
        "retry": Retry("none"),
        "request_summary": summary,
    }
    return Attempt(**{**fields, **changed})


def make_keepalive(**changed: Any) -> KeepaliveRecord:
    fields: dict[str, Any] = {
        "comments": 0,
        "pings": 0,
        "first_s": None,
        "gap_min_s": None,
        "gap_mean_s": None,
        "gap_max_s": None,
        "late": 0,
        "violations": 0,
        "text": None,
    }
    return KeepaliveRecord(**{**fields, **changed})


def make_stalled(class_: str = "keepalive_only_mid", limit_s: float = 1.5, **changed: Any) -> Attempt:
    """A stream that a hard limit ended 1.5 s after its last token at 0.9 s."""
    stall = Stall(class_, "mid_stream", limit_s, 0.9, 0.9 + limit_s, True)
    fields: dict[str, Any] = {
        "outcome": "stalled",
        "finish": None,
        "stall": stall,
        "end_s": 0.9 + limit_s,
        "terminal_s": None,
    }
    return make_record(**{**fields, **changed})


def make_error(type_: str = "server_error", **changed: Any) -> Attempt:
    """A stream that the gateway ended with an error inside HTTP 200."""
    error = ErrorRecord("stream", type_, "upstream_error", "please retry", True, "data")
    return make_record(**{"outcome": "error_event", "finish": None, "error": error, **changed})


@pytest.fixture
def labels() -> Labels:
    return LABELS


@pytest.fixture
def session() -> type[FakeSession]:
    return FakeSession


@pytest.fixture
def record() -> Callable[..., Attempt]:
    return make_record


@pytest.fixture
def stalled() -> Callable[..., Attempt]:
    return make_stalled


@pytest.fixture
def error_event() -> Callable[..., Attempt]:
    return make_error


@pytest.fixture
def keepalive() -> Callable[..., KeepaliveRecord]:
    return make_keepalive


@pytest.fixture
def aggregate() -> Aggregate:
    """One run with two streams: one completed after two gaps, one stalled and ended."""
    made = Aggregate("w1")
    made.begin_run("r1", started_at=1000.0)
    for record in (make_record(), make_stalled(request="q2")):
        stream = FakeSession(keepalive_gaps=[("comment", 10.02)], thinking_s=1.5, dead_s=0.25)
        made.request_started(LABELS)
        made.attempt_started(LABELS, stream)
        made.gaps(LABELS, [0.125, 0.02])
        made.attempt_ended(LABELS, stream, record)
    return made

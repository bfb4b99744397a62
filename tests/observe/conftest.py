"""Made-up sessions and records: every test states only what it is about."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from harness.observe.aggregate import Aggregate, Labels
from harness.stream.record import Attempt, ErrorRecord, KeepaliveRecord, RequestSummary, Stall
from tests import records

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
    """A stream of the simulated HopBase, with its request's summary if it is the last attempt."""
    outcome = changed.get("outcome", "completed")
    final = changed.get("final", True)
    summary = RequestSummary(1, outcome, "not_needed", 0.4, 0.4, 1.0, 0, None) if final else msgspec.UNSET
    fields: dict[str, Any] = {"gateway": "sim:hopbase", "simulated": True, "connect_s": 0.001}
    return records.make_record(**{**fields, "request_summary": summary, **changed})


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
    return records.make_keepalive


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

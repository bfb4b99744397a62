"""A made-up attempt record: every test states only what it is about."""

from __future__ import annotations

from typing import Any

from harness.stream.record import SCHEMA, Attempt, KeepaliveRecord, Progress, Retry, Tokens


def make_record(**changed: Any) -> Attempt:
    """A completed chat stream: headers 50 ms, first token 400 ms, five tokens, done at 1 s."""
    fields: dict[str, Any] = {
        "schema": SCHEMA,
        "run": "r1",
        "request": "q1",
        "attempt": 1,
        "final": True,
        "protocol": "chat",
        "gateway": "g",
        "simulated": False,
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
        "connect_s": None,
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
        **changed,
    }
    return Attempt(**fields)


def make_keepalive(**changed: Any) -> KeepaliveRecord:
    """What a stream without a keepalive has to say of them."""
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
        **changed,
    }
    return KeepaliveRecord(**fields)

"""The line that a person reads: exactly, for every outcome and every stall."""

import pytest

from harness.stream import Attempt, describe, failure_name
from harness.stream.describe import stall_line
from harness.stream.outcome import OUTCOMES, STALL_CLASSES
from tests.unit.stream.play import Play
from tests.unit.wire.frames import DONE, GOOD_CHAT, HI, ROLE, STOP, data

KEEPALIVE = b": hopbase-keepalive\n\n"
TOKENS = ROLE + HI * 87
ERROR = data({"error": {"message": "Please retry", "type": "server_error", "code": "upstream_error"}})


def said(count: int = 87) -> Play:
    return Play().head(0.5).read(2.0, ROLE + HI * count)


OUTCOME_LINES: list[tuple[str, Attempt, str]] = [
    (
        "completed",
        Play().head(0.5).read(2.0, GOOD_CHAT).end(2.5),
        "completed (stop): 1 token event in 2.50 s",
    ),
    (
        "completed",
        said(1234).read(9.0, STOP + DONE).end(10.0),
        "completed (stop): 1,234 token events in 10.0 s",
    ),
    (
        "unterminated",
        said().read(3.0, STOP).end(4.0),
        "whole answer (87 token events), but its terminator never came",
    ),
    (
        "empty",
        Play().head(0.5).read(2.0, ROLE + STOP + DONE).end(2.5),
        "ended as promised, but without any output",
    ),
    (
        "error_event",
        said().read(3.0, ERROR).end(4.0),
        "error inside the stream after 87 token events: server_error (upstream_error): Please retry",
    ),
    (
        "error_event",  # a code alone is no remark in brackets
        said().read(3.0, data({"error": {"message": "Please retry", "code": "server_error"}})).end(4.0),
        "error inside the stream after 87 token events: server_error: Please retry",
    ),
    (
        "error_event",
        said(0).read(3.0, data({"error": "gone"})).end(4.0),
        "error inside the stream after 0 token events: gone",
    ),
    (
        "error_event",
        said().read(3.0, data({}, "error")).end(4.0),
        "error inside the stream after 87 token events: no further words",
    ),
    (
        "http_error",
        Play()
        .head(0.5, 401)
        .read(1.0, b'{"error":{"message":"Bad key","type":"auth","code":"bad"}}')
        .end(1.1),
        "HTTP 401: auth (bad): Bad key",
    ),
    (
        "http_error",
        Play().head(0.5, 502).read(1.0, b"<title>502 Bad Gateway</title>").end(1.1),
        "HTTP 502: 502 Bad Gateway",
    ),
    ("http_error", Play().head(0.5, 503).end(1.1), "HTTP 503: no further words"),
    (
        "not_a_stream",
        Play().head(0.5, kind="text/html").read(1.0, b"<title>Login</title>").end(1.1),
        "HTTP 200, but no event stream: Login",
    ),
    ("stalled", said().wait(999.0).record(), "silent: no byte for 60.0 s after 87 token events"),
    (
        "truncated",
        said().end(4.0),
        "cut off cleanly after 87 token events: the body ended before the answer did",
    ),
    (
        "cut",
        said().end(4.0, "cut", "connection reset by peer"),
        "connection broke after 87 token events: connection reset by peer",
    ),
    ("cut", said().end(4.0, "cut"), "connection broke after 87 token events: cut"),
    (
        "connect_error",
        Play(connect=False).end(1.0, "connect_error", "127.0.0.1:9: connection refused"),
        "no connection: 127.0.0.1:9: connection refused",
    ),
    (
        "no_response",
        Play().end(1.0, "no_response", "closed before any answer"),
        "no response: closed before any answer",
    ),
    (
        "protocol_error",
        said().read(3.0, b"data: {oops\n\n").end(3.1, "closed"),
        "not the protocol: bad_data: data is not a JSON object: {oops",
    ),
    (
        "protocol_error",
        Play().end(1.0, "bad_http", "Invalid status line"),
        "not the protocol: Invalid status line",
    ),
    ("abandoned", said().end(4.0, "abandoned"), "left by its user after 87 token events, 4.00 s"),
    ("aborted", said().end(240.0 / 8, "aborted"), "the run ended first, after 87 token events in 30.0 s"),
]


@pytest.mark.parametrize(
    ("outcome", "record", "line"), [pytest.param(*row, id=row[2]) for row in OUTCOME_LINES]
)
def test_outcome(outcome: str, record: Attempt, line: str) -> None:
    assert (outcome, line) == (record.outcome, describe(record))


def stuck(gateway: str, step: float, frame: bytes, body: bytes = TOKENS) -> Attempt:
    return (
        Play(gateway=gateway).head(1.0).read(2.0, body).every(step, frame, begin=2 + step, end=990.0).record()
    )


STALL_LINES: list[tuple[str, Attempt, str]] = [
    ("no_connect", Play(connect=False).wait(99.0).record(), "no connection within 5.00 s"),
    ("no_headers", Play().wait(99.0).record(), "no response headers for 60.0 s after the request was sent"),
    (
        "headers_no_body",
        Play().head().wait(99.0).record(),
        "headers, but not one byte of the body for 30.0 s",
    ),
    (
        "keepalive_only_pre",
        stuck("generic", 10.0, KEEPALIVE, KEEPALIVE),
        "stuck: no token for 2m00s; 12 keepalives in all",
    ),
    ("keepalive_only_pre", stuck("generic", 10.0, ROLE, ROLE), "stuck: no token for 2m00s; other bytes came"),
    (
        "keepalive_only_mid",
        stuck("hopbase", 13.0, KEEPALIVE),
        "stuck: no token for 2m45s after 87 token events; 12 keepalives in all",
    ),
    (
        "keepalive_only_mid",
        stuck("generic", 59.0, KEEPALIVE, ROLE + HI),
        "stuck: no token for 2m00s after 1 token event; 2 keepalives in all",
    ),
    (
        "dead_silence_pre",
        Play().head().read(2.0, ROLE).wait(99.0).record(),
        "silent: no byte for 60.0 s before the first token",
    ),
    ("dead_silence_mid", said().wait(99.0).record(), "silent: no byte for 60.0 s after 87 token events"),
    ("half_event", said().read(3.0, HI[:9]).wait(99.0).record(), "half an event, then no byte for 30.0 s"),
    (
        "over_total",
        Play().head().every(10.0, HI, begin=2.0, end=999.0).record(),
        "still running at the total limit of 10m00s, after 60 token events",
    ),
]


@pytest.mark.parametrize(("name", "record", "line"), [pytest.param(*row, id=row[2]) for row in STALL_LINES])
def test_stall(name: str, record: Attempt, line: str) -> None:
    assert record.stall is not None
    assert (name, line) == (record.stall.class_, describe(record))
    assert f"stalled/{name}" == failure_name(record)


SOFT_LINES: list[tuple[str, Attempt, str]] = [
    (
        "keepalive_late",
        Play(gateway="hopbase").head().read(1.0, KEEPALIVE).read(20.0, KEEPALIVE).end(21.0),
        "keepalive late: 19.0 s without one",
    ),
    (
        "keepalive_violation",
        Play(gateway="hopbase").head().read(1.0, KEEPALIVE).read(26.0, KEEPALIVE).end(27.0),
        "keepalive promise broken: 25.0 s without one",
    ),
    ("slow_progress", said(3).read(22.0, HI).end(23.0), "slow: 20.0 s without a token"),
    ("slow_progress", Play().head(20.0).end(21.0), "slow: 20.0 s without response headers"),
    (
        "slow_progress",
        Play().head().read(1.0, ROLE).read(35.0, HI).end(36.0),
        "slow: 35.0 s without a first token",
    ),
    ("burst", said().end(3.0), "burst: many events at once, as from a proxy that buffers"),
    (
        "post_terminal_hang",
        Play().head().read(1.0, GOOD_CHAT).wait(99.0).record(),
        "connection left open for 5.00 s after the end",
    ),
]


@pytest.mark.parametrize(("name", "record", "line"), [pytest.param(*row, id=row[2]) for row in SOFT_LINES])
def test_soft_stall(name: str, record: Attempt, line: str) -> None:
    [found, *_] = record.soft_stalls

    assert (name, line) == (found.class_, stall_line(found, record))


def test_every_outcome_and_every_class_has_its_line() -> None:
    assert set(OUTCOMES) == {row[0] for row in OUTCOME_LINES}
    assert set(STALL_CLASSES) == {row[0] for row in STALL_LINES + SOFT_LINES}


def test_a_failure_has_the_name_of_its_outcome() -> None:
    assert "truncated" == failure_name(said().end(4.0))


def test_a_stall_that_came_back_names_no_failure() -> None:
    play = Play(on_stall="watch").head(0.5).read(2.0, ROLE + HI).wait(70.0).read(80.0, HI)

    assert "truncated" == failure_name(play.end(81.0))


def test_a_line_is_one_line_whatever_the_server_says() -> None:
    record = said().read(3.0, data({"error": {"message": "a\nb\r\x1b[2Jc", "type": "t\n"}})).end(4.0)

    assert "error inside the stream after 87 token events: t\\n: a\\nb\\r\\x1b[2Jc" == describe(record)

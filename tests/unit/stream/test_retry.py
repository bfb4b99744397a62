"""Retry policies: the official SDKs' decisions and waits, and what became of a request."""

from __future__ import annotations

import pytest
from msgspec import structs

from harness.gateways import Limits
from harness.stream import Session, assemble
from harness.stream.record import Attempt, ErrorRecord, Identity, Retry
from harness.stream.retry import Policy, Verdict, decide, delay, ordered_delay
from harness.wire import grammar_for

WALL = 1_000_000_000.0  # Sun, 09 Sep 2001 01:46:40 GMT
SDK = Policy("sdk")
RESEND = Policy("resend")


def done(attempt: int = 1) -> Attempt:
    """A completed attempt."""
    session = Session(grammar_for("chat"), Limits(), 0.0)
    session.sent(0.0)
    session.headers(200, {"content-type": "text/event-stream"}, 0.1)
    session.feed(
        b'data: {"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}]}\n\n'
        b"data: [DONE]\n\n",
        0.2,
    )
    session.end("eof", 0.3)
    identity = Identity(
        "run", "request", attempt, "chat", "generic", False, "default", "m", "local", "measure", 0.0
    )
    return assemble(session, identity, 0.0, retry=Retry("none"), final=True)


def failed(
    outcome: str, status: int | None = None, attempt: int = 1, protocol: str = "chat", retryable: bool = True
) -> Attempt:
    """An attempt that ended otherwise."""
    error = ErrorRecord(
        "http" if outcome == "http_error" else "stream", "server_error", None, "", retryable, "x"
    )
    stated = outcome in ("http_error", "error_event")
    return structs.replace(
        done(attempt), outcome=outcome, status=status, protocol=protocol, error=error if stated else None
    )


def verdict(
    policy: Policy, record: Attempt, headers: dict[str, str] | None = None, elapsed_s: float = 0.0
) -> Verdict:
    return decide(policy, record, headers or {}, elapsed_s=elapsed_s, wall=WALL, draw=0.0)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422, 425, 499, 301])
def test_sdk_gives_up_at_once_on_statuses_that_say_the_request_is_wrong(status):
    assert Verdict(Retry("give_up", f"http_{status}"), "not_retryable") == verdict(
        SDK, failed("http_error", status)
    )


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 520, 524, 529])
def test_sdk_makes_three_attempts_on_statuses_that_may_pass(status):
    assert Retry("retry", f"http_{status}", 0.5) == verdict(SDK, failed("http_error", status, 1)).retry
    assert Retry("retry", f"http_{status}", 1.0) == verdict(SDK, failed("http_error", status, 2)).retry
    assert Verdict(Retry("give_up", f"http_{status}"), "exhausted") == verdict(
        SDK, failed("http_error", status, 3)
    )


@pytest.mark.parametrize("outcome", ["connect_error", "no_response", "protocol_error", "stalled"])
def test_sdk_retries_whatever_kept_an_answer_from_coming(outcome):
    assert "retry" == verdict(SDK, failed(outcome, None)).retry.decision


@pytest.mark.parametrize(
    "outcome", ["error_event", "truncated", "cut", "stalled", "protocol_error", "not_a_stream"]
)
def test_sdk_never_retries_after_the_headers_of_a_2xx(outcome):
    assert Verdict(Retry("give_up", outcome), "not_retryable") == verdict(SDK, failed(outcome, 200))


@pytest.mark.parametrize("outcome", ["error_event", "truncated", "cut", "stalled"])
def test_resend_sends_the_whole_request_again_after_a_broken_stream(outcome):
    assert Retry("retry", outcome, 0.5) == verdict(RESEND, failed(outcome, 200)).retry


@pytest.mark.parametrize("outcome", ["unterminated", "empty", "not_a_stream", "protocol_error"])
def test_resend_leaves_alone_what_would_come_the_same_again(outcome):
    assert "not_retryable" == verdict(RESEND, failed(outcome, 200)).outcome


def test_resend_does_not_repeat_an_error_that_says_the_request_is_wrong():
    assert "not_retryable" == verdict(RESEND, failed("error_event", 200, retryable=False)).outcome


@pytest.mark.parametrize(
    ("headers", "expected_s"),
    [
        ({"retry-after": "5"}, 5.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "5"}, 0.25),  # milliseconds go first
        ({"retry-after-ms": "soon", "retry-after": "5"}, 5.0),  # unreadable: the next one
        ({"retry-after": "Sun, 09 Sep 2001 01:46:50 GMT"}, 10.0),
        ({"retry-after": "Sun, 09 Sep 2001 01:46:30 GMT"}, None),  # past
        ({"retry-after": "0"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "tomorrow"}, None),
        (
            {"retry-after-ms": "0", "retry-after": "5"},
            None,
        ),  # an answer that orders nothing
        ({}, None),
    ],
)
def test_a_server_orders_a_wait(headers, expected_s):
    assert expected_s == ordered_delay(headers, WALL)


def test_openai_gives_up_on_an_order_over_two_minutes_and_anthropic_obeys_it():
    at, over = {"retry-after": "120"}, {"retry-after": "121"}

    assert 120.0 == verdict(SDK, failed("http_error", 429), at).retry.delay_s
    assert "not_retryable" == verdict(SDK, failed("http_error", 429), over).outcome
    assert 121.0 == verdict(SDK, failed("http_error", 429, protocol="messages"), over).retry.delay_s


def test_x_should_retry_overrides_the_status():
    assert "retry" == verdict(SDK, failed("http_error", 400), {"x-should-retry": "true"}).retry.decision
    assert "give_up" == verdict(SDK, failed("http_error", 500), {"x-should-retry": "false"}).retry.decision
    assert "retry" == verdict(SDK, failed("http_error", 500), {"x-should-retry": "maybe"}).retry.decision


@pytest.mark.parametrize(
    ("attempt", "low_s", "high_s"),
    [(0, 0.375, 0.5), (1, 0.75, 1), (2, 1.5, 2), (3, 3, 4), (4, 6, 8), (9, 6, 8)],
)
def test_backoff_doubles_to_eight_seconds_and_jitters_downwards_by_a_quarter(attempt, low_s, high_s):
    assert high_s == delay(attempt, None, 0.0, anthropic=False)
    assert low_s == pytest.approx(delay(attempt, None, 0.999999999, anthropic=False))


def test_a_wait_that_would_exceed_the_budget_of_time_ends_the_request():
    policy = Policy("sdk", budget_s=2.0)

    assert "retry" == verdict(policy, failed("http_error", 500), elapsed_s=1.5).retry.decision
    assert Verdict(Retry("give_up", "http_500"), "deadline") == verdict(
        policy, failed("http_error", 500), elapsed_s=1.6
    )


def test_without_a_policy_a_failure_that_a_retry_might_have_mended_is_exhausted():
    none = Policy("none")

    assert Verdict(Retry("none"), "exhausted") == verdict(none, failed("truncated", 200))
    assert Verdict(Retry("none"), "not_retryable") == verdict(none, failed("empty", 200))


def test_success_and_ends_by_the_client():
    assert Verdict(Retry("none"), "not_needed") == verdict(SDK, done())
    assert Verdict(Retry("none"), "recovered") == verdict(SDK, done(2))
    assert Verdict(Retry("none"), None) == verdict(SDK, failed("aborted"))
    assert Verdict(Retry("none"), None) == verdict(SDK, failed("abandoned", 200))

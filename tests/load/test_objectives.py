"""Objectives: what they say, who is bad, and when it is sure."""

import msgspec
import pytest

from harness.gateways import Limits
from harness.load.objectives import Evidence, ObjectiveError, parse_objective
from harness.stream import Session, assemble
from harness.stream.record import Identity, RequestSummary, Retry
from harness.wire import grammar_for


@pytest.fixture
def record():
    session = Session(grammar_for("chat", usage_requested=True), Limits(), 0.0)
    session.end("aborted", 1.0)
    identity = Identity("r", "q", 1, "chat", "g", True, "default", "m", "local", "measure", 0.0)
    plain = assemble(session, identity, 0.0, retry=Retry("none"), final=True)

    def make(outcome="completed", status=200, **fields):
        return msgspec.structs.replace(plain, outcome=outcome, status=status, **fields)

    return make


@pytest.mark.parametrize(
    ("text", "metric", "allowed", "limit_s"),
    [
        ("ttft p95 < 1s", "ttft", 0.05, 1.0),
        ("  gap_max   p50<=250ms ", "gap_max", 0.5, 0.25),
        ("duration p99.9 < 2m", "duration", 0.001, 120.0),
        ("error_rate < 1%", "error_rate", 0.01, None),
        ("stall_rate rate < 0.1%", "stall_rate", 0.001, None),
        ("success_rate > 99%", "success_rate", 0.01, None),
    ],
)
def test_an_objective_is_a_share_that_may_be_bad(text, metric, allowed, limit_s):
    objective = parse_objective(text)

    assert (metric, limit_s) == (objective.metric, objective.limit_s)
    assert pytest.approx(allowed) == objective.allowed
    assert " ".join(text.split()) == objective.text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ttft", 'expected METRIC STAT < LIMIT, as in "ttft p95 < 1s"'),
        ("tfft p95 < 1s", "unknown metric 'tfft'; did you mean ttft?"),
        ("qqqq p95 < 1s", "unknown metric 'qqqq' (one of ttft,"),
        ("ttft < 1s", "ttft: expected a percentile (p50, p90, p95, p99, p99.9), there is none"),
        ("ttft mean < 1s", "ttft: expected a percentile (p50, p90, p95, p99, p99.9), got mean"),
        ("ttft p95 < 1", "ttft: expected a duration with a unit"),
        ("ttft p95 > 1s", "ttft has to be < or <= a limit, got '>'"),
        ("ttft p95 < 0s", "ttft: expected a limit above zero"),
        ("error_rate < 0.01", "error_rate: expected a percentage"),
        ("error_rate p95 < 1%", "error_rate is a share and has no p95: write error_rate < LIMIT"),
        ("success_rate < 99%", "success_rate has to be > or >= a limit, got '<'"),
        ("error_rate < 0%", "can never be shown to hold"),
        ("error_rate < 100%", "can never be shown to hold"),
    ],
)
def test_what_is_no_objective_is_one_line(text, words):
    with pytest.raises(ObjectiveError) as caught:
        parse_objective(text)

    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_request_that_failed_before_it_had_the_value_is_bad(record):
    ttft = parse_objective("ttft p95 < 1s")

    assert ttft.is_bad(record("http_error", 429)) is True
    assert ttft.is_bad(record(first_token_s=0.9)) is False
    assert ttft.is_bad(record(first_token_s=1.0)) is True
    assert ttft.is_bad(record("truncated", first_token_s=0.5)) is False
    assert ttft.is_bad(record("aborted")) is None
    assert ttft.is_bad(record("abandoned", first_token_s=5.0)) is None
    assert parse_objective("gap_max p95 < 1s").is_bad(record()) is None  # one token has no gap


def test_times_count_from_the_planned_start(record):
    """Sent a second late, and answered at once: its user waited a second."""
    late = RequestSummary(1, "completed", "not_needed", 1.1, 1.2, 2.0, 0, None)
    answered = record(first_token_s=0.1, first_content_s=0.2, end_s=1.0, request_summary=late)

    assert parse_objective("ttft p95 < 1s").is_bad(answered) is True
    assert parse_objective("first_content p95 < 1.15s").is_bad(answered) is True
    assert parse_objective("duration p95 < 1.5s").is_bad(answered) is True


def test_rates_tell_failures_refusals_and_stalls_apart(record):
    found = {
        name: [parse_objective(f"{name} < 1%").is_bad(r) for r in
               (record(), record("http_error", 429), record("stalled"), record("error_event"))]
        for name in ("error_rate", "rejected_rate", "stall_rate")
    }  # fmt: skip

    assert [False, True, True, True] == found["error_rate"]
    assert [False, True, False, False] == found["rejected_rate"]
    assert [False, False, True, False] == found["stall_rate"]
    assert parse_objective("success_rate > 99%").is_bad(record("empty")) is True


def test_zero_of_299_shows_less_than_one_percent_and_zero_of_298_does_not():
    objective = parse_objective("error_rate < 1%")

    assert "open" == Evidence(objective, 298, 0).verdict
    assert "holds" == Evidence(objective, 299, 0).verdict
    assert 299 <= objective.requests_needed <= 305


@pytest.mark.parametrize(
    ("n", "bad", "verdict"),
    [
        (0, 0, "open"),
        (1, 1, "open"),  # one failure of one is still possible at 1 %: once in a hundred
        (2, 2, "broken"),
        (20, 1, "open"),
        (20, 3, "broken"),  # three of twenty at 1 %: once in a thousand
        (1000, 10, "open"),
        (1000, 3, "holds"),
        (1000, 25, "broken"),
    ],
)
def test_what_is_sure_by_now(n, bad, verdict):
    assert verdict == Evidence(parse_objective("error_rate < 1%"), n, bad).verdict


def test_the_interval_is_the_exact_one():
    low, high = Evidence(parse_objective("error_rate < 1%"), 304, 0).interval()

    assert 0.0 == low
    assert pytest.approx(0.012060, abs=1e-5) == high  # 1 - 0.025 ** (1 / 304)

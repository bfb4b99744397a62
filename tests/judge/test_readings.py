"""What one stream says about each metric: a value, at least so much, never, or nothing."""

from __future__ import annotations

import pytest

from harness.judge.metrics import REQUEST_TIMES, TIMES
from harness.judge.readings import add_attempt, add_request, meets, new_samples, value_of
from harness.stream.record import KeepaliveRecord, Progress, RequestSummary

# first token 0.4 s, last 0.9 s, five tokens: four gaps of 0.125 s
KEEPALIVE = KeepaliveRecord(2, 0, 10.0, 9.9, 10.0, 10.3, 0, 0, "keep")
VALUES = {
    "ttft": 0.4, "first_content": 0.4, "headers": 0.05, "duration": 1.0, "tpot": 0.125, "gap_p99": 0.13,
    "gap_max": 0.13, "silence": 0.3, "keepalive_interval": 10.3,
}  # fmt: skip
NONE = Progress(0, None, None, None, None)


def said_by(sample):
    """Value, ">= value" or "never" of a sample of one stream; None if it has nothing to say."""
    assert len(sample) <= 1
    if sample.lost:
        return "never"
    if sample.cut:
        return f">= {sample.cut[0]:g}"
    return round(sample.known[0], 6) if sample.known else None


def read(record):
    """What the stream says, per metric about which it says something."""
    samples = new_samples()
    add_attempt(samples, record)
    return {name: said_by(sample) for name, sample in samples.items() if len(sample)}


def test_a_completed_stream_says_everything(record):
    assert read(record(keepalive=KEEPALIVE)) == VALUES
    assert {name: value_of(record(keepalive=KEEPALIVE), name) for name in TIMES} == pytest.approx(VALUES)


def test_a_completed_stream_of_one_token_has_no_gaps(record):
    one = record(progress=Progress(1, None, None, None, None), last_token_s=0.4)

    assert {"ttft", "first_content", "headers", "duration", "silence"} == set(read(one))


def test_a_tool_call_has_no_text_and_no_lateness_of_it(record):
    assert "first_content" not in read(record(first_content_s=None))


def test_a_failure_after_the_first_token_keeps_what_it_measured(record):
    broke = record(outcome="truncated", keepalive=KEEPALIVE)

    assert {**VALUES, "duration": "never"} == read(broke)


def test_a_refused_request_waited_for_ever_and_has_no_pace(rejected):
    assert {"ttft": "never", "first_content": "never", "headers": 0.05, "duration": "never"} == read(
        rejected(0)
    )


@pytest.mark.parametrize(
    ("class_", "changes"),
    [
        # it hung on keepalives: those came, and no silence was longer than them
        ("keepalive_only_mid", {}),
        ("dead_silence_mid", {"silence": "never", "keepalive_interval": "never"}),
        ("half_event", {"silence": "never", "keepalive_interval": "never"}),
        # it flowed until the limit on the whole
        ("over_total", {"tpot": 0.125, "gap_p99": 0.13, "gap_max": 0.13}),
    ],
)
def test_a_hang_says_never_for_what_was_missing(class_, changes, stalled):
    pace = {"tpot": "never", "gap_p99": "never", "gap_max": "never"}

    assert {**VALUES, "duration": "never", **pace, **changes} == read(stalled(0, class_, keepalive=KEEPALIVE))


def test_a_hang_before_the_first_token_never_had_one(stalled):
    said = read(stalled(0, "no_headers", ttft=None, headers_s=None, silence_max_s=None))

    assert dict.fromkeys(TIMES, "never") == said


@pytest.mark.parametrize("outcome", ["aborted", "abandoned"])
def test_what_the_client_ended_says_at_least(outcome, record):
    """Five seconds after the first token at 0.4 s, 4.1 s after the last: five tokens in 4.6 s or more."""
    cut = record(outcome=outcome, end_s=5.0, silence_end_s=2.0, keepalive=KEEPALIVE)

    assert {
        "ttft": 0.4, "first_content": 0.4, "headers": 0.05, "duration": ">= 5", "tpot": ">= 0.92",
        "gap_p99": ">= 0.13", "gap_max": ">= 4.1", "silence": ">= 2", "keepalive_interval": ">= 10.3",
    } == read(cut)  # fmt: skip


def test_what_the_client_ended_before_its_first_token(record):
    cut = record(
        0, None, outcome="aborted", end_s=5.0, headers_s=None, silence_max_s=None, silence_end_s=None
    )

    assert {
        "ttft": ">= 5", "first_content": ">= 5", "headers": ">= 5", "duration": ">= 5", "tpot": ">= 0",
        "gap_p99": ">= 0", "gap_max": ">= 0", "silence": ">= 0",
    } == read(cut)  # fmt: skip


@pytest.mark.parametrize(
    ("outcome", "first_s", "said"),
    [
        ("completed", 1.5, (1.5, 1.5, 3.0)),
        ("truncated", 1.5, (1.5, 1.5, "never")),
        ("stalled", None, ("never", "never", "never")),
        ("aborted", None, (">= 3", ">= 3", ">= 3")),
    ],
)
def test_requests_count_from_their_planned_start(outcome, first_s, said):
    samples = new_samples(REQUEST_TIMES)
    add_request(samples, outcome, RequestSummary(2, outcome, None, first_s, first_s, 3.0, 0, None))

    assert list(said) == [said_by(samples[name]) for name in REQUEST_TIMES]


@pytest.mark.parametrize(
    ("changes", "slo", "good"),
    [
        ({}, {}, True),
        ({}, {"ttft": 0.4}, True),  # the limit itself is within
        ({}, {"ttft": 0.39}, False),
        ({}, {"ttft": 0.5, "gap_max": 0.1}, False),
        ({"outcome": "truncated"}, {}, False),
        ({"first_content_s": None}, {"first_content": 9.0}, False),  # text that never came is late
        ({"progress": NONE}, {"gap_max": 0.1, "tpot": 0.1}, True),  # no gap is no long gap
    ],
)
def test_a_good_request_completed_within_every_limit(changes, slo, good, record):
    assert good == meets(record(**changes), slo)

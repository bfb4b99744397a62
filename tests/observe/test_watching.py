"""The numbers of the page: values, baselines, samples and silent streams."""

from __future__ import annotations

import math

import pytest

from harness.observe.aggregate import Aggregate, Labels
from harness.observe.snapshot import Snapshot
from harness.observe.watching import SAMPLES_KEPT, SILENT_SHOWN, Samples, finite, oldest, rows, silent_streams
from harness.stream.record import ErrorRecord, Stall

CHAT = Labels("r1", "chat", "sim:hopbase", "default", "m1")
AGENTS = CHAT._replace(scenario="agents", protocol="messages")


@pytest.fixture
def aggregate():
    made = Aggregate()
    made.begin_run("r1")
    return made


@pytest.fixture
def play(aggregate, session, record):
    """Play one attempt from start to record."""

    def one(labels=CHAT, **changed):
        stream = session(keepalive_gaps=changed.pop("keepalive_gaps", []))
        aggregate.request_started(labels)
        aggregate.attempt_started(labels, stream)
        aggregate.attempt_ended(labels, stream, record(protocol=labels.protocol, **changed))

    return one


def totals_of(aggregate, now=200.0):
    return Snapshot.from_plain(aggregate.snapshot(now)).run("r1")


def test_a_row_says_everything_of_a_protocol(aggregate, play, session):
    for _ in range(10):
        play(first_token_s=0.4, first_content_s=0.9)
    stall = Stall("keepalive_only_mid", "mid_stream", 1.0, 0.0, 1.0, True)
    soft = Stall("slow_progress", "mid_stream", 1.0, 0.0, 1.0, False)
    play(outcome="stalled", finish=None, stall=stall, soft_stalls=[soft, soft])
    play(outcome="aborted", finish=None)
    error = ErrorRecord("stream", "server_error", None, "gone", True, "chat")
    play(outcome="error_event", finish=None, error=error)
    aggregate.gaps(CHAT, [0.02] * 99 + [0.6])
    aggregate.attempt_started(CHAT, session(last_byte=198.5, last_progress=198.5))

    [row] = rows(totals_of(aggregate))
    assert "chat" == row["name"]
    assert 12 == row["streams"]  # the one that the client ended is not the gateway's
    assert 2 == row["failed"]
    assert "0 / 0 / 1 / 0" == row["open"]
    assert "350 / 395 / 399" == row["ttft"]
    assert row["content"].startswith("8")
    assert "17.5 / 20.0" == row["gap"]
    assert row["silence"].startswith("1.50 / ")
    assert "–" == row["keepalive"]
    assert "1\u00a0keepalive only mid" == row["stalls"]
    assert "2\u00a0slow progress" == row["soft"]
    assert "1\u00a0server error" == row["errors"]


def test_scenarios_have_rows_of_their_own(aggregate, play):
    play()
    play(AGENTS, scenario="agents")

    assert ["chat", "messages · agents"] == [row["name"] for row in rows(totals_of(aggregate))]


def test_after_a_baseline_only_what_came_since_counts_and_the_counters_stay(aggregate, play):
    for _ in range(5):
        play(first_token_s=3.0)
    before = totals_of(aggregate)
    play(first_token_s=0.09, first_content_s=0.09)

    [row] = rows(totals_of(aggregate), before)
    assert 1 == row["streams"]
    assert "87.5 / 98.8 / 99.8" == row["ttft"]
    assert 6 == rows(totals_of(aggregate))[0]["streams"]
    [nothing] = rows(before, before)
    assert (0, 0, "– / – / –", "–") == tuple(nothing[key] for key in ("streams", "failed", "ttft", "stalls"))


def test_a_sample_is_about_the_time_since_the_one_before(aggregate, play):
    samples = Samples()
    for _ in range(4):
        play(first_token_s=5.0)
    samples.take(totals_of(aggregate), 1000.0)
    assert [] == list(samples)
    for _ in range(3):
        play(first_token_s=0.09)
    play(outcome="truncated", finish=None, first_token_s=0.09)
    samples.take(totals_of(aggregate), 1002.0)

    [sample] = samples
    assert 1002.0 == sample["t"]
    assert [0.0875, 0.0988, 0.0998] == sample["ttft"]
    assert {"completed": 1.5, "truncated": 0.5} == sample["outcomes"]
    samples.take(totals_of(aggregate), 1004.0)
    assert [None, None, None] == list(samples)[1]["ttft"]
    assert {} == list(samples)[1]["outcomes"]


def test_samples_are_bounded_and_begin_anew_with_a_run(aggregate, play):
    samples = Samples()
    play()
    for second in range(SAMPLES_KEPT + 20):
        samples.take(totals_of(aggregate), 1000.0 + second)
    assert SAMPLES_KEPT == len(list(samples))

    aggregate.begin_run("r2")
    samples.take(Snapshot.from_plain(aggregate.snapshot(0.0)).run("r2"), 2000.0)
    assert [] == list(samples)


def test_the_longest_without_output_come_first_and_are_bounded(session):
    sessions = [(CHAT, session(last_byte=190.0, last_progress=100.0 + n)) for n in range(SILENT_SHOWN + 9)]
    sessions.append((CHAT, session(phase="after_terminal", last_progress=1.0)))
    sessions.append((AGENTS, session(phase="before_headers", opened=50.0, t0=60.0)))

    found = silent_streams(sessions, 200.0, "worker-3")
    assert SILENT_SHOWN == len(found)
    first = {"protocol": "messages", "scenario": "agents", "worker": "worker-3", "phase": "before headers"}
    assert {**first, "request": "", "no_token_s": 140.0, "no_byte_s": 140.0} == found[0]
    assert (100.0, 10.0) == (found[1]["no_token_s"], found[1]["no_byte_s"])
    assert 82.0 == found[-1]["no_token_s"]


def test_the_silent_streams_of_many_workers_become_one_list():
    many = [{"worker": f"worker-{n % 3}", "no_token_s": float(n)} for n in range(60)]

    assert [float(n) for n in range(59, 59 - SILENT_SHOWN, -1)] == [row["no_token_s"] for row in oldest(many)]


def test_no_number_that_json_does_not_know_is_left():
    data = {"a": [1.5, math.nan, {"b": math.inf, "c": "NaN", "d": None}], "e": -math.inf, "f": True}

    assert {"a": [1.5, None, {"b": None, "c": "NaN", "d": None}], "e": None, "f": True} == finite(data)

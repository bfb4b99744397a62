from __future__ import annotations

import json

import pytest

from harness.gateways.profile import Keepalive, Limit, Limits
from harness.observe.aggregate import Aggregate, Snapshot
from harness.observe.results import AttemptLog, read_records
from harness.observe.state import Reason, RunState
from harness.observe.summary import build_summary
from harness.stream.record import ErrorRecord, Progress, RequestSummary, Retry, Stall, Tokens

PROMISE = Keepalive("x", 10.0, "periodic", 16.0, 22.0)


def state(**changed):
    return RunState(**{"run": "r1", "gateway": "sim:hopbase", "version": "0.1.0", "simulated": True,
                       "started_at": 1000.0, "ended_at": 1060.0, "valid": True, **changed})  # fmt: skip


def summarise(records, **changed):
    return build_summary(records, state(**changed))


def test_percentiles_from_a_file_are_the_hand_computed_ones(tmp_path, record):
    """First tokens at 0.1 … 10.0 s: type 7 gives 5.05, 9.505 and 9.901 s."""
    path = tmp_path / "attempts.jsonl"
    log = AttemptLog(path)
    for i in range(1, 101):
        log.add(record(request=f"q{i}", first_token_s=i / 10, first_content_s=i / 5))
    log.close()
    with path.open("ab") as file:
        file.write(b'{"schema": "harn')  # killed
    notes: list[str] = []
    chat = build_summary(read_records(path, notes), state(), notes=notes)["protocols"]["chat"]

    assert chat["streams"] == 100
    assert (chat["ttft"]["p50_s"], chat["ttft"]["p95_s"], chat["ttft"]["p99_s"]) == (5.05, 9.505, 9.901)
    assert (chat["ttft"]["min_s"], chat["ttft"]["max_s"], chat["ttft"]["n"]) == (0.1, 10.0, 100)
    assert chat["first_content"]["p50_s"] == 10.1
    assert chat["duration"]["p99_s"] == 1.0
    assert chat["tpot"]["p50_s"] == pytest.approx((0.9 - 5.05) / 4)  # nonsense in, arithmetic out
    assert notes == ["attempts.jsonl: the last line is cut off and was left out (the run was killed?)"]


def test_a_note_of_reading_reaches_the_summary(record):
    notes: list[str] = []

    def reading():
        yield record()
        notes.append("one line was cut off")

    assert build_summary(reading(), state(), notes=notes)["notes"][0] == "one line was cut off"


def test_the_warm_up_is_counted_apart_and_in_no_percentile(record, stalled):
    records = [record(), record(request="q2", phase="warmup", first_token_s=9.0),
               stalled(request="q3", phase="warmup")]  # fmt: skip
    summary = summarise(records)

    assert summary["attempts"] == 3
    assert summary["outcomes"] == {"completed": 2, "stalled": 1}
    assert summary["warmup"] == {"attempts": 2, "outcomes": {"completed": 1, "stalled": 1}}
    assert summary["totals"]["streams"] == 1
    assert summary["totals"]["ttft"]["max_s"] == 0.4
    assert summary["failures"] == [
        {
            "name": "stalled/keepalive_only_mid",
            "count": 1,
            "in_warmup": 1,
            "example": "stuck: no token for 1.50 s after 5 token events; other bytes came",
            "request": "q3",
        }
    ]


def test_a_run_of_nothing_but_warm_up_says_so(record):
    summary = summarise([record(phase="warmup")])

    assert summary["protocols"] == {}
    assert (
        "every stream fell into the warm-up: no percentiles (shorten --warmup or run longer)"
        in summary["notes"]
    )


def test_what_the_runs_end_cut_short_is_censored_not_absent(record):
    records = [record(request=f"q{i}") for i in range(8)]
    cut = {
        "outcome": "aborted",
        "finish": None,
        "first_token_s": None,
        "first_content_s": None,
        "end_s": 30.0,
    }
    records += [record(request=f"cut{i}", **cut) for i in range(2)]
    summary = summarise(records)
    totals = summary["totals"]

    assert totals["aborted"] == 2
    assert (totals["ttft"]["n"], totals["ttft"]["censored"], totals["ttft"]["missing"]) == (8, 2, 0)
    assert (totals["ttft"]["p50_s"], totals["ttft"]["p95_s"]) == (0.4, None)
    assert any(note.startswith("2 streams were ended by the client") for note in summary["notes"])


def test_failures_without_the_value_are_missing_not_censored(record, error_event):
    totals = summarise([record(), error_event(request="q2", first_token_s=None)])["totals"]

    assert (totals["ttft"]["n"], totals["ttft"]["censored"], totals["ttft"]["missing"]) == (1, 0, 1)
    assert totals["duration"]["n"] == 1  # of completed streams


def test_counts_of_a_group(record, stalled, error_event, keepalive):
    soft = [Stall("keepalive_late", "mid_stream", 16.0, 1.0, 18.0, False)]
    watched = Stall("keepalive_only_mid", "mid_stream", 120.0, 0.5, 130.0, False)
    http = ErrorRecord("http", "rate_limit_error", None, "slow down", True, "json")
    records = [
        record(
            keepalive=keepalive(comments=3, gap_mean_s=10.0, gap_max_s=12.0, late=1),
            soft_stalls=soft,
            violations={"chat.done_missing": 2},
            tokens=Tokens(10, 5, 2, 1, "usage"),
        ),
        record(request="q2", keepalive=keepalive(pings=1, gap_mean_s=14.0, gap_max_s=14.0), stall=watched),
        stalled(request="q3", tokens=Tokens(None, 7, None, None, "events")),
        error_event(request="q4"),
        record(request="q5", outcome="http_error", status=429, finish=None, error=http),
    ]
    chat = summarise(records, keepalive=PROMISE)["protocols"]["chat"]

    assert chat["outcomes"] == {"completed": 2, "error_event": 1, "http_error": 1, "stalled": 1}
    assert chat["stalls"] == {
        "hard": {"keepalive_only_mid": 1},
        "watched": {"keepalive_only_mid": 1},
        "soft": {"keepalive_late": 1},
    }
    assert chat["error_events"] == {"server_error": 1}
    assert chat["http_errors"] == {"429": 1}
    assert chat["violations"] == {"chat.done_missing": 2}
    assert chat["keepalive"] == {
        "comments": 3,
        "pings": 1,
        "late": 1,
        "violations": 0,
        "interval_mean_s": 11.0,  # (3 × 10 + 1 × 14) / 4
        "interval_max_s": 14.0,
        "promised_s": 10.0,
        "promised_kind": "periodic",
        "late_after_s": 16.0,
    }
    assert chat["tokens"] == {
        "input": 40,
        "output": 27,
        "reasoning": 2,
        "cached": 1,
        "wasted": 0,
        "counted_by": {"usage": 4, "events": 1},
    }


def test_pooled_gaps_come_from_the_aggregate_and_say_so(labels, record):
    aggregate = Aggregate()
    aggregate.gaps(labels, [0.045] * 100)
    aggregate.gaps(labels._replace(protocol="messages"), [0.5])
    totals = Snapshot.from_plain(aggregate.snapshot(0.0)).run("r1")
    chat = build_summary([record()], state(), totals)["protocols"]["chat"]

    assert chat["inter_token"] == {
        "n": 100,
        "p50_s": 0.045,  # the middle of (0.04, 0.05]
        "p99_s": 0.0499,
        "source": "pooled over all gaps from histogram buckets (interpolated; warm-up included)",
    }
    assert summarise([record()])["protocols"]["chat"]["inter_token"] is None


def test_groups_appear_only_where_they_tell_more_than_protocols(record):
    one = [record(), record(request="q2", protocol="messages")]
    more = [*one, record(request="q3", model="m2", first_token_s=2.0)]

    assert summarise(one)["groups"] == []
    groups = summarise(more)["groups"]
    assert [(g["protocol"], g["scenario"], g["model"], g["ttft"]["p50_s"]) for g in groups] == [
        ("chat", "default", "m1", 0.4),
        ("chat", "default", "m2", 2.0),
        ("messages", "default", "m1", 0.4),
    ]


def test_requests_are_counted_once_and_one_stopped_before_its_retry_is_aborted(record):
    cut = {"outcome": "cut", "finish": None, "final": False, "retry": Retry("retry", "cut", 0.5)}
    recovered = RequestSummary(2, "completed", "recovered", 1.0, 1.0, 2.0, 17, "usage")
    summary = summarise(
        [
            record(request="q1"),
            record(request="q2", **cut),
            record(request="q2", attempt=2, request_summary=recovered),
            record(request="q3", **cut),
        ]
    )

    assert summary["attempts"] == 4
    assert summary["requests"] == {
        "started": None,
        "ended": 3,
        "outcomes": {"completed": 2, "aborted": 1},
        "retry_outcomes": {"not_needed": 1, "recovered": 1},
        "recovered": {  # the last attempt took 1 s of 2
            "requests": 1,
            "extra_p50_s": 1.0,
            "extra_p95_s": 1.0,
            "extra_max_s": 1.0,
            "extra_total_s": 1.0,
            "wasted_tokens": 17,
            "wasted_counted_by": "usage",
        },
        "arrivals": None,
    }
    assert (
        "1 requests failed first and were recovered: 1.00 s later in the median, 1.00 s at most, "
        "17 tokens thrown away"
    ) in summary["notes"]
    assert summary["totals"]["retries"] == {"cut": 2}
    assert summary["totals"]["tokens"]["wasted"] == 17


def test_what_became_of_planned_starts_is_a_number_and_a_sentence(labels):
    aggregate = Aggregate()
    for lag_s in (0.001,) * 98 + (0.2,):
        aggregate.arrival(labels, True, lag_s)
    aggregate.arrival(labels, False, 0.0)
    totals = Snapshot.from_plain(aggregate.snapshot(0.0)).run("r1")
    summary = build_summary([], RunState("r1", "g", "1", True, 0.0), totals)

    found = summary["requests"]["arrivals"]
    assert {"planned": 100, "started": 99, "dropped": 1, "late": 1}.items() <= found.items()
    assert 0.1 < found["lag_p99_s"] < 0.3
    assert "100 starts were planned: 99 began, 1 found no room and were dropped" in summary["notes"]


def test_conservation_names_what_has_no_line(labels, session, record):
    aggregate = Aggregate()
    for _ in range(3):
        stream = session()
        aggregate.attempt_started(labels, stream)
        aggregate.attempt_ended(labels, stream, record())
    aggregate.attempt_started(labels, session())
    totals = Snapshot.from_plain(aggregate.snapshot(0.0)).run("r1")

    assert build_summary([record()] * 3, state(), totals)["conservation"] == {
        "started": 4, "ended": 3, "open": 1, "recorded": 3, "lost": 0, "balanced": True,
    }  # fmt: skip
    assert build_summary([record()] * 2, state(), totals)["conservation"] == {
        "started": 4, "ended": 3, "open": 1, "recorded": 2, "lost": 1, "balanced": False,
    }  # fmt: skip


def test_failures_of_a_kind_are_one_line_most_frequent_first(stalled, error_event):
    records = [
        error_event(request="q0"),
        *(stalled(request=f"q{i}", limit_s=1.0 + i / 10) for i in range(1, 4)),
    ]
    failures = summarise(records)["failures"]

    assert [(f["count"], f["name"], f["request"]) for f in failures] == [
        (3, "stalled/keepalive_only_mid", "q1"),
        (1, "error_event", "q0"),
    ]
    assert failures[1]["example"] == (
        "error inside the stream after 5 token events: server_error (upstream_error): please retry"
    )


def test_watching_says_how_many_came_back_and_what_would_have_been_enough(record):
    def watched(request, last_token_s, ended_s, fatal=False, **changed):
        stall = Stall("keepalive_only_mid", "mid_stream", 120.0, 1.0, ended_s, fatal)
        return record(
            request=request, stall=stall, last_token_s=last_token_s, end_s=ended_s + 10.0, **changed
        )

    gap = Progress(9, 0.1, 0.1, 164.2, 1.0)
    records = [
        *(watched(f"back{i}", 170.0, 165.2, progress=gap) for i in range(37)),
        *(watched(f"dead{i}", 1.0, 900.0, fatal=True, outcome="stalled", finish=None) for i in range(3)),
        watched("open", 1.0, 200.0, outcome="aborted", finish=None),
    ]
    (watch,) = summarise(records, on_stall="watch")["watch"]

    assert watch["sentence"] == (
        "beyond 120 s: 37 were thinking, 3 never came back, 1 was still open at the end; "
        "no healthy stream was silent longer than 164 s"
    )
    assert (watch["came_back"], watch["never_came_back"], watch["open_at_end"]) == (37, 3, 1)
    assert (watch["limit_s"], watch["longest_healthy_wait_s"]) == (120.0, 164.2)
    assert summarise(records)["watch"] == []


def test_a_run_shorter_than_its_own_limits_says_so(record):
    limits = Limits(progress=Limit(90.0, 165.0), silence=Limit(None, 30.0), total=Limit(None, 900.0))

    assert any(
        note.startswith("run shorter than its own stall limit (165 s)")
        for note in summarise([record()], limits=limits)["notes"]
    )
    longer = summarise([record()], limits=limits, ended_at=1200.0)["notes"]
    assert not any("shorter than" in note for note in longer)


def test_validity_is_the_runs_with_reasons(record):
    reasons = (Reason("lost_records", "3 records could not be written"),)
    summary = summarise([record()], valid=False, reasons=reasons)

    assert summary["validity"] == {
        "valid": False, "reasons": ["3 records could not be written"], "codes": ["lost_records"],
        "threshold_s": 0.005,
    }  # fmt: skip
    assert summary["schema"] == "harness.summary/1"
    json.dumps(summary, allow_nan=False)


def test_first_tokens_that_were_read_late_are_told(labels, session, record):
    aggregate = Aggregate()
    for window_s in (0.0, 0.0, 0.02):
        stream = session(first_token_window_s=window_s)
        aggregate.attempt_started(labels, stream)
        aggregate.attempt_ended(labels, stream, record())
    totals = Snapshot.from_plain(aggregate.snapshot(0.0)).run("r1")
    summary = build_summary([], RunState("r1", "g", "1", True, 0.0), totals)

    assert (
        "1 of 3 first tokens were read late: their TTFT may be too long, by more than 5.00 ms"
    ) in summary["notes"]


def test_a_list_of_soft_stalls_that_is_full_is_told(record):
    stall = Stall("slow_progress", "mid_stream", 2.0, 1.0, 4.0, False)
    records = [record(soft_stalls=[stall] * n) for n in (49, 50)]

    notes = build_summary(records, RunState("r1", "g", "1", True, 0.0))["notes"]

    assert 1 == sum(note.startswith("1 streams had 50 soft stalls or more") for note in notes)

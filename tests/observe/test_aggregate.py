from __future__ import annotations

import msgspec
import pytest

from harness.observe import families as f
from harness.observe.aggregate import Aggregate, Conservation, Snapshot, merge
from harness.stream.record import ErrorRecord, Progress, RequestSummary, Retry, Stall, Tokens


def counts(aggregate, family, run="r1"):
    """The counter's values under its extra labels (those after the stream's own)."""
    series = Snapshot.from_plain(aggregate.snapshot(0.0)).run(run).counters.get(family.name, {})
    return {labels[5:]: n for labels, n in series.items()}


def histogram(aggregate, family, *extra, run="r1"):
    totals = Snapshot.from_plain(aggregate.snapshot(0.0)).run(run)
    ((_, found),) = [(k, h) for k, h in totals.histograms[family.name].items() if k[5:] == extra]
    return found


def end(aggregate, labels, session, record):
    aggregate.request_started(labels)
    aggregate.attempt_started(labels, session)
    aggregate.attempt_ended(labels, session, record)


def test_every_attempt_is_counted_by_outcome_finish_and_status(aggregate, labels, session, record):
    end(aggregate, labels, session(), record(outcome="connect_error", finish=None, status=None))

    assert counts(aggregate, f.ATTEMPTS) == {
        ("completed", "stop", "200"): 1,
        ("stalled", "none", "200"): 1,
        ("connect_error", "none", "none"): 1,
    }
    assert counts(aggregate, f.REQUESTS) == {
        ("completed", "not_needed"): 1,
        ("stalled", "not_needed"): 1,
        ("connect_error", "not_needed"): 1,
    }


def test_times_waits_keepalives_and_stalls_come_from_record_and_session(aggregate):
    assert histogram(aggregate, f.FIRST_TOKEN).sum == pytest.approx(0.8)
    assert histogram(aggregate, f.HEADERS).count == 2
    assert histogram(aggregate, f.STREAM_DURATION).sum == pytest.approx(1.0 + 2.4)
    assert histogram(aggregate, f.INTER_TOKEN).count == 4
    assert histogram(aggregate, f.INTER_TOKEN).sum == pytest.approx(0.29)
    assert histogram(aggregate, f.KEEPALIVE_INTERVAL, "comment").sum == pytest.approx(20.04)
    assert histogram(aggregate, f.STALL_DURATION, "keepalive_only_mid", "true").sum == pytest.approx(1.5)
    assert counts(aggregate, f.STALLS) == {("keepalive_only_mid", "true"): 1}
    assert counts(aggregate, f.WAIT) == {("thinking",): 3.0, ("dead",): 0.5}
    assert counts(aggregate, f.TOKENS) == {("input",): 20, ("output",): 10}


def test_what_the_client_cut_short_says_nothing_about_how_long_streams_last(labels, session, record):
    aggregate = Aggregate()
    for outcome in ("aborted", "abandoned", "http_error"):
        end(aggregate, labels, session(), record(outcome=outcome, finish=None))

    assert f.STREAM_DURATION.name not in aggregate.snapshot(0.0)["runs"][0]["histograms"]


def test_soft_stalls_keepalives_violations_and_error_events(labels, session, record, error_event, keepalive):
    aggregate = Aggregate()
    soft = [Stall("keepalive_late", "mid_stream", 16.0, 1.0, 18.0, False)] * 2
    kept = keepalive(comments=3, pings=2, late=2, violations=1)
    end(
        aggregate,
        labels,
        session(soft_stall_counts={"keepalive_late": 2, "slow_progress": 3}),  # more than the record kept
        record(soft_stalls=soft, keepalive=kept, violations={"chat.done_missing": 4}),
    )
    for _ in range(2):
        end(aggregate, labels, session(), error_event())
    end(aggregate, labels, session(), error_event(first_token_s=None))
    # A Responses error has a code and no type.
    only_code = ErrorRecord("stream", None, "rate_limit", "slow down", True, "response.failed")
    end(aggregate, labels, session(), error_event(error=only_code))

    assert counts(aggregate, f.STALLS) == {("keepalive_late", "false"): 2, ("slow_progress", "false"): 3}
    assert counts(aggregate, f.KEEPALIVES) == {("comment",): 3, ("ping",): 2}
    assert counts(aggregate, f.KEEPALIVE_DEVIATIONS) == {("late",): 2, ("violation",): 1}
    assert counts(aggregate, f.VIOLATIONS) == {("chat.done_missing",): 4}
    assert counts(aggregate, f.ERROR_EVENTS) == {
        ("server_error", "mid_stream"): 2,
        ("server_error", "before_first_token"): 1,
        ("rate_limit", "mid_stream"): 1,
    }


def test_a_retried_request_counts_once_with_all_its_attempts(labels, session, record):
    aggregate = Aggregate()
    first, second = session(), session()
    summary = RequestSummary(2, "completed", "recovered", 2.0, 2.0, 3.0, 17, "usage")
    aggregate.request_started(labels)
    aggregate.attempt_started(labels, first)
    aggregate.attempt_ended(
        labels, first, record(outcome="cut", finish=None, final=False, retry=Retry("retry", "cut", 0.75))
    )
    aggregate.attempt_started(labels, second)
    aggregate.attempt_ended(labels, second, record(attempt=2, request_summary=summary))

    assert counts(aggregate, f.REQUESTS) == {("completed", "recovered"): 1}
    assert counts(aggregate, f.RETRIES) == {("cut",): 1}
    assert histogram(aggregate, f.RETRY_WAIT, "cut").sum == 0.75
    assert histogram(aggregate, f.REQUEST_ATTEMPTS).sum == 2
    assert counts(aggregate, f.TOKENS)[("wasted",)] == 17
    assert Snapshot.from_plain(aggregate.snapshot(0.0)).run("r1").requests() == (1, 1)


def test_a_request_stopped_between_two_attempts_is_aborted(labels):
    aggregate = Aggregate()
    aggregate.request_started(labels)
    aggregate.request_stopped(labels)

    assert counts(aggregate, f.REQUESTS) == {("aborted", "none"): 1}


def test_a_flood_of_error_types_and_models_ends_in_other(labels, session, error_event):
    aggregate = Aggregate()
    for i in range(300):
        end(aggregate, labels._replace(model=f"m{i}"), session(), error_event(f"type {i}"))
    totals = Snapshot.from_plain(aggregate.snapshot(0.0)).run("r1")
    errors = totals.counters[f.ERROR_EVENTS.name]

    assert len({labels[5] for labels in errors}) == 51
    assert sum(n for labels, n in errors.items() if labels[5] == "other") == 250
    assert len(totals.started) == 101
    assert totals.conservation() == Conservation(300, 300, 0)


def test_a_nan_from_a_clock_poisons_no_sum(labels, session, record):
    aggregate = Aggregate()
    end(aggregate, labels, session(), record(first_token_s=float("nan")))
    aggregate.gaps(labels, [0.1, float("nan"), -1.0])
    totals = Snapshot.from_plain(aggregate.snapshot(0.0)).run("r1")

    assert totals.pooled(f.FIRST_TOKEN).count == 0
    assert totals.pooled(f.INTER_TOKEN).sum == 0.1
    assert totals.rejected() == 3


def test_arrivals_late_and_dropped(labels):
    aggregate = Aggregate()
    aggregate.begin_run("r1", threshold_s=0.05)
    for lag_s in (0.0, 0.05, 0.2):
        aggregate.arrival(labels, True, lag_s)
    aggregate.arrival(labels, False, 0.0)
    health = Snapshot.from_plain(aggregate.snapshot(0.0)).run("r1").health

    assert counts(aggregate, f.ARRIVALS) == {("started",): 3, ("dropped",): 1}
    assert histogram(aggregate, f.ARRIVAL_LAG).sum == 0.25
    assert (health.arrivals, health.arrivals_late, health.arrivals_dropped) == (4, 1, 1)


def test_generator_health_is_counted_exactly_and_by_worker(labels, session, record):
    aggregate = Aggregate("w7")
    aggregate.begin_run("r1")
    aggregate.cpu_ratio = 0.5
    for lag_s in (0.001, 0.006, 0.5):
        aggregate.hub_lag(lag_s)
        aggregate.read_lag(lag_s)
    aggregate.read_lags([0.001, 0.002])
    late = session(uncertainties=[0.0051, 0.004, 1.4], first_token_window_s=0.0051)
    end(aggregate, labels, late, record(clock="user", events=9))
    end(aggregate, labels, session(first_token_window_s=0.005), record(first_token_s=0.1, events=0))
    end(aggregate, labels, session(), record(first_token_s=None, outcome="truncated", events=0))
    seen = Snapshot.from_plain(aggregate.snapshot(0.0))
    health = seen.run("r1").health

    assert (health.hub_waits, health.hub_waits_late) == (3, 2)
    assert (health.events, health.events_uncertain, health.uncertain_max_s) == (9, 2, 1.4)
    assert (health.first_tokens, health.first_tokens_uncertain) == (2, 1)
    assert (health.attempts, health.attempts_user_clock) == (3, 1)
    assert seen.histograms[f.GENERATOR_LAG.name][("w7",)].count == 5
    assert seen.histograms[f.GENERATOR_UNCERTAINTY.name][("w7",)].count == 3
    assert seen.gauges == {f.CPU_RATIO.name: {("w7",): 0.5}}


def test_the_current_and_the_previous_run_are_kept(labels, session, record):
    aggregate = Aggregate()
    late = session()
    aggregate.attempt_started(labels, late)
    for run in ("r2", "r3"):
        aggregate.begin_run(run)
    aggregate.attempt_ended(labels, late, record())  # of r1, whose numbers are gone
    end(aggregate, labels._replace(run="r3"), session(), record())
    seen = Snapshot.from_plain(aggregate.snapshot(0.0))

    assert [totals.run for totals in seen.runs] == ["r2", "r3"]
    assert seen.run("r3").outcomes() == {"completed": 1}


def test_keepalive_bounds_follow_the_time_scale(labels, session, record):
    aggregate = Aggregate()
    aggregate.begin_run("r1", time_scale=0.02)
    end(aggregate, labels, session(keepalive_gaps=[("ping", 0.2)]), record())

    found = histogram(aggregate, f.KEEPALIVE_INTERVAL, "ping")
    assert found.bounds[5:7] == (0.19, 0.21)
    assert found.counts[6] == 1


def test_conservation_holds_at_every_moment(labels, session, record):
    aggregate = Aggregate()
    streams = [session() for _ in range(3)]
    for stream in streams:
        aggregate.attempt_started(labels, stream)
        assert aggregate.conservation("r1").missing == 0
    aggregate.attempt_ended(labels, streams[0], record())

    assert aggregate.conservation("r1") == Conservation(started=3, ended=1, open=2)
    assert aggregate.conservation("r1").check() is None
    assert aggregate.conservation("unknown") == Conservation(0, 0, 0)


def test_a_stream_that_vanished_is_told_in_a_sentence():
    assert Conservation(10, 7, 1).check() == (
        "10 attempts started, but 7 ended and 1 are open: 2 have no outcome"
    )


def test_merged_snapshots_are_the_sum(aggregate, labels, session, record):
    other = Aggregate("w2")
    other.begin_run("r1", started_at=1000.0)
    end(
        other,
        labels,
        session(uncertainties=[0.25]),
        record(progress=Progress(2, None, None, None, None), tokens=Tokens(1, 2, 3, 4, "usage")),
    )
    other.gaps(labels, [0.02])
    other.attempt_started(labels, session(last_byte=100.0, last_progress=100.0))
    # As it travels between processes.
    wire = [msgspec.msgpack.decode(msgspec.msgpack.encode(a.snapshot(103.0))) for a in (aggregate, other)]
    total = Snapshot.from_plain(merge(wire)).run("r1")

    assert total.conservation() == Conservation(4, 3, 1)
    assert total.outcomes() == {"completed": 2, "stalled": 1}
    assert total.pooled(f.INTER_TOKEN).count == 5
    assert total.pooled(f.INTER_TOKEN).sum == pytest.approx(0.31)
    assert total.counters[f.TOKENS.name][*labels, "output"] == 12
    assert total.counters[f.TOKENS.name][*labels, "reasoning"] == 3
    assert total.health.attempts == 3
    assert total.health.uncertain_max_s == 0.25
    assert merge([merge(wire)]) == merge(wire)


def test_a_report_that_is_old_makes_silence_older(labels, session):
    aggregate = Aggregate()
    aggregate.attempt_started(labels, session(last_byte=100.0, last_progress=99.0))
    plain = aggregate.snapshot(103.0)
    total = Snapshot.from_plain(merge([plain, plain], [2.5, 0.0])).run("r1")

    assert total.open[labels].oldest_silence_s == 5.5
    assert total.open[labels].oldest_progress_gap_s == 6.5
    assert sum(total.open[labels].phases) == 2


def test_a_worker_that_died_keeps_its_counts_and_loses_its_streams(aggregate, labels, session):
    aggregate.attempt_started(labels, session())
    aggregate.open_sockets = 3
    dead = Snapshot.from_plain(merge([aggregate.snapshot(103.0)], [None]))

    assert dead.run("r1").conservation() == Conservation(started=3, ended=2, open=0)
    assert dead.gauges == {}


def test_a_worker_of_another_version_is_refused(aggregate):
    plain = aggregate.snapshot(0.0)
    plain["runs"][0]["histograms"]["metric_of_tomorrow_seconds"] = []

    with pytest.raises(ValueError, match="metric_of_tomorrow_seconds: all nodes must run the same version"):
        merge([plain])


def test_runs_of_late_workers_merge_in_the_order_of_their_start(labels):
    early, late = Aggregate("w1"), Aggregate("w2")
    for number in (1, 2, 3):
        early.begin_run(f"r{number}", started_at=float(number))
    late.begin_run("r1", started_at=1.0)

    runs = [totals["run"] for totals in merge([early.snapshot(0.0), late.snapshot(0.0)])["runs"]]
    assert runs == ["r2", "r3"]

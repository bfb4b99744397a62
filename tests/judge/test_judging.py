"""Whole runs against gate files: what passes, what must never pass, and with which exit code."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from harness.judge.judging import judge_run
from harness.observe.results import ResultsError
from harness.stream.record import Progress, RequestSummary, Retry


def judged(run, gates) -> list[Any]:
    return list(judge_run(run, gates).results)


def only(verdict):
    (result,) = verdict.results
    return result


def test_a_run_within_its_limit_passes(folder, record):
    verdict = judge_run(folder.run(record(i) for i in range(100)), folder.gates({}))

    assert ("pass", 0) == (verdict.word, verdict.exit_code)
    assert (0.4, 100) == (only(verdict).estimate.value, only(verdict).estimate.n)
    assert (0.4, 0.4) == (only(verdict).estimate.low, only(verdict).estimate.high)


@pytest.mark.parametrize(("limit", "word", "code"), [("400ms", "fail", 20), ("401ms", "pass", 0)])
def test_the_limit_itself_is_outside_of_less_than(limit, word, code, folder, record):
    verdict = judge_run(folder.run(record(i) for i in range(60)), folder.gates({"limit": limit}))

    assert (word, code) == (verdict.word, verdict.exit_code)


def test_failures_count_as_infinitely_late(folder, record, rejected):
    """6 of 100 were refused: the p95 of those who got through says nothing about the 95th of all."""
    records = [rejected(i) if i % 17 == 0 else record(i) for i in range(100)]
    verdict = judge_run(folder.run(records), folder.gates({}))
    left_out = judge_run(folder.run(records, "r2"), folder.gates({"failed": "leave_out"}))

    assert ("fail", 20) == (verdict.word, verdict.exit_code)
    assert (math.inf, 6) == (only(verdict).estimate.value, only(verdict).estimate.lost)
    assert "6 of 100 (6.0 %) failed before it" in only(verdict).reason
    assert ("pass", 94) == (left_out.word, only(left_out).estimate.n)


@pytest.mark.parametrize(
    ("metric", "limit"),
    [("ttft", "10s"), ("ttft", "90s"), ("duration", "20s"), ("duration", "600s"), ("gap_max", "5s"),
     ("gap_max", "90s")],
)  # fmt: skip
@pytest.mark.parametrize("stat", ["p90", "p95", "p99", "mean", "max"])
def test_a_run_of_60_s_whose_slow_third_hung_never_passes(metric, limit, stat, folder, record):
    """At the run's end 30 % of the streams were cut, before the first token or after it.

    Within the limits that a minute can see that is a failure, beyond them nobody knows; in no case a pass.
    """
    first_s = None if metric == "ttft" else 0.4
    hung = [record(i, first_s, outcome="aborted", end_s=59.0 - i / 10, silence_end_s=1.0) for i in range(180)]
    fine = [record(i) for i in range(180, 600)]
    many = [replace_number(r, i) for i, r in enumerate([*hung, *fine] * 2)]
    verdict = judge_run(folder.run(many), folder.gates({"metric": metric, "stat": stat, "limit": limit}))

    assert verdict.word in ("fail", "no_data")
    assert verdict.exit_code in (20, 21)
    if limit in ("10s", "20s", "5s") and stat != "mean":
        assert "fail" == verdict.word


def replace_number(record, number):
    return msgspec.structs.replace(record, request=f"n{number}")


def test_streams_cut_by_the_end_of_a_healthy_run_do_not_fail_it(folder, record):
    """Forty streams in flight, cut at all ages up to the usual duration:

    Kaplan–Meier takes it into account.
    """
    cut = [record(i, outcome="aborted", end_s=i / 40) for i in range(40)]
    done = [record(i) for i in range(40, 400)]
    gates = folder.gates({"metric": "duration", "stat": "p95", "limit": "1.1s"})
    verdict = judge_run(folder.run([*cut, *done]), gates)

    assert ("pass", 1.0, 40) == (verdict.word, only(verdict).estimate.value, only(verdict).estimate.cut)


@pytest.mark.parametrize(
    ("gate", "value"),
    [
        ({"metric": "success_rate", "op": ">=", "limit": "40%"}, 0.4),
        ({"metric": "error_rate", "op": "<", "limit": "41%"}, 0.4),  # the 429 too, but not the aborted
        ({"metric": "rejected_rate", "op": "<", "limit": "25%"}, 0.2),  # 429 and 529, but not 500
        ({"metric": "stall_rate", "op": "<", "limit": "11%"}, 0.1),
        ({"metric": "unfinished_rate", "op": "<", "limit": "21%"}, 0.2),
    ],
)
def test_rates_are_shares_of_all_but_the_abandoned(gate, value, folder, record, rejected, stalled):
    records = [
        *(record(i) for i in range(4)), rejected(4, 500), rejected(5), rejected(6, 529), stalled(7),
        record(8, outcome="aborted"), record(9, outcome="aborted"), record(10, outcome="abandoned"),
    ]  # fmt: skip
    verdict = judge_run(folder.run(records), folder.gates({"stat": "rate", **gate}))

    assert (value, 10) == (only(verdict).estimate.value, only(verdict).estimate.n)
    assert "pass" == verdict.word
    assert "request" == only(verdict).gate.view


def test_a_request_is_told_by_its_last_attempt(folder, record, rejected):
    """Two were refused and recovered, one was refused twice, one waited for its retry when the run ended."""
    again = Retry("retry", "rate_limited", 1.0)
    records = [record(i) for i in range(6)]
    records += [rejected(i, final=False, retry=again) for i in (6, 7, 8, 9)]
    records += [record(i, attempt=2) for i in (6, 7)] + [rejected(8, attempt=2)]
    run = folder.run(records)
    gates = folder.gates(
        {"id": "a", "metric": "success_rate", "stat": "rate", "op": ">=", "limit": "80%"},
        {"id": "b", "metric": "recovered_rate", "stat": "rate", "op": ">=", "limit": "50%"},
        {"id": "c", "metric": "unfinished_rate", "stat": "rate", "op": "<=", "limit": "10%"},
        {"id": "d", "metric": "error_rate", "stat": "rate", "op": "<=", "limit": "10%"},
        {"id": "e", "metric": "requests", "stat": "value", "op": ">=", "limit": 10},
        {"id": "f", "metric": "headers", "stat": "max", "op": "<", "limit": "1s"},
    )
    values = {r.gate.id: (r.estimate.value, r.estimate.n) for r in judged(run, gates)}

    assert {"a": (0.8, 10), "b": (0.5, 4), "c": (0.1, 10), "d": (0.1, 10), "e": (10.0, 10)} == {
        key: values[key] for key in "abcde"
    }
    assert 13 == values["f"][1]  # and times are of attempts


def test_times_per_request_count_from_the_planned_start_over_all_attempts(folder, record, rejected):
    summary = RequestSummary(2, "completed", "recovered", 3.4, 3.4, 4.0, 0, None)
    records = []
    for i in range(10):
        records.append(rejected(i, final=False, retry=Retry("retry", "rate_limited", 1.0)))
        records.append(record(i, attempt=2, request_summary=summary))
    gates = folder.gates(
        {"id": "a", "stat": "p50", "view": "request", "limit": "5s"},
        {"id": "b", "stat": "p50", "failed": "leave_out", "limit": "5s"},
    )
    a, b = judged(folder.run(records), gates)

    assert (3.4, 10) == (a.estimate.value, a.estimate.n)
    assert (0.4, 10) == (b.estimate.value, b.estimate.n)


def test_a_request_that_waited_for_its_retry_took_at_least_until_then(folder, record, rejected):
    """Refused 0.05 s after it was sent, two seconds after it was planned."""
    again = Retry("retry", "rate_limited", 1.0)
    waiting = rejected(0, final=False, retry=again, scheduled_at=1_000_000.0 - 2.0, connect_s=2.0)
    gates = folder.gates({"stat": "max", "view": "request", "limit": "2s", "min_samples": 1})
    (result,) = judged(folder.run([waiting]), gates)

    assert ("fail", 2.05, True) == (result.word, round(result.estimate.value, 6), result.estimate.at_least)


def test_goodput_is_the_share_within_every_limit(folder, record, rejected):
    records = [
        *(record(i) for i in range(7)), record(7, 1.2), rejected(8),
        record(9, progress=Progress(5, 0.1, 0.9, 0.9, 0.5)),
    ]  # fmt: skip
    gates = folder.gates(
        {"metric": "goodput", "stat": "rate", "op": ">=", "limit": "70%"},
        head='[slo]\nttft = "1s"\ngap_max = "500ms"',
    )
    verdict = judge_run(folder.run(records), gates)

    assert (0.7, 10, "pass") == (only(verdict).estimate.value, only(verdict).estimate.n, verdict.word)


def test_tokens_per_second_count_over_the_measured_part(folder, record):
    """100 streams of 5 tokens, planned over 9.9 s, the last one second long."""
    gates = folder.gates({"metric": "tokens_per_second", "stat": "value", "op": ">=", "limit": "45/s"})
    verdict = judge_run(folder.run(record(i) for i in range(100)), gates)

    assert 500 / 10.9 == pytest.approx(only(verdict).estimate.value)
    assert "pass" == verdict.word


@pytest.mark.parametrize(
    ("gate", "code", "reason"),
    [
        ({}, 21, "58 streams, but p95 needs 59"),
        ({"on_no_data": "warn"}, 0, "58 streams, but p95 needs 59"),
        ({"severity": "warn"}, 0, "58 streams, but p95 needs 59"),
        ({"where": {"protocol": "responses"}}, 21, "no streams with protocol = responses"),
        ({"where": {"model": "m"}, "min_samples": 1}, 21, "no streams with model = m"),
        ({"metric": "keepalive_interval"}, 21, "no streams say anything about keepalive_interval"),
        ({"metric": "recovered_rate", "stat": "rate", "limit": "50%"}, 21, "no first attempt failed"),
    ],
)
def test_too_little_is_no_data_and_no_data_is_no_pass(gate, code, reason, folder, record):
    verdict = judge_run(folder.run(record(i) for i in range(58)), folder.gates(gate))

    assert ("no_data", code) == (verdict.word, verdict.exit_code)
    assert reason in only(verdict).reason


def test_an_empty_run_passes_nothing(folder):
    gates = folder.gates(
        {}, {"id": "b", "metric": "error_rate", "stat": "rate", "limit": "1%"},
        {"id": "c", "metric": "requests", "stat": "value", "op": "<", "limit": 5},
        {"id": "d", "baseline": "given", "limit": "1.1x"},
    )  # fmt: skip
    verdict = judge_run(folder.run([]), gates)

    assert ["no_data"] * 4 == [result.word for result in verdict.results]
    assert 21 == verdict.exit_code


def test_skipping_no_data_is_for_the_file_to_say(folder):
    verdict = judge_run(folder.run([]), folder.gates({"on_no_data": "skip"}))

    assert ("skipped", 0) == (verdict.word, verdict.exit_code)


@pytest.mark.parametrize(
    ("limit", "policy", "word", "code"),
    [
        ("2%", "warn", "fail", 20),
        ("6%", "warn", "inconclusive", 0),
        ("6%", "fail", "inconclusive", 21),
        ("6%", "skip", "skipped", 0),
        ("12%", "warn", "pass", 0),
    ],
)
def test_interval_decides_only_when_it_can(limit, policy, word, code, folder, record, rejected):
    """10 failures of 200: 5 %, between 2.4 % and 9.0 % at 95 %."""
    records = [rejected(i) if i % 20 == 0 else record(i) for i in range(200)]
    gates = folder.gates(
        {
            "metric": "error_rate",
            "stat": "rate",
            "limit": limit,
            "decide": "interval",
            "on_inconclusive": policy,
        }
    )
    verdict = judge_run(folder.run(records), gates)

    assert (word, code) == (verdict.word, verdict.exit_code)
    assert (0.0242, 0.0900) == pytest.approx(
        (only(verdict).estimate.low, only(verdict).estimate.high), abs=1e-4
    )


def test_an_interval_of_a_percentile_runs_between_two_of_its_values(folder, record):
    """1 … 1000 ms; ranks 936 and 964 enclose the p95."""
    run = folder.run(record(i, (i + 1) / 1000) for i in range(1000))
    gates = folder.gates({"limit": "960ms", "decide": "interval"})
    verdict = judge_run(run, gates)

    assert (0.936, 0.964, "inconclusive") == (
        only(verdict).estimate.low, only(verdict).estimate.high, verdict.word,
    )  # fmt: skip


def test_the_worst_gate_is_the_runs_verdict(folder, record):
    gates = folder.gates(
        {"id": "a"}, {"id": "b", "limit": "100ms", "severity": "warn"}, {"id": "c", "stat": "p99"}
    )
    verdict = judge_run(folder.run(record(i) for i in range(100)), gates)

    assert ["pass", "warn", "no_data"] == [result.word for result in verdict.results]
    assert ("no_data", 21) == (verdict.word, verdict.exit_code)
    assert ["c", "b", "a"] == [result.gate.id for result in verdict.worst_first]


def test_warm_up_and_cool_down_are_cut_out(folder, record):
    """Of 100 streams planned each tenth of a second: the run's own warm-up, then 2 s and 3 s by the file."""
    records = [record(i, 9.0, phase="warmup") for i in range(10)]
    records += [record(i, 9.0 if i < 20 or i >= 69 else 0.4) for i in range(10, 100)]
    gates = folder.gates({"stat": "max", "limit": "1s"}, head='warmup = "2s"\ncooldown = "3s"')
    verdict = judge_run(folder.run(records), gates)

    assert (0.4, 49) == (only(verdict).estimate.value, only(verdict).estimate.n)
    assert (100, 10, 41, 49) == (
        verdict.counts.records, verdict.counts.warmup, verdict.counts.outside, verdict.counts.streams,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("began", "n"),
    [
        (1_000_000.0, 80),  # as the run's own files say: 2 s later 80 of 100 are left
        (999_999.0, 90),
        (None, 80),  # no file says: from the first request on
    ],
)
def test_warm_up_counts_from_the_runs_start(began, n, folder, record):
    run = folder.run(
        [record(i) for i in range(100)], run={"started_at": began}, summary={"started_at": began}
    )
    gates = folder.gates({"stat": "p50"}, head='warmup = "2s"')

    assert n == only(judge_run(run, gates)).estimate.n


@pytest.mark.parametrize(
    ("where", "n"),
    [
        ({"protocol": "chat"}, 40),
        ({"model": "m2"}, 30),
        ({"protocol": "messages", "model": "m2"}, 30),
        ({}, 70),
    ],
)
def test_where_picks_streams_by_their_labels(where, n, folder, record):
    records = [record(i) if i < 40 else record(i, protocol="messages", model="m2") for i in range(70)]
    gates = folder.gates({"stat": "p50", "where": where})

    assert n == only(judge_run(folder.run(records), gates)).estimate.n


def test_an_invalid_run_has_neither_passed_nor_failed(folder, record):
    said = {"valid": False, "reasons": ["2 workers died or went missing: w1, w2"], "codes": ["dead_workers"]}
    run = folder.run([record(i, 9.0) for i in range(100)], summary={"validity": said})
    verdict = judge_run(run, folder.gates({}))

    assert ("invalid", 22) == (verdict.word, verdict.exit_code)
    assert "2 workers died" in verdict.sentence


def test_uncertain_arrivals_are_judged_by_the_tightest_limit(folder, record):
    """2 % of the events may be 20 ms off: too much for a limit of 100 ms (5 ms), not for 1.5 s (75 ms)."""
    said = {"valid": False, "reasons": ["uncertain"], "codes": ["uncertain_events"]}
    records = [record(i, uncertain_events=14 * (i == 0), uncertain_max_s=0.02) for i in range(100)]
    run = folder.run(records, summary={"validity": said})

    assert 0 == judge_run(run, folder.gates({})).exit_code
    tight = judge_run(run, folder.gates({"id": "b"}, {"limit": "90ms"}))
    assert ("invalid", "uncertain") == (tight.word, tight.invalid[0].text)


@pytest.mark.parametrize(
    ("told", "said_s", "word"),
    [
        # counted as it happened with this gate file's own threshold (75 ms): exact, so it stands
        (True, 0.075, "pass"),
        (False, 0.075, "invalid"),
        # counted with a finer one: what held there holds here
        (True, 0.005, "pass"),
        # counted with a coarser one: the records have to be asked, and they say 100 ms
        (True, 0.5, "invalid"),
    ],
)
def test_the_runs_own_count_stands_where_it_was_made_with_the_same_threshold(
    told, said_s, word, folder, record
):
    said = {"valid": told, "reasons": [] if told else ["x"], "codes": [] if told else ["uncertain_events"]}
    records = [record(i, uncertain_events=14 * (i == 0), uncertain_max_s=0.1) for i in range(100)]
    run = folder.run(records, summary={"validity": {**said, "threshold_s": said_s}})

    assert word == judge_run(run, folder.gates({})).word


def test_without_a_summary_the_records_are_asked(folder, record):
    late = [record(i, scheduled_at=1_000_000.0 + i / 10 - 0.2 * (i < 3)) for i in range(100)]
    uncertain = [record(i, uncertain_events=3, uncertain_max_s=0.2) for i in range(100)]
    for name, records, code in (
        ("late", late, "late_arrivals"),
        ("uncertain", uncertain, "uncertain_events"),
    ):
        run = folder.run(records, name)
        (run / "summary.json").unlink()
        (run / "run.json").unlink()
        verdict = judge_run(run, folder.gates({}))

        assert ("invalid", code) == (verdict.word, verdict.invalid[0].code)
        assert verdict.invalid[0].text.startswith(
            {"late": "3.0 % of 100 requests", "uncertain": "42.9 % of 700"}[name]
        )


@pytest.mark.parametrize(("late", "word"), [(1, "pass"), (2, "invalid")])
def test_one_in_a_hundred_may_be_late(late, word, folder, record):
    records = [record(i, scheduled_at=1_000_000.0 + i / 10 - 0.2 * (i < late)) for i in range(100)]
    run = folder.run(records)
    (run / "summary.json").unlink()
    (run / "run.json").unlink()

    assert word == judge_run(run, folder.gates({})).word


def test_opening_a_connection_is_not_the_generators_lateness(folder, record):
    records = [
        record(i, scheduled_at=1_000_000.0 + i / 10 - 0.2, connect_s=0.15, tls_s=0.049) for i in range(100)
    ]
    run = folder.run(records)
    (run / "summary.json").unlink()
    (run / "run.json").unlink()

    assert "pass" == judge_run(run, folder.gates({})).word


def test_two_runs_in_one_file_are_no_run(folder, record):
    records = [record(i, run="r1" if i < 90 else "r2") for i in range(100)]
    verdict = judge_run(folder.run(records), folder.gates({}))

    assert 22 == verdict.exit_code
    assert "attempts.jsonl holds records of 2 runs: r1 (90), r2 (10)" == verdict.invalid[0].text


def test_a_record_that_stands_twice_is_no_record(folder, record):
    records = [record(i) for i in (*range(80), 0, 1)]
    verdict = judge_run(folder.run(records), folder.gates({}))

    assert (22, "repeated_records") == (verdict.exit_code, verdict.invalid[0].code)
    assert "attempts.jsonl holds 2 records for the second time" == verdict.invalid[0].text


def test_records_that_the_summary_counts_and_the_file_lacks_are_lost(folder, record):
    verdict = judge_run(
        folder.run([record(i) for i in range(90)], summary={"attempts": 100}), folder.gates({})
    )

    assert 22 == verdict.exit_code
    assert "summary.json counts 100 attempts, attempts.jsonl holds 90" == verdict.invalid[0].text


def test_a_killed_run_is_used_up_to_its_last_whole_line_and_can_only_fail(folder, record):
    """What was open when it was killed is in no record: it may have been the half that hung."""
    run = folder.run([record(i) for i in range(100)], tail=b'{"schema":"harness.attempt/1","run":"r1","requ')
    (run / "summary.json").unlink()
    fine = judge_run(run, folder.gates({}))
    bad = judge_run(run, folder.gates({"limit": "100ms"}))

    assert ("inconclusive", 21) == (fine.word, fine.exit_code)
    assert 100 == only(fine).estimate.n
    assert "the last line is cut off and was left out" in fine.notes[0]
    assert "the run was killed" in fine.notes[1]
    assert ("fail", 20) == (bad.word, bad.exit_code)


def test_records_of_another_version_are_said_with_their_line(folder, record):
    run = folder.run([record(0), record(1, schema="harness.attempt/9")])

    with pytest.raises(ResultsError, match=r"attempts.jsonl, line 2: schema 'harness.attempt/9'"):
        judge_run(run, folder.gates({}))


def test_a_gate_that_ended_the_run_has_failed_whatever_the_whole_run_says(folder, record):
    verdict = judge_run(
        folder.run(record(i) for i in range(100)),
        folder.gates({}),
        stopped=("g1", "p95 stayed at 3 s for 10 s"),
    )

    assert ("fail", 20) == (verdict.word, verdict.exit_code)
    assert "ended the run early: p95 stayed at 3 s" in only(verdict).reason


def test_a_summary_that_is_no_json_is_said(folder, record):
    run = folder.run([record(0)])
    (run / "summary.json").write_text("{")

    with pytest.raises(ResultsError, match=r"summary.json is not the JSON that a run writes"):
        judge_run(run, folder.gates({}))


def test_simulated_runs_say_so(folder, record):
    run = folder.run(
        (record(i, gateway="sim:hopbase", simulated=True) for i in range(60)), run={"time_scale": 0.02}
    )
    verdict = judge_run(run, folder.gates({}))

    assert (True, 0.02) == (verdict.simulated, verdict.time_scale)

"""Relative gates and the file behind them:

It moves only when told to, and never cries wolf by its own making.
"""

from __future__ import annotations

import json
import math

import pytest

from harness.cli import main
from harness.judge.baseline import KEPT, Entry, add_runs, noise_of, read_baseline
from harness.judge.confirming import confirm
from harness.judge.judging import judge_run
from harness.judge.machine import class_of, machine_class
from harness.judge.numbers import Number, RunNumbers
from harness.judge.verdict import Against

RELATIVE = {"baseline": "b.json", "limit": "1.10x", "stat": "p50"}


@pytest.fixture
def runs(folder, record):
    """Makes finished runs of 60 streams, one per TTFT; named so that none is made twice."""
    made: list[str] = []

    def make(*ttfts, **changed):
        folders = []
        for ttft in ttfts:
            name = f"run{len(made):02d}"
            made.append(name)
            start = 1_000_000.0 + 100 * len(made)
            records = (record(i, ttft, run=name, sent_at=start + i / 10, **changed) for i in range(60))
            folders.append(
                folder.run(records, name, run={"started_at": start}, summary={"started_at": start})
            )
        return folders

    return make


def call(*words):
    return main(["baseline", *map(str, words)])


@pytest.fixture
def recorded(folder, runs):
    """A baseline of four runs on this machine: 0.398 … 0.404 s, so a noise of less than 1 %."""
    path = folder.base / "b.json"
    assert 0 == call("record", path, *runs(0.398, 0.400, 0.402, 0.404))
    return path


@pytest.mark.parametrize(
    ("ttft", "limit", "word", "code"),
    [
        (0.43, "1.10x", "pass", 0),
        (0.45, "1.10x", "fail", 20),
        (0.30, "1.10x", "pass", 0),
        (0.45, "1.20x", "pass", 0),
    ],
)
def test_a_run_is_compared_with_the_baselines_median(ttft, limit, word, code, folder, runs, recorded):
    verdict = judge_run(runs(ttft)[0], folder.gates({**RELATIVE, "limit": limit}))
    (result,) = verdict.results

    assert (word, code) == (verdict.word, verdict.exit_code)
    assert result.against is not None
    assert 4 == result.against.runs
    assert 0.401 == pytest.approx(result.against.median)
    assert ttft / 0.401 == pytest.approx(result.against.ratio)


@pytest.mark.parametrize(
    ("ttft", "word"),
    [(0.436, "pass"), (0.44, "inconclusive"), (0.445, "fail")],  # between 1.1 × 0.398 and 1.1 × 0.404
)
def test_the_interval_reaches_from_the_slowest_to_the_fastest_run_before(ttft, word, folder, runs, recorded):
    gates = folder.gates({**RELATIVE, "decide": "interval"})

    assert word == judge_run(runs(ttft)[0], gates).word


@pytest.mark.parametrize(
    ("others", "limit", "word", "p"),
    [
        ((0.45, 0.46, 0.47), "1.10x", "fail", 2 / 70),
        ((0.401, 0.403, 0.39), "1.10x", "pass", None),
        # more than the limit in the middle, but the order could be chance
        ((0.399, 0.39, 0.6), "1.01x", "inconclusive", None),
    ],
)
def test_several_runs_are_compared_by_their_ranks(others, limit, word, p, folder, runs, recorded):
    first, *repeats = runs(0.455 if p else 0.4025, *others)
    if word == "inconclusive":
        (first,) = runs(0.6)
    gates = folder.gates({**RELATIVE, "limit": limit, "method": "mann_whitney"})
    (result,) = judge_run(first, gates, repeats=repeats).results

    assert word == result.word
    assert result.against is not None
    if p:
        assert p == pytest.approx(result.against.p)


def test_one_run_is_too_few_for_ranks(folder, runs, recorded):
    gates = folder.gates({**RELATIVE, "method": "mann_whitney"})
    verdict = judge_run(runs(0.4)[0], gates)

    assert ("no_data", 21) == (verdict.word, verdict.exit_code)
    assert "1 run of this build, but Mann–Whitney needs 4" in verdict.results[0].reason


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"baseline": "none.json"}, "no baseline yet"),
        ({"baseline": "given"}, "no baseline was given"),
        ({"stat": "p95", "view": "request"}, "has 0 runs of 'default' with ttft p95 per request"),
        ({"min_runs": 5}, "has 4 runs of 'default' with ttft p50, 5 are needed"),
    ],
)
def test_without_anything_to_compare_with_a_gate_is_skipped_and_says_so(
    change, reason, folder, runs, recorded
):
    verdict = judge_run(runs(9.0)[0], folder.gates({**RELATIVE, **change}))

    assert ("skipped", 0) == (verdict.word, verdict.exit_code)
    assert reason in verdict.results[0].reason
    assert any("was SKIPPED" in note and reason in note for note in verdict.notes)


def test_another_machine_is_skipped_and_not_red(folder, runs, recorded):
    verdict = judge_run(runs(9.0)[0], folder.gates(RELATIVE), machine_class="toaster-x1")

    assert ("skipped", 0) == (verdict.word, verdict.exit_code)
    assert (
        f"was recorded on {machine_class()}, this machine is toaster-x1: not comparable" in verdict.notes[-1]
    )


def test_simulated_runs_are_no_reference_for_real_ones(folder, runs, recorded):
    verdict = judge_run(runs(9.0, simulated=True)[0], folder.gates(RELATIVE))

    assert "skipped" == verdict.word


def test_a_number_that_is_never_reached_is_infinitely_worse(folder, runs, recorded):
    verdict = judge_run(runs(None, outcome="stalled")[0], folder.gates(RELATIVE))

    against = verdict.results[0].against
    assert "fail" == verdict.word
    assert isinstance(against, Against)
    assert (math.inf, math.inf, math.inf) == (against.ratio, against.low, against.high)


@pytest.mark.parametrize(
    ("outcome", "word", "ratio"), [("completed", "pass", 1.0), ("stalled", "fail", math.inf)]
)
def test_a_rate_that_was_zero_before_is_the_same_or_infinitely_worse(
    outcome, word, ratio, folder, runs, recorded
):
    gates = folder.gates({**RELATIVE, "metric": "stall_rate", "stat": "rate"})
    verdict = judge_run(runs(0.4, outcome=outcome)[0], gates)
    against = verdict.results[0].against

    assert word == verdict.word
    assert isinstance(against, Against)
    assert (0.0, ratio) == (against.median, against.ratio)


def test_the_given_baseline_takes_the_place_of_the_named_one(folder, runs, recorded):
    recorded.rename(folder.base / "other.json")
    verdict = judge_run(runs(0.4)[0], folder.gates(RELATIVE), folder.base / "other.json")

    assert "pass" == verdict.word


def numbers(name, value, started_at=0.0):
    return RunNumbers(name, started_at, "g", False, 1.0, "1", {}, {"ttft p50": Number(value, 60)})


def test_noise_is_the_usual_difference_of_two_runs_of_one_build():
    """By hand: log ratios 0.1, 0.1, 0.2 of three runs; the root of their mean square is √0.02."""
    runs = [numbers(f"r{i}", math.exp(v)) for i, v in enumerate((0.0, 0.1, 0.2))]

    assert math.expm1(math.sqrt(0.02)) == pytest.approx(noise_of(runs)["ttft p50"], abs=1e-6)
    assert {"ttft p50": 0.0} == noise_of([numbers("a", 0.0), numbers("b", 0.0)])
    assert {} == noise_of([numbers("a", 1.0), numbers("b", None)])
    assert {} == noise_of([])


def test_an_entry_keeps_the_newest_runs_each_once():
    entry = Entry("s", "m")
    add_runs(entry, [numbers(f"r{i}", 1.0, float(i)) for i in range(KEPT + 5)])
    add_runs(entry, [numbers("r24", 2.0, 24.0)])

    assert [f"r{i}" for i in range(5, 25)] == [run.run for run in entry.runs]
    assert 2.0 == entry.runs[-1].numbers["ttft p50"].value


def test_record_measures_the_noise_and_show_tells_it(recorded, capsys):
    entry = read_baseline(recorded).entries[0]

    assert (4, 4) == (len(entry.runs), entry.noise_runs)
    assert 0.0091 == pytest.approx(entry.noise["ttft p50"], abs=1e-4)
    assert 0 == call("show", recorded)
    said = capsys.readouterr().out
    assert "ttft p50" in said
    assert "1.02x" in said


def test_a_limit_finer_than_twice_the_noise_is_refused_when_the_baseline_changes(
    folder, runs, recorded, capsys
):
    before = recorded.read_bytes()
    fine = folder.gates({**RELATIVE, "limit": "1.01x"})

    assert 23 == call("update", recorded, *runs(0.401), "--gates", fine)
    said = capsys.readouterr().err
    assert "gates.toml:3: gate 'g1' allows 1 %, but two runs of the same build already differ by 0.91" in said
    assert "a limit below 1.02x would fail builds that changed nothing" in said
    assert before == recorded.read_bytes()
    # and at night it is judged as it stands
    assert "pass" == judge_run(runs(0.404)[0], fine).word


def test_update_adds_runs_and_prints_what_moved_and_leaves_the_noise(folder, runs, recorded, capsys):
    noise = read_baseline(recorded).entries[0].noise

    assert 0 == call("update", recorded, *runs(0.8, 0.8, 0.8, 0.8, 0.8))
    entry = read_baseline(recorded).entries[0]
    assert (9, noise) == (len(entry.runs), entry.noise)
    said = capsys.readouterr().out
    assert "401 ms" in said
    assert "+99.5 %" in said


def test_noise_is_measured_anew_without_touching_the_runs(runs, recorded):
    assert 0 == call("noise", recorded, *runs(0.4, 0.5))
    entry = read_baseline(recorded).entries[0]

    assert (4, 2) == (len(entry.runs), entry.noise_runs)
    assert 0.25 == pytest.approx(entry.noise["ttft p50"], abs=1e-6)


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        (("record", "b.json", "run00"), 2, "already: add runs with `harness baseline update`"),
        (
            ("update", "none.json", "run00"),
            2,
            "none.json does not exist: make it with `harness baseline record`",
        ),
        (("noise", "b.json", "run00"), 2, "give at least 2 of the same build"),
        (("show", "none.json"), 2, "none.json does not exist"),
        (("update", "b.json", "nothing"), 21, "nothing does not exist"),
        (("update", "b.json", "run00", "--gates", "none.toml"), 23, "cannot read gate file"),
    ],
)
def test_what_cannot_be_done_is_one_line(words, code, line, folder, recorded, capsys, monkeypatch):
    monkeypatch.chdir(folder.base)

    assert code == call(*words)
    said = capsys.readouterr().err
    assert line in said
    assert 1 == said.count("\n")


def test_an_invalid_run_cannot_be_a_baseline(folder, record, recorded, capsys):
    said = {"valid": False, "reasons": ["a worker died"], "codes": ["dead_workers"]}
    run = folder.run([record(i) for i in range(60)], "bad", summary={"validity": said})
    before = recorded.read_bytes()

    assert 22 == call("update", recorded, run)
    assert "is not valid and cannot be a baseline: a worker died" in capsys.readouterr().err
    assert before == recorded.read_bytes()


def test_a_folder_of_runs_means_all_of_them(folder, runs):
    runs(0.4, 0.41)
    (folder.base / "latest").symlink_to(folder.base / "run01")
    path = folder.base / "all.json"

    assert 0 == call("record", path, folder.base)
    assert ["run00", "run01"] == [run["run"] for run in json.loads(path.read_text())["entries"][0]["runs"]]


def test_a_regression_counts_only_if_a_second_run_shows_it_too(folder, runs, recorded):
    slow, slower, fine, bad = runs(0.45, 0.47, 0.4, 0.45)
    gates = folder.gates(RELATIVE, {"id": "absolute", "limit": "430ms"})
    first = judge_run(slow, folder.gates(RELATIVE))

    assert first.regressed
    confirmed = confirm(first, judge_run(slower, folder.gates(RELATIVE)))
    assert ("fail", 20) == (confirmed.word, confirmed.exit_code)
    assert "confirmed by run run05" in confirmed.results[0].reason
    chance = confirm(first, judge_run(fine, folder.gates(RELATIVE)))
    assert ("warn", 0) == (chance.word, chance.exit_code)
    assert "NOT confirmed by run run06" in chance.results[0].reason
    # an absolute limit that was broken was broken
    both = judge_run(bad, folder.gates(RELATIVE, {"id": "absolute", "limit": "430ms"}))
    assert not both.regressed
    assert "fail" == confirm(both, judge_run(fine, gates)).word


@pytest.mark.parametrize(
    ("model", "cores", "name"),
    [
        ("AMD EPYC 7763 64-Core Processor", 2, "amd-epyc-7763-x2"),
        ("Intel(R) Xeon(R) CPU E5-2673 v4 @ 2.30GHz", 4, "intel-xeon-e5-2673-v4-x4"),
        ("", 1, "unknown-x1"),
    ],
)
def test_class_of_a_machine(model, cores, name):
    assert name == class_of(model, cores)


def test_the_class_is_read_from_the_cpus_own_words(tmp_path):
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: Neoverse-N1\n")

    assert machine_class(tmp_path / "cpuinfo").startswith("neoverse-n1-x")

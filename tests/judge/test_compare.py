"""Two sides: what differs, how sure that is, and what makes the comparison weaker than it looks."""

from __future__ import annotations

import io
import random
import subprocess

import pytest

from harness.cli import main
from harness.commands.interleave import Plan, play
from harness.judge.comparing import Side, compare, interleaved, order_of, read_side
from harness.judge.wording import caveats, sentence


@pytest.fixture
def sides(folder, record):
    """Makes two sides of runs with 80 streams each, TTFT spread by 10 %, in the order of the letters."""

    def make(order, a_s=0.4, b_s=0.4, **of_b):
        chance = random.Random(order + str(b_s))
        count = {"A": 0, "B": 0}
        for place, letter in enumerate(order):
            count[letter] += 1
            name = f"{letter.lower()}{count[letter]}"
            middle = a_s if letter == "A" else b_s
            drift = chance.uniform(0.99, 1.01)
            start = 1_000_000.0 + 60 * place
            records = [
                record(
                    i, middle * drift * chance.uniform(0.95, 1.05), run=name, sent_at=start + i / 10,
                    **(of_b if letter == "B" else {}),
                )
                for i in range(80)
            ]  # fmt: skip
            folder.run(records, f"{letter.lower()}/{name}")
        return folder.base / "a", folder.base / "b"

    return make


def read(paths):
    found = []
    for label, path in zip("AB", paths, strict=True):
        side, said = read_side(label, sorted(path.iterdir()))
        assert [] == said
        found.append(side)
    return found


def test_five_and_five_interleaved_runs_find_a_slowdown_of_20_percent(sides):
    comparison = compare(*read(sides("ABABABABAB", b_s=0.48)))
    (row,) = [row for row in comparison.rows if (row.metric, row.stat) == ("ttft", "p50")]

    assert ("runs", "worse", "worse") == (comparison.unit, comparison.word, row.word)
    assert 0.2 == pytest.approx(row.change, abs=0.02)
    assert row.low < 0.2 < row.high
    assert sentence(comparison).startswith("B (B) is worse than A (A): chat ttft p50 +")
    assert [] == caveats(comparison)


def test_the_same_build_twice_is_no_difference(sides):
    comparison = compare(*read(sides("ABABABABAB")))

    assert "no difference" == comparison.word
    assert "no difference found between A (A) and B (B): a ttft p50 that differs by more than" in sentence(
        comparison
    )


def test_faster_is_better(sides):
    assert "better" == compare(*read(sides("ABABABABAB", b_s=0.3))).word


def test_one_run_each_is_compared_by_stretches_and_says_that_it_is_weak(sides):
    comparison = compare(*read(sides("AB", b_s=0.48)))
    said = caveats(comparison)

    assert ("stretches", "worse") == (comparison.unit, comparison.word)
    assert said[0].startswith("NOT interleaved (AB)")
    assert said[1].startswith("1 + 1 runs: compared by stretches of time")


def test_two_runs_of_a_handful_of_streams_cannot_be_told_apart(folder, record):
    for name in ("a", "b"):
        folder.run([record(i, run=name) for i in range(3)], f"{name}/{name}1")
    comparison = compare(*read((folder.base / "a", folder.base / "b")))

    assert "cannot tell" == comparison.word
    assert sentence(comparison).startswith("cannot tell: too few")


def test_failures_make_a_side_worse(sides):
    comparison = compare(*read(sides("ABABABABAB", outcome="truncated")))
    rows = {row.name: row for row in comparison.rows}

    assert ("worse", -1.0) == (rows["success_rate"].word, rows["success_rate"].change)
    assert "worse" == rows["duration p50"].word  # never reached


def test_chance_among_many_rows_is_no_difference(sides):
    """At 4 + 4 the smallest p is 0.029; with five other rows it has to be smaller than 5 % / 6."""
    comparison = compare(*read(sides("ABABABAB", b_s=0.48)))

    assert "no difference" == comparison.word
    assert all(row.p > 0.1 for row in comparison.rows)


@pytest.mark.parametrize(
    ("order", "fair"),
    [
        ("ABABAB", True),
        ("ABBAAB", True),
        ("AAABBB", False),
        ("AB", False),
        ("ABAAAB", False),
        ("AAAA", False),
    ],
)
def test_what_counts_as_interleaved(order, fair):
    assert fair == interleaved(order)


def test_the_order_is_that_of_the_runs_beginnings(sides):
    assert "ABBA" == order_of(*read(sides("ABBA")))


def test_a_different_load_is_said(folder, record):
    for name, users in (("a", 10), ("b", 20)):
        folder.run([record(i, run=name) for i in range(80)], f"{name}/{name}1",
                   run={"options": {"num_users": users, "host": name}})  # fmt: skip
    comparison = compare(*read((folder.base / "a", folder.base / "b")))

    assert "the runs were not started alike: num_users (10 and 20)" in caveats(comparison)


@pytest.mark.parametrize(("b_s", "code", "word"), [(0.48, 20, "is worse than"), (0.4, 0, "no difference")])
def test_the_command_says_it_and_turns_the_exit_code(b_s, code, word, sides, capsys):
    a, b = sides("ABABABABAB", b_s=b_s)

    assert code == main(["compare", str(a), str(b)])
    said = " ".join(capsys.readouterr().out.split())
    assert word in said
    assert "5 + 5 runs" in said


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        (("a", "http://127.0.0.1:1"), 2, "give two URLs, or two results"),
        (("a", "none"), 21, "none does not exist"),
        (("a", "b", "--locust", "-u 5"), 2, "--locust is for two URLs"),
        (
            ("a", "b", "--confidence", "95"),
            2,
            "--confidence: expected a number from 0.5 to below 1, got 95.0",
        ),
        (("sim", "sim", "--runs", "0"), 2, "--runs: expected a whole number of at least 1"),
        (("sim", "sim", "--results", "."), 2, "holds runs already: choose another folder with --results"),
    ],
)
def test_what_cannot_be_compared_is_one_line(words, code, line, sides, folder, capsys, monkeypatch):
    sides("AB")
    monkeypatch.chdir(folder.base)

    assert code == main(["compare", *words])
    said = capsys.readouterr().err
    assert line in said
    assert 1 == said.count("\n")


def test_a_side_of_invalid_runs_is_invalid(folder, record, sides, capsys):
    sides("A")
    folder.run([record(0), record(0)], "b/b1")

    assert 22 == main(["compare", str(folder.base / "a"), str(folder.base / "b")])
    assert "run b1 is invalid: attempts.jsonl holds 1 records for the second time" in capsys.readouterr().err


def plan(tmp_path, **changed):
    fields = {"a": "sim", "b": "http://127.0.0.1:9", "runs": 2, "results": tmp_path, "both": ["-u", "5"]}
    return Plan(**{**fields, **changed})


def test_runs_alternate_and_a_pair_shares_its_seed(tmp_path):
    commands = list(plan(tmp_path, with_b=["--model", "x"]).commands())
    seeds = [command[command.index("--seed") + 1] for _, command in commands]
    hosts = [command[command.index("--host") + 1] for _, command in commands]

    assert ["a", "b", "a", "b"] == [side for side, _ in commands]
    assert ["1", "1", "2", "2"] == seeds
    assert ["sim", "http://127.0.0.1:9"] * 2 == hosts
    assert ["--model" in command for _, command in commands] == [False, True, False, True]
    assert all("-u" in command for _, command in commands)


def test_a_run_that_did_not_take_place_ends_the_comparison(tmp_path):
    out = io.StringIO()

    def call(command):
        return subprocess.CompletedProcess(command, 2 if "b" in command[-3] else 1, "", "x\nno such gateway")

    assert "run 2 (B) did not take place: no such gateway" == play(plan(tmp_path), out, call)
    assert "run 1 of 4: A\nrun 2 of 4: B\n" == out.getvalue()


def test_failed_streams_do_not_end_it(tmp_path):
    done = []

    def call(command):
        done.append(command)
        return subprocess.CompletedProcess(command, 1, "", "")

    assert play(plan(tmp_path), io.StringIO(), call) is None
    assert 4 == len(done)


def test_sides_of_one_target_are_called_by_what_sets_them_apart(tmp_path):
    same = plan(tmp_path, b="sim", with_a=["--model", "x"], with_b=["--model", "y"])

    assert ("sim --model x", "sim --model y") == same.labels
    assert ("sim", "http://127.0.0.1:9") == plan(tmp_path).labels


def test_invalid_runs_are_left_out_and_said(folder, record):
    folder.run([record(0), record(0)], "a/bad")
    folder.run([record(i) for i in range(80)], "a/good")
    side, said = read_side("A", sorted((folder.base / "a").iterdir()))

    assert isinstance(side, Side)
    assert ["good"] == [run.facts.name for run in side.runs]
    assert 1 == len(said)

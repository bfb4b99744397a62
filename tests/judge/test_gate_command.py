"""``harness gate`` as CI calls it: one clear line and an exit code for every kind of input."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from harness.cli import main


def call(*words):
    return main(["gate", *map(str, words)])


@pytest.fixture(autouse=True)
def outside_github(monkeypatch):
    for name in ("GITHUB_ACTIONS", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(("limit", "code"), [("1s", 0), ("100ms", 20)])
def test_pass_and_fail(limit, code, folder, record, capsys):
    run = folder.run(record(i) for i in range(60))

    assert code == call(run, "--gates", folder.gates({"limit": limit}))
    assert code == json.loads((run / "verdict.json").read_text())["exit_code"]
    assert (run / "junit.xml").exists()
    assert "attempt" in capsys.readouterr().out


def test_the_newest_run_of_a_results_folder_is_judged(folder, record):
    run = folder.run([record(i) for i in range(60)], "r1")
    (folder.base / "latest").symlink_to(run, target_is_directory=True)

    assert 0 == call(folder.base, "--gates", folder.gates({}))


@pytest.mark.parametrize(
    ("make", "code", "line"),
    [
        (lambda f, r: (f.base, f.gates({})), 21, "holds no results: there is no attempts.jsonl in it"),
        (lambda f, r: (f.base / "none", f.gates({})), 21, "does not exist: give a run's folder"),
        (lambda f, r: (f.run([r(0, schema="harness.attempt/7")]), f.gates({})), 22,
         "line 1: schema 'harness.attempt/7', expected 'harness.attempt/1'"),
        (lambda f, r: (f.run([r(0)]), f.base / "none.toml"), 23, "cannot read gate file"),
        (lambda f, r: (f.run([r(0)]), f.gates({"metric": "tftt"})), 23, "did you mean ttft?"),
        (lambda f, r: (f.base / "none", f.gates({"metric": "tftt"})), 23, "did you mean ttft?"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_its_exit_code(make, code, line, folder, record, capsys):
    run, gates = make(folder, record)

    assert code == call(run, "--gates", gates)
    said = capsys.readouterr().err
    assert line in said
    assert said.startswith("harness gate: ")
    assert 1 == said.count("\n")


def test_a_broken_baseline_is_one_line(folder, record, capsys):
    run = folder.run(record(i) for i in range(60))
    (folder.base / "b.json").write_text("{}}")

    assert 2 == call(run, "--gates", folder.gates({"baseline": "b.json", "limit": "1.1x"}))
    assert "b.json is not a baseline of schema harness.baseline/1" in capsys.readouterr().err


@pytest.mark.parametrize(("limit", "code"), [("1s", 2), ("100ms", 20)])
def test_outputs_that_cannot_be_written_are_no_pass(limit, code, folder, record, capsys):
    run = folder.run(record(i) for i in range(60))
    nowhere = folder.base / "nowhere"

    assert code == call(run, "--gates", folder.gates({"limit": limit}), "--output", nowhere)
    said = capsys.readouterr()
    assert f"cannot write {nowhere}/verdict.json (No such file or directory)" in said.err
    assert "choose another folder with --output DIR" in said.err
    assert "400 ms" in said.out  # the verdict is said all the same


def test_no_permission_to_write(folder, record, capsys, monkeypatch):
    run, gates = folder.run(record(i) for i in range(60)), folder.gates({})

    def refuse(path, data):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "write_bytes", refuse)

    assert 2 == call(run, "--gates", gates)
    assert f"cannot write {run}/verdict.json (Permission denied)" in capsys.readouterr().err


def test_on_github_the_log_gets_its_commands(folder, record, capsys, monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_OUTPUT", str(folder.base / "output"))
    run = folder.run(record(i) for i in range(60))

    assert 20 == call(run, "--gates", folder.gates({"limit": "1ms"}))
    assert "\n::error title=gate g1%3A fail::ttft p95" in capsys.readouterr().out
    assert "verdict=fail\nexit-code=20\n" == (folder.base / "output").read_text()

"""A run's own memory of its metrics, and the export that is made of it."""

from __future__ import annotations

import io
import os

import pytest

from harness.cli import main
from harness.observe.history import METRICS, History, read_history
from harness.observe.openmetrics import backfill
from harness.observe.results import ResultsError
from harness.observe.state import Nodes, Observed, RunState


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def states():
    return [
        RunState("r0", "sim:hopbase", "0.1.0", True, 900.0, ended_at=950.0),
        RunState("r1", "sim:hopbase", "0.1.0", True, 1000.0),
    ]


@pytest.fixture
def history(tmp_path, clock, states, aggregate):
    def source():
        return Observed(aggregate.snapshot(clock.now), states, Nodes(users=5))

    return History(tmp_path / METRICS, "r1", source, clock)


def exported(path):
    text = io.StringIO()
    count = backfill(read_history(path)).write(text)
    lines = [line for line in text.getvalue().splitlines() if not line.startswith("#")]
    assert count == len(lines)
    return lines


def test_a_moment_is_written_every_five_seconds_and_at_the_end(tmp_path, clock, history):
    for clock.now in (1000.5, 1001.5, 1005.0, 1005.5, 1006.5, 1010.6, 1012.0):
        history.tick()
    history.close()
    history.close()

    assert [1000.5, 1005.5, 1010.6, 1012.0] == [moment.at for moment in read_history(tmp_path / METRICS)]


def test_a_tick_after_the_end_is_harmless(tmp_path, clock, history):
    history.close()
    clock.now = 2000.0
    history.tick()

    assert 1 == len(list(read_history(tmp_path / METRICS)))


def test_only_the_run_itself_is_kept(tmp_path, aggregate, labels, record, session, history):
    other = labels._replace(run="r0")
    aggregate.begin_run("r0", started_at=900.0)
    aggregate.attempt_started(other, stream := session())
    aggregate.attempt_ended(other, stream, record())
    history.tick()

    (moment,) = read_history(tmp_path / METRICS)
    assert ["r1"] == [run["run"] for run in moment.snapshot["runs"]] == [state.run for state in moment.runs]


def test_the_export_begins_at_zero_and_goes_on_a_little_after_the_end(tmp_path, clock, states, history):
    clock.now = 1005.0
    history.tick()
    states[-1].ended_at, states[-1].valid = 1007.5, True
    clock.now = 1007.5
    history.close()

    lines = exported(tmp_path / METRICS)
    completed = (
        'harness_attempts_total{finish="stop",gateway="sim:hopbase",model="m1",outcome="completed",'
        'protocol="chat",run="r1",scenario="default",status="200"}'
    )
    assert [line for line in lines if line.startswith(completed)] == [
        f"{completed} 0.0 1000.000",
        f"{completed} 1.0 1005.000",
        f"{completed} 1.0 1007.500",
        f"{completed} 1.0 1012.500",
        f"{completed} 1.0 1017.500",
        f"{completed} 1.0 1022.500",
    ]
    last = (
        'harness_time_to_first_token_seconds_bucket{gateway="sim:hopbase",le="0.4",model="m1",'
        'protocol="chat",run="r1",scenario="default"}'
    )
    assert [line.removeprefix(last) for line in lines if line.startswith(last)][:2] == [
        " 0.0 1000.000",
        " 2.0 1005.000",
    ]
    ends = [line for line in lines if line.startswith("harness_run_end_timestamp_seconds")]
    assert ends[0] == 'harness_run_end_timestamp_seconds{gateway="sim:hopbase",run="r1"} 1007.5 1007.500'
    # What is no count of this run does not begin at zero.
    others = [line for line in lines if line.startswith(("harness_users", "harness_hub_lag"))]
    assert others
    assert not [line for line in others if line.endswith(" 1000.000")]


def test_two_moments_at_once_are_one_sample(tmp_path, clock, history):
    history.tick()
    history.close()

    lines = exported(tmp_path / METRICS)
    assert len(lines) == len({(series, at) for series, _, at in (line.rsplit(" ", 2) for line in lines)})


def test_samples_of_a_series_stand_together_in_the_order_of_time(tmp_path, clock, history):
    for clock.now in (1000.5, 1006.0, 1012.0):
        history.tick()

    seen: dict[str, float] = {}
    families: list[str] = []
    for line in exported(tmp_path / METRICS):
        series, _, at = line.rsplit(" ", 2)
        assert seen.get(series, 0.0) < float(at), series
        seen[series] = float(at)
        name = series.partition("{")[0]
        for suffix in ("_bucket", "_count", "_sum", "_total"):
            name = name.removesuffix(suffix)
        if not families or families[-1] != name:
            families.append(name)
    assert len(families) == len(set(families))


def test_a_full_disk_loses_moments_and_nothing_else(tmp_path, clock, states, aggregate):
    path = tmp_path / "no" / "folder" / METRICS
    lost = History(path, "r1", lambda: Observed(aggregate.snapshot(0.0), states), clock)
    lost.tick()
    lost.close()

    assert not path.exists()


def test_a_line_that_a_killed_run_left_cut_off_is_left_out(tmp_path, clock, history):
    history.tick()
    clock.now += 10
    history.tick()
    path = tmp_path / METRICS
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])

    assert [1000.0] == [moment.at for moment in read_history(path)]
    path.write_bytes(whole.replace(b'"at"', b'"ta"', 1))
    with pytest.raises(ResultsError, match="line 1: not a moment"):
        list(read_history(path))


def results(tmp_path):
    (tmp_path / "attempts.jsonl").write_text("")
    return tmp_path


def test_the_command_writes_to_a_file_or_to_stdout(tmp_path, history, capsys):
    history.tick()
    assert main(["export", str(results(tmp_path))]) == 0
    out = capsys.readouterr().out
    assert main(["export", str(tmp_path), "-o", str(tmp_path / "run.om")]) == 0

    assert out == (tmp_path / "run.om").read_text()
    assert out.endswith("\n# EOF\n")
    assert capsys.readouterr().err.startswith("harness export: ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "nowhere does not exist"),
        (["run"], "cannot read "),
        (["run", "-o", "no/such/file"], "cannot read "),
    ],
)
def test_what_cannot_be_exported_is_one_line(tmp_path, monkeypatch, capsys, arguments, said):
    monkeypatch.chdir(tmp_path)
    os.mkdir("run")
    results(tmp_path / "run")

    assert main(["export", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("harness export: ")
    assert said in error
    assert error.count("\n") == 1


def test_a_place_that_cannot_be_written_is_one_line(tmp_path, history, capsys):
    history.tick()

    assert main(["export", str(results(tmp_path)), "-o", str(tmp_path / "no/file")]) == 2
    assert (
        capsys.readouterr().err
        == f"harness export: cannot write {tmp_path}/no/file (No such file or directory)\n"
    )

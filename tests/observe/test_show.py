from __future__ import annotations

import argparse

import pytest

from harness.commands import show
from harness.observe.results import AttemptLog, ResultsFolder
from harness.observe.timelines import TimelineLog
from harness.stream.record import Retry

TIMELINE = {"t": [0.1, 0.5, 0.6, 0.7], "kind": ["lifecycle", "content", "content", "comment"], "dropped": 12}


@pytest.fixture
def harness_show(capsys):
    def call(*arguments):
        parser = argparse.ArgumentParser()
        show.add_parser(parser.add_subparsers())
        args = parser.parse_args(["show", *map(str, arguments)])
        code = args.run(args)
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture
def results(tmp_path, record, stalled):
    folder = ResultsFolder(tmp_path / "results", "night")
    log = AttemptLog(folder.path / "attempts.jsonl")
    timelines = TimelineLog(folder.path / "timelines.jsonl", slowest=0)
    retried = {"final": False, "retry": Retry("retry", "stalled", 0.5)}
    for one in (
        record(request="aa-1", first_token_s=0.25),
        record(request="aa-2", first_token_s=3.0),
        record(request="aa-22", first_token_s=0.1),
        stalled(request="bb-1", **retried),
        record(request="bb-1", attempt=2),
    ):
        log.add(one)
        timelines.add(one, lambda: TIMELINE)
    log.close()
    timelines.close()
    return folder


def test_failed_and_slowest_streams(harness_show, results):
    code, out, err = harness_show(results.base)

    assert (code, err) == (0, "")
    assert out.splitlines()[0] == f"{results.path}: 5 attempts, 1 failed"
    failed, _, slowest = out.partition("slowest to the first token")
    assert "stuck: no token for 1.50 s" in failed
    assert "bb-1" in failed
    assert slowest.index("aa-2") < slowest.index("bb-1 #2") < slowest.index("aa-1")
    assert "3.00 s" in slowest


def test_the_number_of_rows_is_the_users(harness_show, results):
    _, out, _ = harness_show(results.base, "-n", "1")

    assert "aa-2" in out
    assert "aa-1" not in out


def test_one_requests_attempts_with_its_timeline(harness_show, results):
    code, out, _ = harness_show(results.path, "bb")

    assert code == 0
    assert "attempt 1 · chat · m1 · stalled" in out
    assert "attempt 2 · chat · m1 · completed" in out
    story = [" ".join(line.split()) for line in out.splitlines()]
    assert "0.000 s request sent" in story
    assert "0.050 s +50.0 ms headers" in story
    assert "0.500 s +400 ms content ×2 until 0.600 s, longest gap 100 ms" in story
    assert "12 entries around here were not kept" in story
    assert "2.400 s +1.70 s stalled" in story
    assert "no timeline: they are kept of failed and stalled streams, and of the slowest ones" in story


def test_a_whole_id_is_meant_though_it_begins_another(harness_show, results):
    code, out, _ = harness_show(results.path, "aa-2")

    assert code == 0
    assert "aa-22" not in out


def test_every_event_on_a_line_of_its_own(harness_show, results):
    _, out, _ = harness_show(results.path, "bb-1", "--every")
    story = [" ".join(line.split()) for line in out.splitlines()]

    assert "0.500 s +400 ms content" in story
    assert "0.600 s +100 ms content" in story


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["zz"], "has no request 'zz'"),
        (["aa"], "3 requests begin with 'aa' (aa-1, aa-2, aa-22, …): give more of the id"),
    ],
)
def test_a_request_that_is_not_there_is_one_line(harness_show, results, arguments, says):
    code, out, err = harness_show(results.path, *arguments)

    assert (code, out) == (2, "")
    assert err.startswith("harness show: ")
    assert says in err
    assert err.count("\n") == 1


def test_an_empty_folder_is_one_line(harness_show, tmp_path):
    code, out, err = harness_show(tmp_path)

    assert (code, out) == (2, "")
    assert err == (
        f"harness show: {tmp_path} holds no results: "
        f"there is no attempts.jsonl in it, nor in {tmp_path / 'latest'}\n"
    )


def test_a_run_that_recorded_nothing_yet_is_one_line(harness_show, tmp_path):
    folder = ResultsFolder(tmp_path, "r")
    AttemptLog(folder.path / "attempts.jsonl").close()

    code, _, err = harness_show(tmp_path)
    assert code == 2
    assert "holds no attempts yet" in err


def test_a_servers_words_cannot_steer_the_terminal(harness_show, tmp_path, error_event):
    folder = ResultsFolder(tmp_path, "r")
    log = AttemptLog(folder.path / "attempts.jsonl")
    log.add(error_event("\x1b[2J[red]", request="q1", server_request_id="\x1b]0;owned\x07"))
    log.close()

    for arguments in ([tmp_path], [tmp_path, "q1"]):
        _, out, _ = harness_show(*arguments)
        assert "\x1b" not in out
        assert "\x07" not in out
        assert "[red]" in out

"""One run over many processes: nothing is lost, nothing counted twice, and everybody asks something else."""

import collections
import json
import os
import signal

import httpx
import pytest

from tests.workers.conftest import MIX


def outcomes(rows):
    return collections.Counter(row["outcome"] for row in rows)


def ids(rows):
    return {(row["request"], row["attempt"]) for row in rows}


def check_books(fleet):
    """Records, truth log and the sums of the master say the same."""
    records, truth, summary = fleet.records, fleet.truth, fleet.summary
    assert len(records) == len(ids(records)) == summary["conservation"]["started"]
    assert ids(records) == ids(truth)
    assert 0 == summary["conservation"]["lost"] == summary["conservation"]["open"]
    assert outcomes(records) == summary["outcomes"]
    true = {(row["request"], row["attempt"]): row["outcome"] for row in truth}
    assert [] == [
        row for row in records
        if row["outcome"] not in ("aborted", true[row["request"], row["attempt"]])
    ]  # fmt: skip


def metric(port, name):
    """The sum of all series of *name*; 0 as long as nobody answers."""
    try:
        text = httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text
    except httpx.ConnectError:
        return 0
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name + "{"))


def test_the_masters_sums_equal_the_records_and_the_truth(fleet, nothing_left, until):
    run = fleet("--sim-mix", MIX, "-u", "24", "-r", "24", "-t", "4s", "--exit-code-on-error", "0")
    until(lambda: run.records, 20)
    pids, open_now = run.everybody, metric(run.ports[1], "harness_open_streams")
    assert 4 == len(pids)  # the master, its simulator, two workers
    assert 0 < open_now <= 24
    assert 0 == run.process.wait(30)

    check_books(run)
    assert {"completed", "stalled", "error_event", "truncated"} <= outcomes(run.records).keys()
    assert {"worker-0", "worker-1"} == {row["worker"] for row in run.records}
    assert "2 workers" not in run.process.err
    nothing_left(pids, run.ports)


@pytest.mark.parametrize(
    ("number", "to_all"),
    [(signal.SIGINT, True), (signal.SIGTERM, False)],
    ids=["Ctrl-C in the terminal", "SIGTERM to the master"],
)
def test_a_signal_drains_every_worker_and_leaves_nobody(number, to_all, fleet, nothing_left, until):
    run = fleet("--sim-mix", "ok=1", "-u", "10", "-r", "10", "--exit-code-on-error", "0")
    until(lambda: len(run.records) >= 5, 20)
    pids = run.everybody
    for pid in (run.process.popen.pid, *run.workers) if to_all else (run.process.popen.pid,):
        os.kill(pid, number)

    assert run.process.wait(20) == 0
    check_books(run)
    assert {"completed"} == outcomes(run.records).keys()
    assert [] == [line for line in run.process.err.splitlines() if "Traceback" in line]
    nothing_left(pids, run.ports)


def test_who_interrupts_twice_cuts_the_streams_of_all_workers(fleet, nothing_left, until):
    run = fleet("--sim-mix", "stall-mid=1", "-u", "6", "-r", "6", "--stop-timeout", "60",
                "--limit", "progress=50s", "--exit-code-on-error", "0")  # fmt: skip
    until(lambda: run.results.exists() and metric(run.ports[1], "harness_open_streams") == 6, 20)
    pids = run.everybody
    run.process.signal(signal.SIGINT)
    run.process.wait_for("draining 6 open streams")
    run.process.signal(signal.SIGINT)

    run.process.wait(15)
    check_books(run)
    assert {"aborted": 6} == outcomes(run.records)
    nothing_left(pids, run.ports)


def workers_with_one_seed_ask_different_things_and_a_budget_is_shared(fleet):
    run = fleet("--sim-mix", "ok=1", "-u", "6", "-r", "6", "--max-requests", "17", "--save-content",
                "--seed", "3", "--prompt-tokens", "5-60", "--exit-code-on-error", "0")  # fmt: skip
    assert 0 == run.process.wait(30)

    assert 17 == len(run.records) == len(run.truth)
    assert {"worker-0": 9, "worker-1": 8} == collections.Counter(row["worker"] for row in run.records)
    assert "all 2 workers are done" in run.process.err
    lines = (run.results / "latest" / "content.jsonl").read_text().strip().split("\n")
    prompts = [json.dumps(json.loads(line)["prompt"]) for line in lines]
    assert 17 == len(set(prompts))


def open_arrivals_keep_their_rate_over_workers(fleet):
    run = fleet("--sim-mix", "ok=1", "--arrivals", "constant", "--rate", "20", "-t", "5s",
                "--exit-code-on-error", "0")  # fmt: skip
    assert 0 == run.process.wait(30)

    check_books(run)
    assert 80 <= len(run.records) <= 104  # 5 s at 20 per second, less what the start of the users takes
    shares = collections.Counter(row["worker"] for row in run.records)
    assert abs(shares["worker-0"] - shares["worker-1"]) <= 10


def a_replay_is_dealt_out(fleet, tmp_path):
    log = tmp_path / "log.csv"
    log.write_text(
        "timestamp,prompt_tokens,max_tokens\n" + "".join(f"{n / 10},{n + 1},8\n" for n in range(21))
    )
    run = fleet("--sim-mix", "ok=1", "--arrivals", "replay", "--replay-file", log, "-u", "4", "-r", "4",
                "--exit-code-on-error", "0")  # fmt: skip
    assert 0 == run.process.wait(30)

    check_books(run)
    assert {"worker-0": 11, "worker-1": 10} == collections.Counter(row["worker"] for row in run.records)


def test_budgets_seeds_arrivals_and_replays_over_workers(fleet, tmp_path, together):
    """What is asked by several workers is what one would have asked, side by side."""
    together(
        lambda: workers_with_one_seed_ask_different_things_and_a_budget_is_shared(fleet),
        lambda: open_arrivals_keep_their_rate_over_workers(fleet),
        lambda: a_replay_is_dealt_out(fleet, tmp_path),
    )

"""Workers that die, hang, come late or lose their master: noticed, shown, counted, nobody left behind."""

import os
import signal
import time
from itertools import accumulate

import gevent
import httpx
import pytest

from tests.workers.conftest import MIX, is_free
from tests.workers.test_sums import check_books, metric


class Browser:
    """What the script of the page asks the server."""

    def __init__(self, port):
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=30)

    def start(self, **fields):
        return self.client.post("/swarm", data={"user_count": "8", "spawn_rate": "8", **fields}).json()

    def stop(self):
        assert self.client.post("/stop").json()["success"]

    @property
    def live(self):
        return self.client.get("/harness/live.json").json()

    @property
    def states(self):
        return sorted(worker["state"] for worker in self.live["workers"])


def reachable(port):
    try:
        return httpx.get(f"http://127.0.0.1:{port}/harness/live.json", trust_env=False).is_success
    except httpx.ConnectError:
        return False


@pytest.fixture
def browse(until):
    """Return the page of a process once it answers and its two workers are there."""
    opened = []

    def open_page(port):
        until(lambda: reachable(port), 20)
        opened.append(Browser(port))
        until(lambda: opened[0].states == ["ready", "ready"], 20)
        return opened[0]

    yield open_page
    for browser in opened:
        browser.client.close()


def test_a_killed_worker_is_noticed_shown_and_counted_and_the_run_is_invalid(
    fleet, free_port, browse, until, nothing_left
):
    run = fleet("--web-port", free_port, "--web-host", "127.0.0.1", "--sim-mix", MIX, headless=False)
    browser = browse(free_port)
    assert browser.start()["success"]
    until(lambda: len({row["worker"] for row in run.records}) == 2, 20)
    pids, killed = run.everybody, time.monotonic()
    os.kill(run.workers[0], signal.SIGKILL)

    until(lambda: browser.states == ["missing", "running"], 10)
    assert time.monotonic() - killed < 6.0
    assert any("1 workers died" in reason for reason in browser.live["validity"]["reasons"])
    lost = next(worker for worker in browser.live["workers"] if worker["state"] == "missing")
    assert lost["missed_at"] is not None
    text = httpx.get(f"http://127.0.0.1:{run.ports[1]}/metrics", trust_env=False).text
    assert 'harness_workers{state="missing"} 1.0' in text
    run.process.wait_for(f"harness: {lost['name']} is lost", 3)
    ended = metric(run.ports[1], "harness_attempts_total")
    browser.stop()

    conservation, validity = run.summary["conservation"], run.summary["validity"]
    assert validity["valid"] is False
    gone = f"1 workers died or went missing: {lost['name']} (gone at {lost['missed_at']}, "
    assert 1 == sum(reason.startswith(gone) for reason in validity["reasons"])
    missing = {(row["request"], row["attempt"]) for row in run.truth} - {
        (row["request"], row["attempt"]) for row in run.records
    }
    assert 1 <= conservation["lost"] <= len(missing) <= 12
    assert conservation["started"] == len(run.records) + conservation["lost"]
    assert metric(run.ports[1], "harness_attempts_total") >= ended  # counters never go back
    run.process.signal(signal.SIGTERM)
    run.process.wait(20)
    nothing_left(pids, [*run.ports, free_port])


def a_worker_that_hangs_is_lost_too_and_may_be_tolerated(fleet, until, nothing_left):
    run = fleet("--sim-mix", "ok=1", "-u", "8", "-r", "8", "--tolerate-worker-loss",
                "--exit-code-on-error", "0")  # fmt: skip
    until(lambda: len({row["worker"] for row in run.records}) == 2, 20)
    pids, stopped = run.everybody, time.monotonic()
    os.kill(run.workers[1], signal.SIGSTOP)
    run.process.wait_for("is lost", 10)
    assert time.monotonic() - stopped < 6.0
    run.process.signal(signal.SIGINT)
    run.process.wait(30)

    assert run.summary["conservation"]["lost"] >= 1
    # A machine that is busy with other things may make it invalid for other reasons.
    assert [] == [reason for reason in run.summary["validity"]["reasons"] if "events were read" not in reason]
    assert any("lost workers, tolerated: worker-" in note for note in run.summary["notes"])
    assert "did not end in time and is killed" in run.process.err
    nothing_left(pids, run.ports)


def when_the_last_worker_dies_the_run_ends(fleet, until, nothing_left):
    run = fleet("--sim-mix", "ok=1", "-u", "4", "-r", "4", processes=1)
    until(lambda: run.records, 20)
    pids = run.everybody
    os.kill(run.workers[0], signal.SIGKILL)

    run.process.wait(30)
    assert any("1 workers died" in reason for reason in run.summary["validity"]["reasons"])
    nothing_left(pids, run.ports)


def workers_and_simulator_do_not_outlive_a_killed_master(fleet, until, nothing_left):
    run = fleet("--sim-mix", "ok=1", "-u", "4", "-r", "4")
    until(lambda: run.records, 20)
    pids = run.everybody
    os.kill(pids[0], signal.SIGKILL)

    nothing_left(pids, run.ports, timeout_s=6.0)


def a_worker_that_comes_back_brings_what_it_had(fleet, until, nothing_left):
    """It was silent too long, so the run stays invalid; but its streams have their records after all."""
    run = fleet("--sim-mix", "ok=1", "-u", "8", "-r", "8", "--exit-code-on-error", "0")
    until(lambda: len({row["worker"] for row in run.records}) == 2, 20)
    pids = run.everybody
    os.kill(run.workers[0], signal.SIGSTOP)
    run.process.wait_for("is lost", 10)
    os.kill(run.workers[0], signal.SIGCONT)
    gevent.sleep(3.0)
    run.process.signal(signal.SIGINT)
    run.process.wait(30)

    check_books(run)
    assert 0 == run.summary["conservation"]["lost"]
    assert any("1 workers died or went missing" in reason for reason in run.summary["validity"]["reasons"])
    nothing_left(pids, run.ports)


def a_worker_that_is_asked_to_leave_hands_its_users_over(fleet, until, nothing_left):
    run = fleet("--sim-mix", "ok=1", "-u", "8", "-r", "8", "--exit-code-on-error", "0")
    until(lambda: len({row["worker"] for row in run.records}) == 2, 20)
    pids, leaver = run.everybody, run.workers[0]
    os.kill(leaver, signal.SIGTERM)
    until(lambda: leaver not in run.workers, 10)
    gone = time.time()
    until(lambda: len(since(gone, run.records)) >= 16, 20)
    run.process.signal(signal.SIGINT)
    run.process.wait(30)

    check_books(run)
    later = since(gone, run.records)
    assert 1 == len({row["worker"] for row in later})
    assert 8 == most_at_once(later)
    assert "dead_workers" not in run.summary["validity"]["codes"]
    nothing_left(pids, run.ports)


def since(moment, records):
    """Those that began after *moment*, unix seconds."""
    return [row for row in records if row["sent_at"] > moment]


def most_at_once(records):
    """How many streams were open at the same time."""
    begun = [(row["sent_at"], 1) for row in records]
    ended = [(row["sent_at"] + row["end_s"], -1) for row in records]
    return max(accumulate(step for _, step in sorted(begun + ended)))


def test_hung_workers_last_workers_and_orphans(fleet, until, nothing_left, together):
    """Ways to leave, and to be left alone, side by side."""
    together(
        lambda: a_worker_that_hangs_is_lost_too_and_may_be_tolerated(fleet, until, nothing_left),
        lambda: a_worker_that_comes_back_brings_what_it_had(fleet, until, nothing_left),
        lambda: a_worker_that_is_asked_to_leave_hands_its_users_over(fleet, until, nothing_left),
        lambda: when_the_last_worker_dies_the_run_ends(fleet, until, nothing_left),
        lambda: workers_and_simulator_do_not_outlive_a_killed_master(fleet, until, nothing_left),
    )


@pytest.fixture
def join(launch, tmp_path):
    """Start a worker of its own for the master of a fleet."""

    def start(run):
        return launch("run", "--worker", "--master-host", "127.0.0.1", "--master-port", run.ports[0],
                      "--loglevel", "WARNING", cwd=tmp_path)  # fmt: skip

    return start


def test_separate_processes_wait_for_each_other_and_a_late_worker_takes_part(
    fleet, join, launch, until, nothing_left, free_port, tmp_path
):
    (tmp_path / "fleet-0").mkdir()
    gateway = launch("sim", "--port", free_port, "--gateway", "hopbase", "--time-scale", "0.02",
                     "--truth", tmp_path / "fleet-0" / "truth.jsonl")  # fmt: skip
    gateway.wait_for("ready on")
    run = fleet("--master", "--expect-workers", "1", "-u", "8", "-r", "8", "--exit-code-on-error", "0",
                processes=None, host=f"http://127.0.0.1:{free_port}")  # fmt: skip
    until(lambda: not is_free(run.ports[1]), 20)
    gevent.sleep(1.0)
    assert [] == run.records
    first = join(run)
    until(lambda: {row["worker"] for row in run.records} == {"worker-0"}, 20)
    late = join(run)
    until(lambda: {row["worker"] for row in run.records} == {"worker-0", "worker-1"}, 20)
    pids = [process.popen.pid for process in (run.process, first, late)]
    run.process.signal(signal.SIGTERM)
    run.process.wait(20)

    gateway.signal(signal.SIGTERM)
    gateway.wait(10)
    check_books(run)
    assert {"sim:hopbase"} == {row["gateway"] for row in run.records}
    assert [] == first.complaints == late.complaints
    nothing_left(pids, run.ports)


def test_a_separate_worker_ends_when_its_master_is_killed(fleet, join, until, nothing_left):
    run = fleet("--master", "--expect-workers", "1", "-u", "4", "-r", "4", processes=None)
    worker = join(run)
    until(lambda: run.records, 20)
    pids = [*run.everybody, worker.popen.pid]
    os.kill(pids[0], signal.SIGKILL)

    worker.wait(12)
    assert "worker-0: the master is gone, so this worker ends" in worker.err
    nothing_left(pids, run.ports)


def test_one_master_and_its_workers_play_several_runs(fleet, free_port, browse, until, nothing_left):
    run = fleet("--web-port", free_port, "--web-host", "127.0.0.1", headless=False)
    browser = browse(free_port)
    pids, seen = run.everybody, []
    for mix in ("ok=1", "truncate=1"):
        assert browser.start(run_name="again", sim_mix=mix)["success"]
        until(lambda: len({row["worker"] for row in run.records}) == 2, 20)
        assert {"no_token_s", "worker"} <= browser.live["silent"][0].keys()
        browser.stop()
        until(lambda: browser.states == ["ready", "ready"], 5)
        assert 0 == run.summary["conservation"]["lost"] == run.summary["conservation"]["open"]
        assert run.summary["conservation"]["started"] == len(run.records)
        seen.append({row["outcome"] for row in run.records} - {"aborted"})

    assert [{"completed"}, {"truncated"}] == seen
    assert {"again", "again-2"} <= {path.name for path in run.results.iterdir()}
    run.process.signal(signal.SIGINT)
    run.process.wait(20)
    nothing_left(pids, [*run.ports, free_port])


def test_a_start_without_workers_is_refused_with_a_reason(fleet, free_port, until):
    run = fleet(
        "--master", "--web-port", free_port, "--web-host", "127.0.0.1", processes=None, headless=False
    )
    until(lambda: reachable(free_port), 20)
    answer = httpx.post(f"http://127.0.0.1:{free_port}/swarm", data={"user_count": "1", "spawn_rate": "1"},
                        trust_env=False).json()  # fmt: skip

    assert answer["success"] is False
    assert answer["message"].startswith("no worker is connected")
    assert not is_free(run.ports[0])

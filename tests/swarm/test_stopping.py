"""Every way to stop a run: open streams drain, who asks again cuts, nothing is lost and nothing left."""

import itertools
import json
import signal
from collections import Counter

import gevent
import pytest

INT, TERM = signal.SIGINT, signal.SIGTERM
USERS = 4


class Load:
    """A headless run whose streams are all of one kind; `ready` when all users have one open."""

    def __init__(self, launch, results, fault, *arguments):
        self.results = results
        self.process = launch(
            "run", "--headless", "--host", "sim", "--gateway", "hopbase", "--protocols", "chat",
            "--sim-mix", f"{fault}=1", "--time-scale", "0.5", "-u", USERS, "-r", "100", "--results", results,
            "--no-preflight", "--only-summary", *arguments,
        )  # fmt: skip

    def ready(self):
        self.process.wait_for("All users spawned")
        gevent.sleep(0.5)
        return self.process

    @property
    def records(self):
        lines = (self.results / "latest" / "attempts.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    @property
    def outcomes(self):
        """Outcomes on disk, after a check that the summary says the same."""
        found = Counter(record["outcome"] for record in self.records)
        summary = json.loads((self.results / "latest" / "summary.json").read_text())
        assert found == summary["outcomes"]
        assert summary["conservation"]["balanced"]
        return found


@pytest.fixture
def load(launch, tmp_path):
    number = itertools.count()

    def start(fault, *arguments, metrics=("--metrics-port", "0")):
        return Load(launch, tmp_path / f"results-{next(number)}", fault, *arguments, *metrics)

    return start


def test_ctrl_c_lets_open_streams_end(load):
    run = load("ok")
    process = run.ready()
    process.signal(INT)

    assert 0 == process.wait()
    words = f"harness: draining {USERS} open streams, up to 82.5 s; Ctrl-C or Stop again cuts them"
    assert [words] == process.complaints[:1]
    assert {"completed": USERS} == run.outcomes
    assert "SIMULATED" in process.out
    assert "Traceback" not in process.out + process.err


def test_a_second_signal_cuts_what_the_first_one_drains(load):
    pairs = [(INT, INT), (TERM, TERM), (INT, TERM), (TERM, INT)]
    runs = [load("stall-mid", "--stop-timeout", "60") for _ in pairs]
    for run, (first, second) in zip(runs, pairs, strict=True):
        process = run.ready()
        process.signal(first)
        process.wait_for("draining")
        process.signal(second)

    for run, pair in zip(runs, pairs, strict=True):
        assert 0 == run.process.wait(20), pair
        assert 1 == run.process.err.count("cutting 4 open streams"), pair
        assert {"aborted": USERS} == run.outcomes, pair
        assert 1 == run.process.out.count("SIMULATED"), pair
        assert "Traceback" not in run.process.out + run.process.err, pair


def test_the_end_of_the_run_time_drains_and_what_that_does_not_end_is_aborted_and_shown(load):
    patient = load("stall-mid", "--stop-timeout", "60", "-t", "1s")
    hasty = load("stall-mid", "--stop-timeout", "1", "-t", "1s")
    patient.process.wait_for("draining 4 open streams")
    patient.process.signal(INT)  # it drains already, so this is the second one

    for run in (patient, hasty):
        assert 0 == run.process.wait(20)
        assert {"aborted": USERS} == run.outcomes
        assert "by the run's end" in run.process.out
        assert "Traceback" not in run.process.out + run.process.err


def test_a_killed_run_leaves_its_records_and_no_simulator(load, alive, until):
    run = load("error-mid")
    process = run.ready()
    gevent.sleep(2)
    (simulator,) = process.children
    process.signal(signal.SIGKILL)
    process.wait()

    until(lambda: not alive(simulator))
    assert {"error_event"} == {record["outcome"] for record in run.records}
    assert len(run.records) >= USERS


def test_nobody_has_to_wait_for_a_last_scrape(load, free_port):
    run = load("ok", "-t", "1s", metrics=("--metrics-port", free_port, "--metrics-linger", "60s"))
    run.process.wait_for("metrics stay up for a last scrape")
    run.process.signal(INT)

    assert 0 == run.process.wait(10)
    assert "Traceback" not in run.process.out + run.process.err

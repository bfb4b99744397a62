"""Every way to stop a run: open streams drain, who asks again cuts, nothing is lost and nothing left."""

import json
import signal
import time
from collections import Counter

import pytest

INT, TERM = signal.SIGINT, signal.SIGTERM
USERS = 4


@pytest.fixture
def load(launch, tmp_path, free_port):
    """Start a headless run whose streams are all of one kind, and wait until all users have one open."""

    def start(fault, *arguments):
        process = launch(
            "run", "--headless", "--host", "sim", "--gateway", "hopbase", "--protocols", "chat",
            "--sim-mix", f"{fault}=1", "--time-scale", "0.5", "-u", USERS, "-r", "100", "--results", tmp_path,
            "--metrics-port", free_port, "--metrics-linger", "0s", "--no-preflight", "--only-summary",
            *arguments,
        )  # fmt: skip
        process.wait_for("All users spawned")
        time.sleep(0.5)
        return process

    return start


def outcomes(tmp_path):
    """Outcomes on disk, after a check that the summary says the same."""
    lines = (tmp_path / "latest" / "attempts.jsonl").read_text().splitlines()
    found = Counter(json.loads(line)["outcome"] for line in lines)
    summary = json.loads((tmp_path / "latest" / "summary.json").read_text())
    assert found == summary["outcomes"]
    assert summary["conservation"]["balanced"]
    return found


def test_ctrl_c_lets_open_streams_end(load, tmp_path):
    process = load("ok")
    process.signal(INT)

    assert 0 == process.wait()
    assert (
        f"harness: draining {USERS} open streams, up to 82.5 s; Ctrl-C or Stop again cuts them" in process.err
    )
    assert {"completed": USERS} == outcomes(tmp_path)
    assert "SIMULATED" in process.out
    assert "Traceback" not in process.out + process.err


@pytest.mark.parametrize(
    ("first", "second"), [(INT, INT), (TERM, TERM), (INT, TERM), (TERM, INT)], ids=lambda s: s.name
)
def test_a_second_signal_cuts_what_the_first_one_drains(first, second, load, tmp_path):
    process = load("stall-mid", "--stop-timeout", "60")
    began = time.monotonic()
    process.signal(first)
    process.wait_for("draining")
    process.signal(second)

    assert 0 == process.wait()
    assert 20 > time.monotonic() - began
    assert 1 == process.err.count("cutting 4 open streams")
    assert {"aborted": USERS} == outcomes(tmp_path)
    assert 1 == process.out.count("SIMULATED")
    assert "Traceback" not in process.out + process.err


def test_the_end_of_the_run_time_drains_and_ctrl_c_then_cuts(load, tmp_path):
    process = load("stall-mid", "--stop-timeout", "60", "-t", "1s")
    process.wait_for("draining 4 open streams")
    process.signal(INT)

    assert 0 == process.wait(20)
    assert {"aborted": USERS} == outcomes(tmp_path)
    assert "Traceback" not in process.out + process.err


def test_what_a_drain_does_not_end_is_aborted_and_shown(load, tmp_path):
    process = load("stall-mid", "--stop-timeout", "1", "-t", "1s")

    assert 0 == process.wait(20)
    assert {"aborted": USERS} == outcomes(tmp_path)
    assert "aborted" in process.out
    assert "by the run's end" in process.out


def test_a_killed_run_leaves_its_records_and_no_simulator(load, tmp_path, alive, until):
    process = load("error-mid")
    time.sleep(2)
    (simulator,) = process.children
    process.signal(signal.SIGKILL)
    process.wait()

    until(lambda: not alive(simulator))
    records = [json.loads(line) for line in (tmp_path / "latest" / "attempts.jsonl").read_text().splitlines()]
    assert {"error_event"} == {record["outcome"] for record in records}
    assert len(records) >= USERS


def test_nobody_has_to_wait_for_a_last_scrape(load):
    process = load("ok", "-t", "1s", "--metrics-linger", "60s")
    process.wait_for("metrics stay up for a last scrape")
    process.signal(INT)

    assert 0 == process.wait(10)
    assert "Traceback" not in process.out + process.err

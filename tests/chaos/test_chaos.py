"""The world around a run breaks: right outcomes, a clear message, nothing lost but what is counted as lost.

Steps of the wall clock are in `tests/transport/test_time.py`, killed processes in
`tests/swarm/test_stopping.py`.
"""

import os
import signal
import socket
import struct
import subprocess
import sys
import urllib.request

import gevent
import pytest

HARNESS = (sys.executable, "-m", "harness")


def test_a_gateway_that_dies_and_comes_back(load, gateway_on, free_port):
    gateway = gateway_on(
        free_port, "--tokens", "100"
    )  # long enough that it dies inside every user's first one
    run = load(gateway.url, "-u", "20", "-r", "100", "-t", "4s", "--metrics-port", "0").spawned()
    gateway.process.signal(signal.SIGKILL)
    gateway.process.wait()
    gevent.sleep(0.7)
    again = gateway_on(free_port, truth="again.jsonl")

    assert 0 == run.process.wait()
    run.ended_well()
    outcomes = run.outcomes
    assert {"completed", "cut", "no_response", "connect_error"} >= outcomes.keys() - {"aborted"}
    assert 20 == outcomes["cut"]
    # Each user tries once at once and then once a second: a dead gateway is not hammered. (Who is quick may
    # still reach the port of the dying one.)
    assert 20 <= outcomes["connect_error"] + outcomes["no_response"] <= 80
    back = {(r["request"], r["attempt"]) for r in run.records if r["outcome"] == "completed"}
    assert len(again.truths()) > 20
    assert again.truths().keys() <= {(r["request"], r["attempt"]) for r in run.records}
    assert len(again.truths().keys() & back) > 20
    assert "cannot connect to 127.0.0.1" in run.process.out
    assert {"connection refused"} == {
        r["error"]["message"].rpartition(": ")[2] for r in run.records if r["outcome"] == "connect_error"
    }


@pytest.fixture
def small_disk(tmp_path):
    """A folder that takes no more than 200 kB; None for those who may not make one."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", folder]
    if os.geteuid() or subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode:
        yield None
        return
    yield folder
    subprocess.run(["umount", folder], check=True)


def check_that_lost_records_are_counted(run, why):
    """Started = recorded + lost, whole lines alone, and the run does not pass for a good one."""
    assert 22 != run.process.wait()  # there are no gates
    assert "Traceback" not in run.process.out + run.process.err
    started, recorded, still_open, lost = run.books
    assert started == recorded + lost
    assert len(run.records) == recorded  # every line is whole
    assert min(recorded, lost) > 0 == still_open
    assert f"{lost} records could not be written: {why}" in " ".join(run.process.out.split())
    assert "run INVALID" in run.process.out


def test_a_disk_that_fills_and_a_file_that_may_not_grow(load, gateway_on, free_port, small_disk):
    gateway = gateway_on(free_port)
    command = ("sh", "-c", 'ulimit -f 200; exec "$@"', "-", *HARNESS)  # blocks of 512 bytes: 100 kB
    options = (gateway.url, "-u", "40", "-r", "100", "-t", "2s", "--metrics-port", "0")
    limited = load(*options, command=command)
    filled = None if small_disk is None else load(*options, results=small_disk)

    check_that_lost_records_are_counted(limited, "File too large")
    if filled is not None:
        check_that_lost_records_are_counted(filled, "No space left on device")
        assert {"completed"} == filled.outcomes.keys() - {"aborted"}


def test_scrapers_that_close_in_the_middle(load, gateway_on, free_ports):
    port, metrics = free_ports(2)
    gateway = gateway_on(port)
    run = load(gateway.url, "-u", "10", "-r", "100", "-t", "3s", "--metrics-port", metrics).spawned()
    for number in range(30):
        with socket.create_connection(("127.0.0.1", metrics)) as scraper:
            # A reset, not a clean end.
            scraper.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            scraper.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n" + (b"\r\n" if number % 2 else b""))
            if number % 4 == 3:
                assert scraper.recv(100).startswith(b"HTTP/1.")
        gevent.sleep(0.02)
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics}/metrics", timeout=5) as answer:
        page = answer.read().decode()

    assert "harness_open_streams{" in page
    assert 0 == run.process.wait()
    run.ended_well()
    assert {"completed"} == run.outcomes.keys() - {"aborted"}
    assert [] == [
        line for line in run.process.complaints if "draining" not in line and line.startswith("harness")
    ]
    assert "BrokenPipe" not in run.process.err
    assert "ConnectionReset" not in run.process.err


def test_a_generator_that_is_stopped_for_three_seconds_blames_nobody(load, gateway_on, free_port):
    gateway = gateway_on(free_port, "--tokens", "100")
    run = load(gateway.url, "-u", "20", "-r", "100", "-t", "4s", "--metrics-port", "0").spawned()
    run.process.signal(signal.SIGSTOP)
    gevent.sleep(3)  # every limit of the profile is shorter than this
    run.process.signal(signal.SIGCONT)

    assert 0 == run.process.wait()
    run.ended_well()
    assert {"completed"} == run.outcomes.keys() - {"aborted"}
    assert [] == [r for r in run.records if r["stall"] or r["soft_stalls"]]
    assert max(r["progress"]["gap_max_s"] or 0 for r in run.records) < 2.5
    assert max(r["lag_max_s"] for r in run.records) > 1.0
    assert "run INVALID" in run.process.out
    assert not run.summary["validity"]["valid"]


def test_without_descriptors_streams_fail_with_the_reason_and_the_run_goes_on(load, gateway_on, free_port):
    gateway = gateway_on(free_port)
    limited = ("sh", "-c", 'ulimit -n 60; exec "$@"', "-", *HARNESS)
    run = load(gateway.url, "-u", "80", "-r", "100", "-t", "2s", "--metrics-port", "0", command=limited)

    assert 0 == run.process.wait()
    run.ended_well()
    assert {"completed", "connect_error"} == run.outcomes.keys() - {"aborted"}
    assert min(run.outcomes["completed"], run.outcomes["connect_error"]) > 30
    (message,) = {r["error"]["message"] for r in run.records if r["outcome"] == "connect_error"}
    assert "ulimit -n" in message
    assert message[:40] in " ".join(run.process.out.split())

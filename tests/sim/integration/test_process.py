"""The process: its ready line, its end, what it says when it cannot start."""

import signal
import socket
import subprocess
import sys
import time

import pytest


def test_the_ready_line_says_who_where_and_how(launch):
    sim = launch("--gateway", "hopbase", "--mix", "ok=90,stall-mid=4", "--seed", "7", "--time-scale", "0.02")

    assert ("hopbase", "ok=90,stall-mid=4", "7", "0.02") == (sim.ready[1], *sim.ready.group(3, 4, 5))


def test_defaults_of_the_ready_line(launch):
    sim = launch()

    assert ("generic", "ok=100", "1", "1") == (sim.ready[1], *sim.ready.group(3, 4, 5))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly_with_open_streams_in_the_log(launch, number):
    sim = launch("--tokens", "1000")
    with sim.connect() as sock:
        sock.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: s\r\nContent-Length: 15\r\n\r\n"
            + b'{"stream":true}'
        )
        while b'"content":"The ' not in sock.recv(65536):
            pass
        code = sim.stop(number)

    assert 0 == code
    assert "" == sim.errors()
    (line,) = sim.truth()
    assert ("aborted", False) == (line["outcome"], line["client_left"])
    assert 1 <= line["tokens"]


def test_a_busy_port_is_one_line_and_exit_2():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-m", "harness.sim", "--port", str(port)],
            capture_output=True,
            text=True,
            check=False,
        )

    assert (2, "") == (done.returncode, done.stdout)
    assert 1 == done.stderr.count("\n")
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in done.stderr


def test_an_address_that_is_none_is_one_line_about_the_address():
    done = subprocess.run(
        [sys.executable, "-m", "harness.sim", "--host", "1.2.3.4.5"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (2, "") == (done.returncode, done.stdout)
    assert done.stderr == (
        "harness sim: cannot listen on 1.2.3.4.5:8000: no such address; "
        "pass one of this machine's with --host, as in 127.0.0.1\n"
    )


def test_it_ends_when_its_parent_dies(launch):
    parent = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    sim = launch("--parent", str(parent.pid))
    time.sleep(0.2)
    alive = sim.process.poll() is None
    parent.kill()
    parent.wait()

    assert alive
    assert 0 == sim.process.wait(5)


def test_the_log_is_on_disk_within_about_a_second(launch):
    sim = launch("--tokens", "1", "--first-token", "1ms")
    sim.ask()
    end = time.monotonic() + 3.0
    while not sim.truth_path.read_text() and time.monotonic() < end:
        time.sleep(0.05)

    assert sim.truth_path.read_text().endswith("}\n")

"""What cannot work is refused before any load: one line, a non-zero exit, nothing left behind."""

import socket
import sys

import gevent
import pytest

QUICK = ("--headless", "--metrics-port", "0", "-u", "1", "-t", "1s")


def refused(process, code=2):
    """Wait for the end of *process* and return its one line."""
    assert code == process.wait()
    (line,) = process.complaints
    assert "Traceback" not in process.out + process.err
    return line


def test_wrong_options_end_the_process_before_any_load(launch, tmp_path):
    started = [
        (launch("run", *QUICK, "--host", "sim", *arguments), words)
        for arguments, words in (
            (["--gateway", "hopbas"], "did you mean hopbase?"),
            (["--time-scale", "x"], "invalid float value"),
            (["-t", "5x"], "Invalid time span"),
            (["--sim-mix", "stal-mid=1"], "--sim-mix: unknown fault 'stal-mid'"),
        )
    ]
    for process, words in started:
        assert words in refused(process)
    assert not list(tmp_path.glob("results/*"))


def test_no_host_and_no_place_for_results(launch, tmp_path):
    (tmp_path / "file").write_text("")
    nobody = launch("run", *QUICK)
    nowhere = launch("run", *QUICK, "--host", "sim", "--results", "file/results")

    assert "harness: no host: pass --host URL, or --host sim for the simulated gateway" == refused(nobody)
    assert "choose a writable folder with --results DIR" in refused(nowhere)


@pytest.mark.parametrize(("arguments", "words"), [
    (("-u", "-3"), "harness: --users: expected a whole number of at least 0, got -3"),
    (("--metrics-port", "99999"), "harness: --metrics-port: expected a whole number up to 65535, got 99999"),
])  # fmt: skip
def test_numbers_that_cannot_be(arguments, words, launch):
    process = launch("run", *QUICK, "--host", "sim", *arguments)

    assert words == refused(process)


def test_busy_ports_are_named_with_the_option_that_helps(launch, free_port):
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", free_port))
        busy.listen()
        metrics = launch("run", "--headless", "--host", "sim", "--metrics-port", free_port)
        web = launch("run", "--host", "sim", "--web-host", "127.0.0.1", "--web-port", free_port,
                     "--metrics-port", "0")  # fmt: skip
        demo = launch("--web-port", free_port, command=(sys.executable, "-m", "harness.demo"))

        assert "--metrics-port" in refused(metrics)
        assert "--web-port" in refused(web)
        assert f"port {free_port} for the web UI is in use" in refused(demo)


def test_no_simulator_outlives_a_refused_start(launch, alive, until):
    process = launch("run", *QUICK, "--host", "sim", "--connect-to", "127.0.0.1:1")
    children = set()
    while process.popen.poll() is None:
        children.update(process.children)
        gevent.sleep(0.01)

    assert "preflight chat (sim): " in refused(process)
    assert children
    until(lambda: not any(alive(pid) for pid in children))

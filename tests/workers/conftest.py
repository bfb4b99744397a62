"""Runs over several processes, as a user starts them, with the simulator's truth log beside."""

import itertools
import json
import os
import signal
import socket
from pathlib import Path

import gevent
import pytest

SMALL = (
    "--gateway", "hopbase", "--time-scale", "0.02", "--metrics-linger", "0s", "--only-summary",
    "--loglevel", "WARNING",
)  # fmt: skip
MIX = "ok=70,stall-mid=10,error-mid=10,truncate=10"


class Fleet:
    """A master with workers, its results and the ports that it holds."""

    def __init__(self, process, folder, ports):
        self.process, self.results, self.ports = process, folder / "results", ports

    @property
    def workers(self):
        """The pids of the forked workers: the children that are not the simulator."""
        return [pid for pid in self.process.children if "harness.sim" not in command_of(pid)]

    @property
    def everybody(self):
        return [self.process.popen.pid, *self.process.children]

    @property
    def records(self):
        path = self.results / "latest" / "attempts.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def summary(self):
        return json.loads((self.results / "latest" / "summary.json").read_text())

    @property
    def truth(self):
        path = self.results.with_name("truth.jsonl")
        return [json.loads(line) for line in path.read_text().splitlines()]


def command_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def is_free(port):
    """Whether nothing listens on *port*; what a closed connection leaves behind does not count."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@pytest.fixture
def fleet(launch, free_ports, tmp_path):
    """Start `harness run` with a master port and a metrics port of its own."""
    started: list[Fleet] = []
    number = itertools.count()  # launching takes a while, in which another may be launched

    def start(*arguments, processes=2, headless=True, host="sim"):
        ports = free_ports(2)
        folder = tmp_path / f"fleet-{next(number)}"
        folder.mkdir(exist_ok=True)
        sim = ("--sim-truth", folder / "truth.jsonl") if host == "sim" else ()
        process = launch(
            "run", *(("--headless",) if headless else ()), "--host", host, *SMALL,
            *(("--processes", processes) if processes else ()), "--results", folder / "results",
            "--master-bind-host", "127.0.0.1", "--master-bind-port", ports[0], "--master-port", ports[0],
            "--metrics-port", ports[1], *sim, *arguments,
        )  # fmt: skip
        made = Fleet(process, folder, ports)
        started.append(made)
        return made

    yield start
    for made in started:
        for pid in made.everybody:
            if pid != made.process.popen.pid or made.process.popen.poll() is None:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass


@pytest.fixture
def together():
    """Play scenarios side by side: most of their time is spent waiting."""

    def play(*scenarios):
        gevent.joinall([gevent.spawn(scenario) for scenario in scenarios], raise_error=True)

    return play


@pytest.fixture
def nothing_left(until, alive):
    """Assert that every process of a fleet is gone and every port free, within a few seconds."""

    def check(pids, ports, timeout_s=8.0):
        until(lambda: not any(alive(pid) for pid in pids), timeout_s)
        until(lambda: all(is_free(port) for port in ports), timeout_s)

    return check

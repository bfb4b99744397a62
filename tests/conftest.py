# First of all imports, as in the entry points: Locust patches ssl, which every HTTP client below imports.
import locust  # noqa: F401

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import gevent
import pytest

# Hypothesis' pytest plugin imports it at the end of every session, and then a package that registers
# itself there (trio, by way of selenium) warns, which would be an error. Here it may warn.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import hypothesis  # noqa: F401

from tests.ports import find_free_port, find_free_ports

REPOSITORY = Path(__file__).parents[1]
HARNESS = (sys.executable, "-m", "harness")


class Process:
    """A command of ours in a process group of its own; its output is read as it comes."""

    def __init__(self, arguments, cwd, env):
        self.pid_of_test = os.getpid()
        self.popen = subprocess.Popen(
            [str(a) for a in arguments],
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.out, self.err = "", ""
        self._readers = [
            gevent.spawn(self._read, "out", self.popen.stdout),
            gevent.spawn(self._read, "err", self.popen.stderr),
        ]

    def _read(self, name, pipe):
        for line in pipe:
            setattr(self, name, getattr(self, name) + line)
        pipe.close()

    def wait_for(self, words, timeout_s=30.0):
        """Wait until the output holds *words*, or fail with all of it."""
        deadline = time.monotonic() + timeout_s
        while words not in self.out + self.err:
            if time.monotonic() > deadline or (self.popen.poll() is not None and not self._readers[0]):
                pytest.fail(f"no {words!r} in:\n{self.out}\n{self.err}")
            gevent.sleep(0.02)

    def wait(self, timeout_s=60.0):
        """Wait for the end and return the exit code."""
        deadline = time.monotonic() + timeout_s
        while self.popen.poll() is None:
            if time.monotonic() > deadline:
                pytest.fail(f"still running after {timeout_s} s:\n{self.out}\n{self.err}")
            gevent.sleep(0.02)
        gevent.joinall(self._readers, timeout=5)
        return self.popen.returncode

    def signal(self, number):
        self.popen.send_signal(number)

    @property
    def children(self):
        """The pids of the processes that this one started."""
        tasks = Path(f"/proc/{self.popen.pid}/task").glob("*/children")
        return [int(pid) for task in tasks for pid in task.read_text().split()]

    @property
    def complaints(self):
        """The lines on stderr that are not Locust's own log."""
        return [line for line in self.err.splitlines() if line and not line.startswith("[")]

    def end(self):
        if self.popen.poll() is None:
            os.killpg(self.popen.pid, signal.SIGKILL)
            self.popen.wait()
        gevent.joinall(self._readers, timeout=5)


def launcher(folder):
    """Yield what starts `harness ARGUMENTS…` (or, with *command*, another program) in *folder*."""
    started = []

    def start(*arguments, command=HARNESS, cwd=folder, **env):
        process = Process([*command, *arguments], cwd, os.environ | {"PYTHONPATH": str(REPOSITORY)} | env)
        started.append(process)
        return process

    yield start
    for process in started:
        process.end()


@pytest.fixture
def launch(tmp_path):
    yield from launcher(tmp_path)


@pytest.fixture(scope="module")
def launch_once(tmp_path_factory):
    """As `launch`, for a process that all tests of a module share."""
    yield from launcher(tmp_path_factory.mktemp("shared"))


@pytest.fixture
def free_ports():
    return find_free_ports


@pytest.fixture
def free_port():
    return find_free_port()


@pytest.fixture(scope="module")
def shared_port():
    return find_free_port()


class ScriptedGateway:
    """What `scripted_gateway.py` plays: `url("401")` answers 401; `requests` is what it was asked."""

    def __init__(self):
        self._process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("scripted_gateway.py")],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self._reports = self._process.stdout
        self.port = int(self._reports.readline())
        self.requests = []
        self._reader = gevent.spawn(self._read)

    def _read(self):
        for line in self._reports:
            self.requests.append(json.loads(line))
        self._reports.close()

    def url(self, how="ok"):
        return f"http://127.0.0.1:{self.port}/{how}"

    def asked(self, prefix=""):
        """The requests so far whose id begins with *prefix*; those of a preflight only if asked for."""
        gevent.sleep(0.05)
        ids = [(r["headers"].get("x-client-request-id", ""), r) for r in self.requests]
        return [r for i, r in ids if i.startswith(prefix) and (prefix or not i.startswith("preflight-"))]

    def end(self):
        self._process.terminate()
        self._process.wait()
        self._reader.join(timeout=5)


@pytest.fixture
def gateway():
    running = ScriptedGateway()
    yield running
    running.end()


def wait_until(condition, timeout_s=10.0):
    """Wait until *condition* holds; the test fails if it never does."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        gevent.sleep(0.02)


def is_alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.fixture
def until():
    return wait_until


@pytest.fixture
def alive():
    return is_alive


@pytest.fixture
def records():
    """Read the records of a results folder: attempts of its newest run."""

    def read(results, run="latest"):
        path = Path(results) / run / "attempts.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]

    return read


@pytest.fixture
def options():
    """Parse a command line with Locust's options and ours, without any file of options."""
    from locust.argument_parser import get_empty_argument_parser, setup_parser_arguments

    from harness.swarm.options import add_options

    def parse(*arguments):
        parser = get_empty_argument_parser(default_config_files=[])
        setup_parser_arguments(parser)
        add_options(parser)
        return parser.parse_args(list(arguments))

    return parse


@pytest.fixture
def settings(options):
    """Return the settings that a command line makes, by default against the simulator."""
    from harness.swarm.configure import settings_of

    def make(*arguments, host="sim", built_in=("chat", "responses", "messages")):
        url = "http://127.0.0.1:1" if host == "sim" else None
        return settings_of(options(*arguments), host, url, built_in)

    return make

"""A simulated gateway as a process of its own, and a client that sees raw bytes."""

import json
import re
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

READY = re.compile(
    r"sim:(\S+) ready on http://127\.0\.0\.1:(\d+) \(mix (\S+), seed (\d+), time scale (\S+)\)\n"
)
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}


@dataclass
class Sim:
    """A running simulator."""

    process: subprocess.Popen[str]
    port: int
    ready: re.Match[str]
    truth_path: Path
    error_path: Path

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def stop(self, number=signal.SIGTERM):
        """Stop it and return the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(10)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code

    def truth(self):
        """Stop it and return the lines of its truth log."""
        assert 0 == self.stop()
        return [json.loads(line) for line in self.truth_path.read_text().splitlines()]

    def errors(self):
        """Return what it said on stderr."""
        return self.error_path.read_text()

    def connect(self):
        sock = socket.create_connection(("127.0.0.1", self.port), timeout=10)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def ask(self, protocol="chat", *, path=None, headers=(), until=None, within=10.0, **body):
        """Send one request and read to the end of the connection, or until *until* is there.

        Returns status, headers, body (unchunked), raw bytes and how it ended: ``end`` (the body's proper
        end), ``closed``, ``reset``, ``left`` (*until* was found, and the client closed).
        """
        data = {
            "model": "m",
            "stream": True,
            "messages": [{"role": "user", "content": "hello there"}],
            **body,
        }
        with self.connect() as sock:
            sock.sendall(render(path or PATHS[protocol], json.dumps(data).encode(), dict(headers)))
            return read_answer(sock, until, within)


def render(path, body, headers=None, method="POST"):
    lines = [f"{method} {path} HTTP/1.1", "Host: sim", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def read_answer(sock, until=None, within=10.0):
    raw, how, end = b"", "", time.monotonic() + within
    while not how:
        if until is not None and until in raw:
            how = "left"
        elif complete(raw):
            how = "end"
        else:
            assert time.monotonic() < end, f"nothing more after {raw[-300:]!r}"
            try:
                data = sock.recv(1 << 20)
            except ConnectionResetError:
                how = "reset"
            else:
                raw += data
                how = how if data else "closed"
    head, _, rest = raw.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines) if status else {}
    body = unchunked(rest) if headers.get("transfer-encoding") == "chunked" else rest
    return SimpleNamespace(
        status=int(status.split()[1]) if status.startswith("HTTP") else None,
        headers=headers, body=body, raw=raw, how=how, text=body.decode("utf-8", "replace"),
    )  # fmt: skip


def complete(raw):
    head, separator, rest = raw.partition(b"\r\n\r\n")
    if not separator:
        return False
    if length := re.search(rb"content-length: (\d+)", head.lower()):
        return len(rest) >= int(length[1])
    return rest.endswith(b"\r\n0\r\n\r\n") or rest == b"0\r\n\r\n"


def unchunked(rest):
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size.split(b";")[0] or b"0", 16)
        body, rest = body + rest[:length], rest[length + 2 :]
        if length == 0:
            break
    return body


@pytest.fixture(scope="module")
def launch(tmp_path_factory):
    """Return a starter of simulators; all are stopped after the module."""
    started = []

    def start(*arguments):
        folder = tmp_path_factory.mktemp("sim")
        truth, errors = folder / "truth.jsonl", folder / "stderr.txt"
        command = [sys.executable, "-m", "harness.sim", "--port", "0", "--truth", str(truth), *arguments]
        with errors.open("w") as file:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=file, text=True)
        assert process.stdout is not None
        line = process.stdout.readline()
        ready = READY.fullmatch(line)
        assert ready, (line, errors.read_text())
        started.append(Sim(process, int(ready[2]), ready, truth, errors))
        return started[-1]

    yield start
    for sim in started:
        sim.stop()


@pytest.fixture(scope="module")
def hopbase(launch):
    """HopBase at a hundredth of its durations, with short answers."""
    return launch("--gateway", "hopbase", "--time-scale", "0.01", "--tokens", "6", "--gap", "5ms",
                  "--first-token", "20ms")  # fmt: skip


@pytest.fixture
def request_bytes():
    """The renderer of raw requests."""
    return render


@pytest.fixture
def read():
    """The reader of raw answers."""
    return read_answer


@pytest.fixture
def paths():
    """The path of each protocol."""
    return PATHS

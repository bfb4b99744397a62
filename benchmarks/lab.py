"""What the benchmarks share: a simulated gateway on one core, a client on the other, and the truth."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SERVER_CORE, CLIENT_CORE = 0, 1
FIRST_TOKEN_S, GAP_S, TOKENS = 0.2, 0.02, 200
STREAM_S = FIRST_TOKEN_S + GAP_S * TOKENS

PYTHON = sys.executable
BIN = Path(PYTHON).parent


def users_for(events_per_s: int) -> int:
    """Return how many users, each streaming without a pause, offer *events_per_s*."""
    return round(events_per_s * STREAM_S / TOKENS)


@dataclass
class Server:
    """A running simulated gateway."""

    url: str
    truth: Path
    pid: int

    def truths(self) -> dict[str, dict[str, float]]:
        """Return what the server really did, by request; call after it has stopped."""
        return {line["request"]: line for line in map(json.loads, self.truth.open()) if line["request"]}


@contextmanager
def server(*options: str, core: int = SERVER_CORE) -> Iterator[Server]:
    """Run a simulated gateway with an exact schedule on *core* for the block."""
    with tempfile.TemporaryDirectory() as folder:
        truth = Path(folder) / "truth.jsonl"
        command = [
            PYTHON, "-m", "harness.sim", "--port", "0", "--truth", str(truth), "--parent", str(os.getpid()),
            "--first-token", f"{FIRST_TOKEN_S}s", "--gap", f"{GAP_S * 1000:g}ms", "--tokens", str(TOKENS),
            *options,
        ]  # fmt: skip
        process = subprocess.Popen([*_on(core), *command], stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r"https?://\S+", line)
            if found is None:
                raise SystemExit(f"the simulated gateway did not start: {line!r}")
            running = Server(found[0], truth, process.pid)
            yield running
        finally:
            process.terminate()
            process.wait()
            kept = Path(tempfile.gettempdir()) / f"truth-{process.pid}.jsonl"
            if truth.exists():
                truth.replace(kept)
                running.truth = kept


@dataclass
class Cost:
    """What a client process cost as a whole."""

    cpu_s: float
    wall_s: float
    peak_mb: float
    stdout: str


def client(
    command: list[str], *, core: int = CLIENT_CORE, while_running: Callable[[int], None] | None = None
) -> Cost:
    """Run *command* on *core* until it ends and return its cost, start-up included."""
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen([*_on(core), *command], stdout=out, stderr=err)
        if while_running is not None:
            while_running(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        text = out.read()
        if process.returncode not in (0, 1):
            raise SystemExit(f"{command[0]} ended with {process.returncode}: {err.read()[-2000:]}")
    return Cost(usage.ru_utime + usage.ru_stime, time.monotonic() - began, usage.ru_maxrss / 1024, text)


def quantile(values: list[float], q: float) -> float:
    """Return the *q* quantile of *values* (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))] if ordered else float("nan")


def raise_limits() -> None:
    """Allow as many descriptors as the system lets this process have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _on(core: int) -> list[str]:
    """Return what makes a command run on *core*."""
    return ["taskset", "-c", str(core)]

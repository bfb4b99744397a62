"""What a second worker brings: events per CPU second of two workers against one's, in one run.

Each worker drives the same load, so that two drive twice as much. Gateway and master run on one core, all
workers on the other. Events are those of the records, CPU is the workers' from the moment at which users
start to their end: start-up is left out. Bound: two workers do at least 0.9 of one's events per CPU second.
It runs one, two, one, two, … workers, and the median of the pairs' ratios is what counts.

    python benchmarks/bench_workers.py [--events 8000] [--seconds 15] [--pairs 3]
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil
from lab import CLIENT_CORE, PYTHON, SERVER_CORE, server, users_for

BOUND = 0.9

# How long processes may take to start.
START_S = 30.0


@dataclass(frozen=True)
class Measured:
    """Events and CPU seconds of all workers of one run, which lasted so long."""

    events: int
    cpu_s: float
    seconds: float

    @property
    def per_cpu_second(self) -> float:
        """Return how many events a second of the workers' CPU brought."""
        return self.events / self.cpu_s


def free_ports(number: int) -> list[int]:
    """Return ports that are free now."""
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [int(probe.getsockname()[1]) for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def start(core: int, *arguments: object) -> subprocess.Popen[bytes]:
    """Run ``harness run`` with *arguments* on *core*."""
    return subprocess.Popen(
        [PYTHON, "-m", "harness", "run", "--loglevel", "ERROR", *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),  # noqa: PLW1509 - no threads here
    )


def has_users(port: int) -> bool:
    """Whether the master's exporter knows of users."""
    try:
        text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
    except OSError:
        return False
    return any(line.startswith("harness_users ") and line.split()[1] != "0.0" for line in text.splitlines())


def cpu_so_far(processes: list[subprocess.Popen[bytes]]) -> float:
    """Return the CPU time of *processes*."""
    times = [psutil.Process(process.pid).cpu_times() for process in processes]
    return sum(one.user + one.system for one in times)


def cpu_at_the_end(process: subprocess.Popen[bytes]) -> float:
    """Wait for *process* and return all its CPU time."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def measure(workers: int, events: int, seconds: float) -> Measured:
    """Let *workers* drive *events* per second each for *seconds*."""
    port, metrics = free_ports(2)
    with tempfile.TemporaryDirectory() as folder, server() as gateway:
        users = users_for(events) * workers
        master = start(
            SERVER_CORE, "--master", "--headless", "--host", gateway.url, "--protocols", "chat",
            "--model", "m", "-u", users, "-r", users, "-t", f"{seconds:g}s", "--expect-workers", workers,
            "--results", folder,
            "--master-bind-host", "127.0.0.1", "--master-bind-port", port, "--metrics-port", metrics,
            "--metrics-linger", "0s", "--stop-timeout", "1", "--max-tokens", "0",
        )  # fmt: skip
        drivers = [
            start(CLIENT_CORE, "--worker", "--master-host", "127.0.0.1", "--master-port", port)
            for _ in range(workers)
        ]
        deadline = time.monotonic() + START_S
        while not has_users(metrics):
            if time.monotonic() > deadline or master.poll() is not None:
                raise SystemExit("the run did not start")
            time.sleep(0.05)
        before = cpu_so_far(drivers)
        cpu_s = sum(cpu_at_the_end(driver) for driver in drivers) - before
        master.wait()
        records = Path(folder) / "latest" / "attempts.jsonl"
        counted = sum(json.loads(line)["events"] for line in records.open())
    return Measured(counted, cpu_s, seconds)


def main() -> int:
    """Print a line per measurement and the ratio of each pair; 1 if their median is below the bound."""
    parser = argparse.ArgumentParser(description="what a second worker brings")
    parser.add_argument("--events", type=int, default=8000, help="per second and worker")
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--pairs", type=int, default=3)
    chosen = parser.parse_args()
    ratios = []
    print(f"{'workers':>7} {'events/s':>10} {'of a core':>10} {'µs/event':>9} {'events/CPU s':>13}")
    for _ in range(chosen.pairs):
        found = {}
        for workers in (1, 2):
            one = found[workers] = measure(workers, chosen.events, chosen.seconds)
            print(
                f"{workers:>7} {one.events / one.seconds:>10,.0f} {one.cpu_s / one.seconds:>10.0%} "
                f"{1e6 / one.per_cpu_second:>9.1f} {one.per_cpu_second:>13,.0f}",
                flush=True,
            )
        ratios.append(found[2].per_cpu_second / found[1].per_cpu_second)
        print(f"two workers / one, events per CPU second: {ratios[-1]:.2f}", flush=True)
    ratio = median(ratios)
    print(f"median of {len(ratios)}: {ratio:.2f} (bound: {BOUND})")
    return 0 if ratio >= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())

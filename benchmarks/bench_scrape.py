"""What a scrape costs, and what it costs the streams: at 10,000 series, and with 5,000 open streams.

The exporter runs in a process patched by gevent, as in a load test. Another process sends that one a stamp
every millisecond: how late it is read is the delay that a stream would have. A third scrapes. Bounds: a
scrape within 50 ms, no read delayed by more than 10 ms; the same delays without scrapes stand beside them,
because on a shared machine they are not zero. Writing a moment of `metrics.jsonl` (every 5 s of a run) holds
up reads too, and is measured alike. On a busy machine: chrt -f 1 python benchmarks/bench_scrape.py

    python benchmarks/bench_scrape.py [--scrapes 40] [--series 10000] [--streams 5000]
"""

from __future__ import annotations

import locust  # noqa: F401  # patches the standard library, as in a load test

import argparse
import gc
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import gevent

from harness.observe import families as f
from harness.observe.aggregate import Aggregate
from harness.observe.exporter import serve
from harness.observe.exposition import text
from harness.observe.history import History
from harness.observe.labels import Labels
from harness.observe.state import Nodes, Observed, RunState

HISTOGRAMS = (f.HEADERS, f.FIRST_BYTE, f.FIRST_TOKEN, f.FIRST_CONTENT, f.INTER_TOKEN, f.STREAM_DURATION)

STAMPER = """
import socket, struct, sys, time
link = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
end = time.monotonic() + float(sys.argv[2])
try:
    while time.monotonic() < end:
        link.sendall(struct.pack("d", time.monotonic()))
        time.sleep(0.001)
except OSError:
    pass
"""

SCRAPER = """
import sys, time, urllib.request
for _ in range(int(sys.argv[2])):
    began = time.perf_counter()
    size = len(urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/metrics").read())
    print(time.perf_counter() - began, size, flush=True)
    time.sleep(0.1)
"""


class Open:
    """An open stream, as little of a session as the exporter reads."""

    phase, slow_after_s, last_progress = "mid_stream", 90.0, None
    keepalive_gaps: tuple[tuple[str, float], ...] = ()
    thinking_s = dead_s = 0.0
    uncertainties: tuple[float, ...] = ()

    def __init__(self, now: float) -> None:
        self.opened = self.t0 = self.last_byte = now


def with_series(wanted: int) -> Aggregate:
    """Return an aggregate that is exposed in at least *wanted* series."""
    aggregate = Aggregate()
    aggregate.begin_run("bench")
    for number in range(100):
        labels = Labels("bench", "chat", "generic", f"scenario-{number // 90}", f"model-{number % 90}")
        run = aggregate._run("bench")
        assert run is not None
        for family in HISTOGRAMS:
            run.totals.histogram(family, labels).add_many([0.01 * k for k in range(100)])
        for outcome in ("completed", "stalled", "error_event"):
            run.totals.count(f.ATTEMPTS, (*labels, outcome, "stop", "200"), 1000)
        if series_of(aggregate) >= wanted:
            return aggregate
    raise SystemExit(f"cannot make {wanted} series")


def with_streams(wanted: int) -> Aggregate:
    """Return an aggregate with *wanted* open streams."""
    aggregate = Aggregate()
    for number in range(wanted):
        labels = Labels("bench", ("chat", "responses", "messages")[number % 3], "generic", "default", "m")
        aggregate.attempt_started(labels, Open(time.monotonic()))  # type: ignore[arg-type]
    return aggregate


def observed(aggregate: Aggregate) -> Observed:
    states = [RunState("bench", "generic", "0", False, 0.0)]
    return Observed(aggregate.snapshot(time.monotonic()), states, Nodes(users=1))


def series_of(aggregate: Aggregate) -> int:
    return sum(not line.startswith("#") for line in text(observed(aggregate), openmetrics=False).splitlines())


@dataclass
class Delays:
    """How late stamps were read, in ms."""

    median: float
    worst: float


def delays_during(what: Callable[[], None]) -> Delays:
    """Return how late a stream is read while *what* goes on."""
    late: list[float] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sender = subprocess.Popen([sys.executable, "-c", STAMPER, str(listener.getsockname()[1]), "120"])
        link, _ = listener.accept()

        def read() -> None:
            pending = b""
            while data := link.recv(4096):
                now = time.monotonic()
                pending += data
                whole = len(pending) // 8 * 8
                late.extend(now - stamp for (stamp,) in struct.iter_unpack("d", pending[:whole]))
                pending = pending[whole:]

        reader = gevent.spawn(read)
        gevent.sleep(0.3)
        late.clear()
        what()
        sender.terminate()
        sender.wait()
        reader.join(timeout=2)
        link.close()
    late.sort()
    return Delays(1000 * late[len(late) // 2], 1000 * late[-1])


def measure(name: str, aggregate: Aggregate, scrapes: int) -> bool:
    """Print a row and return whether it is within the bounds."""
    exporter = serve(lambda: observed(aggregate), port=0)
    took: list[float] = []

    def scrape() -> None:
        command = [sys.executable, "-c", SCRAPER, str(exporter.port), str(scrapes)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as scraper:
            assert scraper.stdout is not None
            took.extend(1000 * float(line.split()[0]) for line in scraper.stdout)

    def remember() -> None:
        with tempfile.TemporaryDirectory() as folder:
            for number in range(scrapes):
                history = History(Path(folder) / str(number), "bench", lambda: observed(aggregate), time.time)
                history.tick()
                gevent.sleep(0.1)

    gc.collect()
    gc.freeze()  # as the harness does when its process is ready
    idle = delays_during(lambda: gevent.sleep(scrapes * 0.1))
    busy = delays_during(scrape)
    moments = delays_during(remember)
    exporter.close()
    took.sort()
    median, p95 = took[len(took) // 2], took[int(len(took) * 0.95)]
    print(
        f"{name:<22} {series_of(aggregate):>7,} {median:>9.1f} {p95:>9.1f} {idle.worst:>11.1f}"
        f" {busy.worst:>11.1f} {moments.worst:>11.1f}"
    )
    return p95 <= 50 and busy.worst <= 10


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--scrapes", type=int, default=40)
    parser.add_argument("--series", type=int, default=10_000)
    parser.add_argument("--streams", type=int, default=5_000)
    args = parser.parse_args()
    print(f"{os.cpu_count()} cores; ms; load {os.getloadavg()[0]:.1f}")
    print(f"{'':<22} {'series':>7} {'scrape':>9} {'scrape':>9} {'read delay, worst':>35}")
    print(f"{'':<22} {'':>7} {'median':>9} {'p95':>9} {'idle':>11} {'scraped':>11} {'metrics.jsonl':>11}")
    good = [
        measure(f"{args.series:,} series", with_series(args.series), args.scrapes),
        measure(f"{args.streams:,} open streams", with_streams(args.streams), args.scrapes),
    ]
    print("within 50 ms and 10 ms" if all(good) else "beyond 50 ms or 10 ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())

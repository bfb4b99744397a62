"""CPU per event and error of arrival times: the harness in a real Locust process against httpx and aiohttp.

Server and client have a core each. The server is the simulated gateway with an exact schedule (first token
after 200 ms, then 200 tokens 20 ms apart); its truth log says when it wrote the first token, and the error is
how much later the client says that it arrived. CPU is the client's whole process, start-up included.

Users start one after the other over the length of a stream, so that tokens come evenly, as they do where
nobody arranged them. With --in-step they all start at once, and every 20 ms all tokens come together. Errors
are those of streams that began after the first ten seconds (a load's `--warmup`): connecting and filling
caches costs every client much at once. The CPU is that of everything.

    python benchmarks/bench_transport.py [--seconds 60] [--only harness,aiohttp,open] [--rates 5000,20000]
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import tempfile
import threading
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import bench_event
from lab import BIN, PYTHON, STREAM_S, client, quantile, raise_limits, server, users_for

HERE = Path(__file__).parent
LOCUSTFILE = str(HERE.parent / "locustfile.py")
SPREAD = str(HERE / "spread_locustfile.py")
METRICS_PORT = 9746
HTTPS_RATE = 10_000
WARM_UP_S = 10.0

Truth = dict[str, float]


@dataclass
class Row:
    """One line of the table."""

    name: str
    offered: int
    streams: int
    seconds: float
    events: int
    cpu_s: float
    wall_s: float
    peak_mb: float
    errors_ms: list[float]
    note: str = ""

    def line(self) -> str:
        """Return the row as text."""
        per_event = self.cpu_s / self.events * 1e6 if self.events else float("nan")
        return (
            f"{self.name:<22}{self.offered:>9,}{self.events / self.seconds:>11,.0f}{per_event:>9.1f}"
            f"{self.cpu_s / self.wall_s * 100:>7.0f}%{self.peak_mb:>8.0f}"
            f"{quantile(self.errors_ms, 0.5):>10.2f}{quantile(self.errors_ms, 0.99):>10.2f}  {self.note}"
        )


HEADER = (
    f"{'client':<22}{'offered/s':>9}{'events/s':>11}{'µs/event':>9}{'CPU':>8}{'MB':>8}"
    f"{'err p50':>10}{'err p99':>10}  ms"
)


def judged(truths: dict[str, Truth]) -> dict[str, Truth]:
    """Return those of *truths* that had a first token and began after the warm-up."""
    began = min(truth["sent_at"] for truth in truths.values())
    return {
        request: truth
        for request, truth in truths.items()
        if truth["first_content_s"] is not None and truth["sent_at"] > began + WARM_UP_S
    }


def harness(rate: int, seconds: float, start_s: float, *, tls: tuple[str, ...] = ()) -> Row:
    """Run the harness: a headless Locust process with exporter, records and a scrape each second."""
    users = users_for(rate)
    with tempfile.TemporaryDirectory() as results:
        with server(*(("--tls-cert", tls[0], "--tls-key", tls[1]) if tls else ())) as gateway:
            command = [
                "env", f"SPREAD={users},{start_s:g}",
                str(BIN / "locust"), "-f", SPREAD, "--headless", "--host", gateway.url,
                "--gateway", "generic", "--model", "m", "--protocols", "chat", "--max-tokens", "0",
                "-u", str(users), "-r", str(users), "-t", f"{seconds:g}s", "--results", results,
                "--metrics-port", str(METRICS_PORT), "--metrics-linger", "0s", "--only-summary",
                *(("--ca-file", tls[2]) if tls else ()),
            ]  # fmt: skip
            cost = client(command, while_running=_scrape)
        truths = judged(gateway.truths())
        attempts = Path(results) / "latest" / "attempts.jsonl"
        events, errors = 0, []
        for record in map(json.loads, attempts.open()):
            events += record["events"]
            truth = truths.get(record["request"])
            if truth and record["first_content_s"] is not None:
                arrived = record["sent_at"] + record["first_content_s"]
                errors.append((arrived - truth["sent_at"] - truth["first_content_s"]) * 1e3)
        summary = json.loads((Path(results) / "latest" / "summary.json").read_text())
        reasons = "; ".join(summary["validity"]["reasons"])
        span = summary["duration_s"]
    name = "harness (HTTPS)" if tls else "harness"
    return Row(
        name,
        rate,
        users,
        span,
        events,
        cost.cpu_s,
        cost.wall_s,
        cost.peak_mb,
        errors,
        f"invalid: {reasons}" if reasons else "valid",
    )


def peer(name: str, script: str, rate: int, seconds: float, start_s: float) -> Row:
    """Run a plain client that prints request and arrival of its first token."""
    users = users_for(rate)
    with server() as gateway:
        cost = client([PYTHON, str(HERE / script), gateway.url, str(users), f"{seconds:g}", f"{start_s:g}"])
    truths = judged(gateway.truths())
    errors, events = [], 0
    for line in cost.stdout.splitlines():
        request, value = line.split()
        if request == "events":
            events = int(value)
        elif truth := truths.get(request):
            errors.append((float(value) - truth["sent_at"] - truth["first_content_s"]) * 1e3)
    return Row(name, rate, users, cost.wall_s, events, cost.cpu_s, cost.wall_s, cost.peak_mb, errors)


def open_streams(count: int, seconds: float) -> Row:
    """Hold *count* slow streams open at once: memory and CPU of the harness."""
    with tempfile.TemporaryDirectory() as results:
        with server("--gap", "1s", "--tokens", "1000", "--gateway", "hopbase") as gateway:
            command = [
                str(BIN / "locust"), "-f", LOCUSTFILE, "--headless", "--host", gateway.url,
                "--gateway", "hopbase", "--protocols", "chat", "--max-tokens", "0",
                "-u", str(count), "-r", "500",
                "-t", f"{seconds:g}s", "-s", "1", "--results", results, "--metrics-port", str(METRICS_PORT),
                "--metrics-linger", "0s", "--only-summary",
            ]  # fmt: skip
            cost = client(command, while_running=_scrape)
        attempts = (Path(results) / "latest" / "attempts.jsonl").open()
        events = sum(json.loads(line)["events"] for line in attempts)
        span = json.loads((Path(results) / "latest" / "summary.json").read_text())["duration_s"]
    return Row(
        f"harness, {count:,} open", count, count, span, events, cost.cpu_s, cost.wall_s, cost.peak_mb, []
    )


def https(seconds: float) -> list[Row]:
    """Compare HTTPS with plain HTTP at a rate that the simulated gateway serves encrypted."""
    with tempfile.TemporaryDirectory() as folder:
        key, certificate = f"{folder}/key.pem", f"{folder}/certificate.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
             "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
            check=True, capture_output=True,
        )  # fmt: skip
        plain = harness(HTTPS_RATE, seconds, STREAM_S)
        encrypted = harness(HTTPS_RATE, seconds, STREAM_S, tls=(certificate, key, certificate))
    ratio = (encrypted.cpu_s / encrypted.events) / (plain.cpu_s / plain.events)
    encrypted.note += f" {ratio:.2f}x of plain"
    return [plain, encrypted]


def _scrape(pid: int) -> None:
    """Scrape each second from another thread while the process *pid* runs, as a Prometheus would."""

    def run() -> None:
        while Path(f"/proc/{pid}/stat").exists() and Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z":
            time.sleep(1.0)
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{METRICS_PORT}/metrics", timeout=5).read()
            except OSError:
                continue

    threading.Thread(target=run, daemon=True).start()


def main() -> None:
    """Run what was asked for and print the table as it grows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--in-step", action="store_true", help="all users start at once")
    parser.add_argument("--only", default="harness,httpx,aiohttp,https,open")
    parser.add_argument("--rates", default="5000,20000,56000")
    args = parser.parse_args()
    raise_limits()
    alone_us = bench_event.cost("chat", *bench_event.streams()["chat"])
    print(f"Python {platform.python_version()}, Linux {platform.release()};", end=" ")
    print(f"a session alone takes {alone_us:.2f} µs for an event")
    print(HEADER, flush=True)
    only = args.only.split(",")
    start_s = 0.0 if args.in_step else STREAM_S
    best: dict[int, float] = {}
    for rate in map(int, args.rates.split(",")):
        for name in ("harness", "httpx", "aiohttp"):
            if name not in only:
                continue
            if name == "httpx" and rate > 20_000:
                continue  # saturated long before: the number would only say so again
            row = (
                harness(rate, args.seconds, start_s)
                if name == "harness"
                else peer(name, f"peer_{name}.py", rate, args.seconds, start_s)
            )
            per_event_s = row.cpu_s / max(row.events, 1)
            best.setdefault(rate, per_event_s)
            row.note += f" {per_event_s / best[rate]:.1f}x" if name != "harness" else ""
            print(row.line(), flush=True)
    if "https" in only:
        for row in https(args.seconds):
            print(row.line(), flush=True)
    if "open" in only:
        print(open_streams(5000, 40.0).line(), flush=True)


if __name__ == "__main__":
    main()

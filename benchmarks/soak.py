"""Does anything grow? A long run with every fault mixed, with page and metrics read all the while.

Bounds, all after the first 5 minutes (a shorter soak: its first third): memory of the load generator and of
the simulated gateway grows by less than 1 MB in 10 minutes, its descriptors, greenlets and scrape times do
not grow, and at the end its records are those of the gateway's own log, request by request.

    python benchmarks/soak.py [--minutes 30] [--events 2000] [--write docs/soak.md]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from soak_report import Finding, Series, findings, markdown

HERE = Path(__file__).parent
EACH_S = 5.0

# What a request brings on the mean with this schedule and all faults mixed, measured: events, and seconds.
GAP_S, TOKENS = 0.05, 50
EVENTS_PER_USER_S = 16.0

# Healthy answers are as many as all faults together.
TIME_SCALE = 0.05


@dataclass
class Soak:
    """What was seen from outside, every few seconds."""

    generator: Series = field(default_factory=Series)
    gateway: Series = field(default_factory=Series)
    descriptors: Series = field(default_factory=Series)
    scrapes: Series = field(default_factory=Series)
    page: Series = field(default_factory=Series)


def all_faults() -> str:
    """Return a mix of everything that the simulator can do, half of it healthy."""
    listed = subprocess.run(
        [sys.executable, "-m", "harness", "sim", "--list"], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    faults = [line.split()[0] for line in listed.splitlines() if line and not line.startswith("ok ")]
    return ",".join([f"ok={len(faults)}", *(f"{fault}=1" for fault in faults)])


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def start_gateway(folder: Path) -> tuple[subprocess.Popen[str], str]:
    command = [
        sys.executable, "-m", "harness", "sim", "--port", "0", "--gateway", "hopbase", "--mix", all_faults(),
        "--time-scale", str(TIME_SCALE), "--truth", str(folder / "truth.jsonl"), "--parent", str(os.getpid()),
        "--first-token", "200ms", "--gap", f"{GAP_S * 1000:g}ms", "--tokens", str(TOKENS),
    ]  # fmt: skip
    gateway = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert gateway.stdout is not None
    line = gateway.stdout.readline()
    found = re.search(r"http://\S+", line)
    if found is None:
        raise SystemExit(f"the simulated gateway did not start: {line!r}")
    return gateway, found[0]


def start_generator(
    folder: Path, url: str, args: argparse.Namespace, ports: tuple[int, int]
) -> subprocess.Popen[bytes]:
    users = max(1, round(args.events / EVENTS_PER_USER_S))
    command = [
        sys.executable, "-m", "harness", "run", "-f", str(HERE / "soak_locustfile.py"), "--autostart",
        "--autoquit", "1",
        "--only-summary", "--exit-code-on-error", "0", "--host", url, "--gateway", "hopbase",
        "--time-scale", str(TIME_SCALE), "-u", str(users), "-r", str(max(1, users // 5)),
        "-t", f"{round(args.minutes * 60)}s", "--web-host", "127.0.0.1", "--web-port", str(ports[0]),
        "--metrics-port", str(ports[1]), "--metrics-linger", "0s", "--results", str(folder / "results"),
    ]  # fmt: skip
    log = (folder / "console.txt").open("wb")
    return subprocess.Popen(
        command, env=os.environ | {"SOAK_INSIDE": str(folder / "inside.jsonl")}, stdout=log, stderr=log
    )


def resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def timed(url: str) -> float:
    """Return the milliseconds that a GET takes."""
    began = time.perf_counter()
    with urllib.request.urlopen(url, timeout=30) as answer:
        answer.read()
    return 1000 * (time.perf_counter() - began)


def look(soak: Soak, at: float, pids: tuple[int, int], ports: tuple[int, int]) -> None:
    generator, gateway = pids
    soak.generator.add(at, resident_mb(generator))
    soak.gateway.add(at, resident_mb(gateway))
    soak.descriptors.add(at, len(os.listdir(f"/proc/{generator}/fd")))
    soak.scrapes.add(at, timed(f"http://127.0.0.1:{ports[1]}/metrics"))
    soak.page.add(
        at,
        timed(f"http://127.0.0.1:{ports[0]}/stats/requests")
        + timed(f"http://127.0.0.1:{ports[0]}/harness/live.json"),
    )


def watch(
    soak: Soak, generator: subprocess.Popen[bytes], gateway_pid: int, ports: tuple[int, int], run_s: float
) -> float:
    """Look every few seconds until the run's time is over; return when it began."""
    while generator.poll() is None:
        try:
            timed(f"http://127.0.0.1:{ports[1]}/metrics")
            break
        except OSError:
            time.sleep(0.2)
    began = time.time()
    while generator.poll() is None and time.time() < began + run_s - 2:
        time.sleep(EACH_S)
        try:
            look(soak, time.time() - began, (generator.pid, gateway_pid), ports)
        except OSError as error:
            if generator.poll() is None:
                print(f"a look failed: {error}", file=sys.stderr)
    generator.wait()
    return began


def read_lines(path: Path) -> list[dict[str, Any]]:
    with path.open() as file:
        return [json.loads(line) for line in file]


def compare(folder: Path) -> tuple[Finding, dict[str, float]]:
    """Return whether records and truth are the same, and figures about the run."""
    outcomes: Counter[str] = Counter()
    kept: dict[tuple[str, int], str] = {}
    lines = events = 0
    with (folder / "results" / "latest" / "attempts.jsonl").open() as file:
        for line in file:
            record = json.loads(line)
            lines += 1
            events += record["events"]
            outcomes[record["outcome"]] += 1
            kept[record["request"], record["attempt"]] = record["outcome"]
    truth: dict[tuple[str, int], dict[str, Any]] = {
        (line["request"], line["attempt"]): line for line in read_lines(folder / "truth.jsonl")
    }
    missing, extra = truth.keys() - kept.keys(), kept.keys() - truth.keys()
    other = Counter(
        f"{line['fault']}: {line['outcome']} recorded as {kept[key]}"
        for key, line in truth.items()
        if key in kept and kept[key] not in (line["outcome"], "aborted")
    )
    for words, number in other.most_common(10):
        print(f"  {number} × {words}", file=sys.stderr)
    for key in [*list(missing)[:3], *list(extra)[:3]]:
        print(f"  only on one side: {key} {truth.get(key) or kept.get(key)}", file=sys.stderr)
    good = not missing and not extra and lines == len(kept)
    finding = Finding(
        "records against the gateway's log",
        f"{lines:,} records, {len(truth):,} in the log, {len(missing) + len(extra)} on one side only; "
        f"{sum(other.values())} outcomes differ",
        "the same, request by request",
        good,
    )
    return finding, {"attempts": lines, "events": events, "kinds": len(outcomes)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--events", type=int, default=2000, help="SSE events per second to aim at")
    parser.add_argument("--write", type=Path, help="write the report to this Markdown file too")
    parser.add_argument("--keep", type=Path, help="leave everything in this folder")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        ports = free_port(), free_port()
        gateway, url = start_gateway(folder)
        generator, soak = None, Soak()
        try:
            generator = start_generator(folder, url, args, ports)
            began = watch(soak, generator, gateway.pid, ports, args.minutes * 60)
        finally:
            for process in (generator, gateway):
                if process is not None and process.poll() is None:
                    process.terminate()
                    process.wait()
        if generator.returncode or len(soak.generator.values) < 10:
            print((folder / "console.txt").read_text()[-3000:], file=sys.stderr)
            raise SystemExit(f"the run ended with {generator.returncode}")
        inside = read_lines(folder / "inside.jsonl")
        counted, figures = compare(folder)
    after_s = min(300.0, args.minutes * 60 / 3)
    found = [*findings(vars(soak), inside, began, after_s), counted]
    about = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "command": f"python benchmarks/soak.py --minutes {args.minutes:g} --events {args.events}",
        "system": f"Python {platform.python_version()}, {os.cpu_count()} cores",
        "minutes": args.minutes,
        "events_per_s": figures["events"] / (args.minutes * 60),
        "attempts": figures["attempts"],
        "kinds": figures["kinds"],
        "load": os.getloadavg()[0],
        "rss_mb": median(soak.generator.values),
    }
    text = markdown(about, found)
    print(text)
    if args.write is not None:
        args.write.write_text(text)
    return 0 if all(finding.good for finding in found) else 1


if __name__ == "__main__":
    sys.exit(main())

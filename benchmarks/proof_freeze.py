"""Does a freeze of 1.4 s in a run of 30 s show? (The experiment that wrk2 was written for.)

A simulated gateway stands still for 1.4 s in the middle of each run.

* Open arrivals: what was planned during the freeze waits for its end. 4.7 % of all starts are in it, so the
  p99 from the planned start has to be about 1.1 s: the worst 1 % are the first 0.3 s of the freeze.
* Closed: the same number of requests by a few users, who all wait and send nothing. One slow request each
  is far below 1 %, and the p99 looks as if nothing had been. That is no mistake in the numbers; it is the
  wrong question, and why --arrivals exists.
* Open arrivals while it is the load generator that freezes: from the planned start it shows all the same,
  from the send it does not, and the run is invalid.

    .venv/bin/python benchmarks/proof_freeze.py [--seconds 30]
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

RATE, FREEZE_S = 50, 1.4


def start_simulator() -> tuple[subprocess.Popen[str], str]:
    """Start a gateway with answers of 50 ms, and return it with its URL."""
    command = [
        sys.executable, "-m", "harness.sim", "--port", "0", "--first-token", "40ms", "--gap", "5ms",
        "--tokens", "3",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, next(word for word in process.stdout.readline().split() if word.startswith("http://"))


def run(
    url: str, load: list[str], seconds: int, frozen: str, simulator: subprocess.Popen[str]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Run the load, freeze *frozen* in the middle; returns the records and the summary."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, "-m", "harness", "run", "--headless", "--host", url, "--model", "m", "-t",
            f"{seconds}s", "--results", folder, "--metrics-port", "0", "--only-summary", *load,
        ]  # fmt: skip
        locust = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not (Path(folder) / "latest").exists():
            time.sleep(0.05)
        time.sleep(seconds / 2)
        victim = simulator if frozen == "gateway" else locust
        victim.send_signal(signal.SIGSTOP)
        time.sleep(FREEZE_S)
        victim.send_signal(signal.SIGCONT)
        locust.wait()
        lines = (Path(folder) / "latest" / "attempts.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines], json.loads(
            (Path(folder) / "latest" / "summary.json").read_text()
        )


def p99(values: Iterable[float | None]) -> float:
    """Return the 99th percentile by rank; None is a stream that the end of the run cut before its token."""
    known = sorted(value for value in values if value is not None)
    return known[int(0.99 * len(known))]


def main() -> int:
    """Run the three; exit code 1 if one does not show what it should."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=int, default=30)
    seconds = parser.parse_args().seconds
    expected_s = FREEZE_S - 0.01 * seconds
    open_load = ["--arrivals", "constant", "--rate", str(RATE)]
    # Three users who think 10 ms ask about as often.
    closed_load = ["-u", "3", "-r", "3", "--think", "10ms"]
    failed = False
    for name, load, frozen in (
        ("open, gateway frozen", open_load, "gateway"),
        ("closed, gateway frozen", closed_load, "gateway"),
        ("open, generator frozen", open_load, "generator"),
    ):
        simulator, url = start_simulator()
        try:
            records, summary = run(url, load, seconds, frozen, simulator)
        finally:
            simulator.terminate()
            simulator.wait()
        planned_s = p99(r["request_summary"]["first_token_s"] for r in records)
        sent_s = p99(r["first_token_s"] for r in records)
        shows = abs(planned_s - expected_s) < 0.25
        good = shows is not name.startswith("closed")
        if frozen == "generator":
            good = good and sent_s < 0.5 and summary["validity"]["valid"] is False
        failed = failed or not good
        valid = "valid" if summary["validity"]["valid"] else "INVALID"
        print(
            f"{name:<24} {len(records):5} requests, TTFT p99 {1000 * planned_s:6.0f} ms from the planned "
            f"start, {1000 * sent_s:6.0f} ms from the send, {valid} "
            f"(a freeze that shows: about {1000 * expected_s:.0f} ms): {'ok' if good else 'NOT OK'}",
            flush=True,
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

"""Does memory stay flat under open arrivals? 100 requests per second for ten minutes, and the slope of it.

The resident memory of the Locust process is read each second. The first half is for filling pools (a stall
of the machine lets more requests be open at once than ever before) and tables; over the rest a straight
line is fitted. What Locust itself keeps per second of a run (its history)
is part of it.

    .venv/bin/python benchmarks/soak_arrivals.py [--minutes 10] [--rate 100]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

# What an hour may add: 20 MB, of which Locust's own history is the larger part.
BOUND_MB_PER_HOUR = 20.0


def slope(points: list[tuple[float, float]]) -> float:
    """Return the slope of the straight line through *points* by least squares."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread


def main() -> int:
    """Soak; exit code 1 if memory grows faster than the bound, or an arrival is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--rate", type=int, default=100)
    args = parser.parse_args()
    seconds = int(60 * args.minutes)
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, "-m", "harness", "run", "--headless", "--host", "sim", "--arrivals", "poisson",
            "--rate", str(args.rate), "-t", f"{seconds}s", "--max-tokens", "20", "--results", folder,
            "--metrics-port", "0", "--only-summary",
        ]  # fmt: skip
        locust = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        process, points, began = psutil.Process(locust.pid), [], time.monotonic()
        while locust.poll() is None and time.monotonic() - began < seconds:
            time.sleep(1.0)
            points.append((time.monotonic() - began, process.memory_info().rss / 1e6))
            if int(points[-1][0]) % 60 == 0:
                print(f"{points[-1][0]:6.0f} s  {points[-1][1]:7.1f} MB", flush=True)
        locust.wait()
        summary = json.loads((Path(folder) / "latest" / "summary.json").read_text())
    settled = points[len(points) // 2 :]
    per_hour = 3600.0 * slope(settled)
    arrivals = summary["requests"]["arrivals"]
    whole = arrivals["planned"] == arrivals["started"] + arrivals["dropped"]
    good = per_hour <= BOUND_MB_PER_HOUR and whole and summary["conservation"]["balanced"]
    print(
        f"{arrivals['planned']} arrivals in {seconds} s, {arrivals['dropped']} dropped, p99 "
        f"{1000 * arrivals['lag_p99_s']:.1f} ms late; memory {settled[0][1]:.1f} to {settled[-1][1]:.1f} MB, "
        f"slope {per_hour:+.1f} MB per hour (bound {BOUND_MB_PER_HOUR:g}): {'ok' if good else 'NOT OK'}"
    )
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())

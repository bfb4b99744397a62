"""Do open arrivals come as planned? 20 users offer 20 requests per second for 60 s, seeded.

Checked: planned = started + dropped, exactly; a record for each that started; started minus planned within
5 ms at p99; the number within three standard deviations; gaps exponential (Kolmogorov-Smirnov at 0.001).

    .venv/bin/python benchmarks/proof_arrivals.py [--seconds 60] [--users 20] [--seed 1]
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

# Beyond this the distributions differ at the level 0.001: sqrt(-ln(0.0005) / 2).
KS_CRITICAL = 1.949


def main() -> int:
    """Run once; exit code 1 if a promise was not kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--users", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, "-m", "harness", "run", "--headless", "--host", "sim", "--arrivals", "poisson",
            "-u", str(args.users), "-r", str(args.users), "-t", f"{args.seconds}s", "--seed", str(args.seed),
            "--results", folder, "--metrics-port", "0", "--only-summary",
        ]  # fmt: skip
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        lines = (Path(folder) / "latest" / "attempts.jsonl").read_text().splitlines()
        summary = json.loads((Path(folder) / "latest" / "summary.json").read_text())
    records = [json.loads(line) for line in lines]
    arrivals = summary["requests"]["arrivals"]
    late = sorted(r["sent_at"] - r["scheduled_at"] - (r["connect_s"] or 0.0) for r in records)
    planned = sorted(r["scheduled_at"] for r in records)
    gaps = sorted(b - a for a, b in pairwise(planned))
    n = len(gaps)
    p99_s = late[int(0.99 * n)]
    expected = args.users * args.seconds

    def cdf(gap: float) -> float:
        return 1.0 - math.exp(-args.users * gap)

    distance = max(max((k + 1) / n - cdf(gap), cdf(gap) - k / n) for k, gap in enumerate(gaps))
    checks = {
        f"planned {arrivals['planned']} = started {arrivals['started']} + dropped {arrivals['dropped']}": (
            arrivals["planned"] == arrivals["started"] + arrivals["dropped"]
        ),
        f"{len(records)} records of {arrivals['started']} started": len(records) == arrivals["started"],
        f"started minus planned: p50 {1000 * late[n // 2]:.2f} ms, p99 {1000 * p99_s:.2f} ms (5)": (
            p99_s <= 0.005
        ),
        f"{arrivals['planned']} of {expected} +- {3 * math.sqrt(expected):.0f} expected": (
            abs(arrivals["planned"] - expected) <= 3 * math.sqrt(expected)
        ),
        f"gaps: Kolmogorov-Smirnov {distance * math.sqrt(n):.2f} ({KS_CRITICAL})": (
            distance * math.sqrt(n) < KS_CRITICAL
        ),
    }
    for words, good in checks.items():
        print(f"{words}: {'ok' if good else 'NOT OK'}")
    return int(not all(checks.values()))


if __name__ == "__main__":
    sys.exit(main())

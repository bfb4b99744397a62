"""Does the search find a limit that is known? `harness capacity` against a simulated gateway with N slots.

Beyond its slots the gateway refuses (--reject): the highest number of users without errors has to be
within 10 % of N, in under 3 minutes. Or it queues (--queue), for requests that arrive at random: then the
answer has to be within 15 % of the rate at which a queue of N servers with streams of constant length
(M/D/N) has 95 % of its waits below what the objective leaves of the time to the first token. (Not for users
who wait for their answer: streams of constant length keep the users' order for ever, and who waits how long
depends on how they happened to begin.)

    .venv/bin/python benchmarks/proof_capacity.py [--slots 8,32,128] [--times 5] [--queue]
"""

from __future__ import annotations

import argparse
import heapq
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

FIRST_S, GAP_S, TOKENS = 0.2, 0.02, 60
STREAM_S = FIRST_S + GAP_S * TOKENS
LIMIT_S = 1.0


def queue_p95(rate: float, slots: int, arrivals: int = 200_000) -> float:
    """Return the p95 of the time to the first token, seconds: Poisson arrivals, constant streams, FIFO."""
    random = Random(1)
    free = [0.0] * slots  # when each slot becomes free
    now, waits = 0.0, []
    for _ in range(arrivals):
        now += random.expovariate(rate)
        begins = max(now, heapq.heappop(free))
        heapq.heappush(free, begins + STREAM_S)
        waits.append(begins - now)
    waits = sorted(waits[arrivals // 10 :])
    return FIRST_S + waits[int(0.95 * len(waits))]


def queue_limit(slots: int) -> float:
    """Return the highest rate whose p95 is below the limit."""
    low, high = 0.0, slots / STREAM_S
    for _ in range(14):
        middle = (low + high) / 2.0
        low, high = (middle, high) if queue_p95(middle, slots) < LIMIT_S else (low, middle)
    return low


def start_simulator(slots: int, beyond: str) -> tuple[subprocess.Popen[str], str]:
    """Start a gateway with so many slots, and return it with its URL."""
    command = [sys.executable, "-m", "harness.sim", "--port", "0", "--slots", str(slots), beyond]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    words = process.stdout.readline().split()
    return process, next(word for word in words if word.startswith("http://"))


def search(url: str, objective: str, load: str, folder: Path) -> tuple[dict[str, Any], float, int]:
    """Search once; returns `capacity.json`, the seconds it took, and the exit code."""
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "harness", "capacity", url, "--slo", objective, "--load", load,
         "--results", str(folder), "--metrics-port", "0"],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    took_s = time.monotonic() - began
    found = folder / "latest" / "capacity.json"
    if not found.exists():
        sys.exit(done.stdout + done.stderr)
    return json.loads(found.read_text()), took_s, done.returncode


def main() -> int:
    """Search as often as asked; exit code 1 if an answer is off or late."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--slots", default="8,32,128")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--queue", action="store_true")
    args = parser.parse_args()
    objective = f"ttft p95 < {LIMIT_S:g}s" if args.queue else "error_rate < 1%"
    unit = "rate" if args.queue else "users"
    tolerance = 0.15 if args.queue else 0.10
    failed = False
    for slots in map(int, args.slots.split(",")):
        truth = queue_limit(slots) if args.queue else float(slots)
        for number in range(args.times):
            process, url = start_simulator(slots, "--queue" if args.queue else "--reject")
            try:
                with tempfile.TemporaryDirectory() as folder:
                    result, took_s, code = search(url, objective, unit, Path(folder))
            finally:
                process.terminate()
                process.wait()
            answer = result["answer"]
            off = None if answer is None else answer / truth - 1.0
            in_time = took_s < 180.0 or args.queue  # rates near saturation need their whole steps
            good = off is not None and abs(off) <= tolerance and in_time
            failed = failed or not good
            print(
                f"{objective}, {slots} slots, search {number + 1}: {answer} {unit}, "
                f"true {truth:.1f} ({'–' if off is None else f'{off:+.1%}'}), {took_s:.0f} s, "
                f"{len(result['curve'])} steps, {len(result['thrown_away'])} thrown away, exit {code}: "
                f"{'ok' if good else 'NOT OK'}",
                flush=True,
            )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

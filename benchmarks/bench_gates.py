"""How often a relative gate cries wolf, and how often it sees a 20 % slowdown: real runs against the
simulator.

Two simulated gateways run beside each other: A, and B whose first tokens and gaps take 20 % longer. Five
runs of A are the baseline. Then runs of A and B alternate, 40 each, and each is judged by the same relative
gate on the median time to the first token and to the next (limit 1.10x). An alarm on A is false; silence on
B is a miss. `--confirm` is told from neighbouring runs: two alarms in a row.

Usage: python benchmarks/bench_gates.py [pairs] [seconds per run]. Forty pairs of three seconds take ten
minutes.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from harness.judge.baseline import Baseline, add_runs, noise_of, write_baseline
from harness.judge.binomial import share_interval
from harness.judge.gatefile import read_gates
from harness.judge.judging import judge_run, read_run
from harness.judge.machine import machine_class
from harness.judge.verdict import Verdict
from harness.observe.results import find_results

PAIRS, SECONDS, BASELINE_RUNS, USERS, RETRIES = 40, 3, 5, 12, 5
SLOWER = 1.2
# The absolute gate sets what a late read may be (5 % of 4 s): on a shared machine 5 ms would void every run.
GATES = """\
version = 1
scenario = "bench"
[[gate]]
id = "absolute"
metric = "ttft"
stat = "p50"
op = "<"
limit = "4s"
why = "benchmark"
""" + "".join(
    f"""\
[[gate]]
id = "{metric}"
metric = "{metric}"
stat = "p50"
op = "<"
limit = "1.10x"
baseline = "bench.json"
why = "benchmark"
"""
    for metric in ("ttft", "tpot")
)


def main() -> int:
    """Run, judge, print."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else SECONDS
    with tempfile.TemporaryDirectory(prefix="bench-gates-") as name, gateway(1.0) as a, gateway(SLOWER) as b:
        base = Path(name)
        gates = base / "gates.toml"
        gates.write_text(GATES)
        loaded = read_gates(gates)
        before = [play(base, a, f"base{i}", seconds) for i in range(BASELINE_RUNS)]
        numbers = [read_run(folder, loaded).numbers(loaded) for folder in before]
        baseline = Baseline()
        entry = baseline.made_entry("bench", machine_class())
        add_runs(entry, numbers)
        entry.noise, entry.noise_runs = noise_of(numbers), len(numbers)
        write_baseline(base / "bench.json", baseline)
        for key in ("ttft p50", "tpot p50"):
            print(f"noise of {key}: {100 * entry.noise[key]:.2f} % between runs of the same build")
        verdicts: dict[str, list[Verdict]] = {"A": [], "B": []}
        for i in range(pairs):
            for side, url in (("A", a), ("B", b)):
                verdicts[side].append(judged(base, url, f"{side}{i}", seconds, gates))
    alarms = {side: [verdict.word == "fail" for verdict in found if not verdict.invalid]
              for side, found in verdicts.items()}  # fmt: skip
    invalid = sum(bool(verdict.invalid) for found in verdicts.values() for verdict in found)
    print(f"{2 * pairs} runs of {seconds} s with {USERS} users, {invalid} invalid to the end and left out")
    said("false alarms, same build", alarms["A"])
    said("  confirmed by a second run", confirmed(alarms["A"]))
    said(f"seen, {100 * (SLOWER - 1):.0f} % slower", alarms["B"])
    said("  confirmed by a second run", confirmed(alarms["B"]))
    return 0


def judged(base: Path, url: str, name: str, seconds: int, gates: Path) -> Verdict:
    """Return the verdict on a run; an invalid one is run again, up to four times (`--retry-invalid`)."""
    for attempt in range(RETRIES):
        verdict = judge_run(play(base, url, f"{name}-{attempt}", seconds), gates)
        if not verdict.invalid:
            break
    return verdict


def confirmed(alarms: list[bool]) -> list[bool]:
    """Return for each run and its neighbour whether both raised the alarm."""
    return [one and other for one, other in pairwise(alarms)]


def said(what: str, alarms: list[bool]) -> None:
    """Print a share with its 95 % interval."""
    low, high = share_interval(sum(alarms), len(alarms), 0.95)
    print(f"{what:<30} {sum(alarms):3} of {len(alarms)}  ({100 * low:.1f} … {100 * high:.1f} %)")


def play(base: Path, url: str, name: str, seconds: int) -> Path:
    """Run Locust for *seconds* against *url* and return the run's folder."""
    options = {
        "--host": url,
        "--protocols": "chat",
        "--model": "m",
        "--users": str(USERS),
        "--spawn-rate": str(USERS),
        "--run-time": f"{seconds}s",
        "--metrics-port": "0",
        "--results": str(base / name),
        "--run-name": name,
    }
    words = [word for option in options.items() for word in option]
    command = [sys.executable, "-m", "harness", "run", "--headless", "--only-summary", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"run {name} did not take place: {done.stderr.strip().splitlines()[-1:]}")
    return find_results(base / name)


@contextmanager
def gateway(slower: float) -> Iterator[str]:
    """Start a simulated gateway and yield its URL."""
    command = [
        sys.executable, "-m", "harness", "sim", "--port", "0", "--jitter", "0.5", "--tokens", "40",
        "--first-token", f"{100 * slower:.0f}ms", "--gap", f"{10 * slower:.1f}ms",
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        ready = process.stdout.readline()
        try:
            yield next(word.rstrip(".,") for word in ready.split() if word.startswith("http://"))
        finally:
            process.terminate()


if __name__ == "__main__":
    raise SystemExit(main())

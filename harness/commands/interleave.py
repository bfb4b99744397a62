"""Runs two sides in turn, ABABAB, each run a Locust process of its own: what drifts hits both alike."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from harness.observe.results import ATTEMPTS

# Locust's codes of a run that took place: all went well, or some stream failed (or a gate: 20 to 22).
_RAN = frozenset({0, 1, 20, 21, 22})


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run: the sides' targets, how often, and Locust's options for both and for each."""

    a: str
    b: str
    runs: int
    results: Path
    both: Sequence[str]
    with_a: Sequence[str] = ()
    with_b: Sequence[str] = ()

    @property
    def labels(self) -> tuple[str, str]:
        """What the sides are called: their targets, with what sets them apart if those are the same."""
        if self.a != self.b:
            return self.a, self.b
        return " ".join([self.a, *self.with_a]), " ".join([self.b, *self.with_b])

    def folder(self, side: str) -> Path:
        """Return where the runs of *side* (``a`` or ``b``) go."""
        return self.results / side

    def commands(self) -> Iterator[tuple[str, list[str]]]:
        """Yield side and command of each run, in order. Both sides of a pair share their seed."""
        for number in range(self.runs):
            for side, target, own in (("a", self.a, self.with_a), ("b", self.b, self.with_b)):
                yield side, [
                    sys.executable, "-m", "harness", "run", "--headless", "--only-summary", "--host", target,
                    "--metrics-port", "0", "--seed", str(number + 1), *self.both, *own,
                    "--results", str(self.folder(side)), "--run-name", f"{side}{number + 1:02d}",
                ]  # fmt: skip


def play(
    plan: Plan, out: TextIO, call: Callable[[list[str]], subprocess.CompletedProcess[str]] | None = None
) -> str | None:
    """Run *plan*, telling *out* how far it is; return why it could not, or None.

    Folders that hold runs already are refused: old runs would be compared with new ones.
    """
    for side in ("a", "b"):
        if any(plan.folder(side).glob(f"*/{ATTEMPTS}")):
            return f"{plan.folder(side)} holds runs already: choose another folder with --results DIR"
    total = 2 * plan.runs
    for number, (side, command) in enumerate(plan.commands(), 1):
        print(f"run {number} of {total}: {side.upper()}", file=out, flush=True)
        done = (call or _call)(command)
        if done.returncode not in _RAN:
            last = (done.stderr or done.stdout or "").strip().splitlines()
            why = last[-1] if last else f"exit code {done.returncode}"
            return f"run {number} ({side.upper()}) did not take place: {why}"
    return None


def _call(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)

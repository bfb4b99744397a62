"""What judging a run comes to: one result per gate, one word and one exit code for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from harness.judge.gates import Gate, Gates
from harness.judge.quantities import format_ratio, format_value
from harness.judge.sample import Estimate
from harness.observe.state import Reason

Word = Literal["invalid", "fail", "no_data", "inconclusive", "warn", "pass", "skipped"]

# Worst first. A run whose gates passed or were skipped has passed.
WORDS: tuple[Word, ...] = ("invalid", "fail", "no_data", "inconclusive", "warn", "pass", "skipped")

EXIT_PASS, EXIT_FAIL, EXIT_NO_DATA, EXIT_INVALID, EXIT_GATES_WRONG = 0, 20, 21, 22, 23


@dataclass(frozen=True, slots=True)
class Against:
    """What a relative gate compared with: the baseline's median of *runs* runs, and the ratio to it."""

    median: float
    runs: int
    ratio: float
    low: float | None = None
    high: float | None = None
    p: float | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """One gate judged. `word` is the fact; `blocking` says whether it turns the exit code."""

    gate: Gate
    word: Word
    reason: str
    blocking: bool = False
    estimate: Estimate | None = None
    against: Against | None = None

    @property
    def value_text(self) -> str:
        """The value in words; an en dash if there is none."""
        if self.estimate is None:
            return "–"
        text = format_value(self.estimate.value, self.gate.about.kind)
        text = f"≥ {text}" if self.estimate.at_least else text
        return f"{text} ({format_ratio(self.against.ratio)})" if self.against else text

    @property
    def interval_text(self) -> str:
        """The confidence interval in words, of the value or of the ratio; empty if there is none."""
        if self.against is not None:
            if self.against.low is None or self.against.high is None:
                return ""
            return f"{format_ratio(self.against.low)} … {format_ratio(self.against.high)}"
        if self.estimate is None or self.estimate.low is None or self.estimate.high is None:
            return ""
        kind = self.gate.about.kind
        return f"{format_value(self.estimate.low, kind)} … {format_value(self.estimate.high, kind)}"


def failed(gate: Gate, reason: str, estimate: Estimate | None) -> Result:
    """Return a missed gate: a failure, or a warning if the file says so."""
    word: Word = "fail" if gate.severity == "fail" else "warn"
    return Result(gate, word, reason, word == "fail", estimate)


def without_data(gate: Gate, reason: str, estimate: Estimate | None = None) -> Result:
    """Return a gate that could not be judged for want of data."""
    if gate.on_no_data == "skip":
        return Result(gate, "skipped", f"no data: {reason}", False, estimate)
    return Result(gate, "no_data", reason, gate.on_no_data == "fail" and gate.severity == "fail", estimate)


def undecided(gate: Gate, reason: str, estimate: Estimate | None) -> Result:
    """Return a gate whose limit lies inside the interval."""
    if gate.on_inconclusive == "skip":
        return Result(gate, "skipped", f"inconclusive: {reason}", False, estimate)
    blocking = gate.on_inconclusive == "fail" and gate.severity == "fail"
    return Result(gate, "inconclusive", reason, blocking, estimate)


@dataclass(frozen=True, slots=True)
class Counts:
    """How much was looked at: lines read, and what of them was measured."""

    records: int = 0
    warmup: int = 0  # by the run's own --warmup
    outside: int = 0  # by the gate file's warmup and cooldown
    streams: int = 0
    requests: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """A run, judged. `folder` is where its outputs go."""

    folder: Path
    run: str
    gateway: str
    simulated: bool
    time_scale: float
    started_at: float | None
    gates: Gates
    results: tuple[Result, ...]
    invalid: tuple[Reason, ...] = ()
    counts: Counts = field(default_factory=Counts)
    machine_class: str = ""
    notes: tuple[str, ...] = ()
    stopped_early: str | None = None

    @property
    def word(self) -> Word:
        """The worst word of all: *invalid* before all else."""
        if self.invalid:
            return "invalid"
        return min((result.word for result in self.results), key=WORDS.index)

    @property
    def exit_code(self) -> int:
        """0, or 20 a gate failed, 21 no data or inconclusive and not forgiven by the file, 22 invalid."""
        if self.invalid:
            return EXIT_INVALID
        blocking = {result.word for result in self.results if result.blocking}
        if "fail" in blocking:
            return EXIT_FAIL
        return EXIT_NO_DATA if blocking else EXIT_PASS

    @property
    def regressed(self) -> bool:
        """Whether all that failed is relative to a baseline: worth one more run before it counts."""
        failed = [result for result in self.results if result.blocking and result.word == "fail"]
        return not self.invalid and bool(failed) and all(result.gate.baseline for result in failed)

    @property
    def worst_first(self) -> Sequence[Result]:
        """The results, worst first, else in the file's order."""
        return sorted(self.results, key=lambda result: (WORDS.index(result.word), not result.blocking))

    @property
    def sentence(self) -> str:
        """The verdict in one line."""
        if self.invalid:
            return "invalid: neither passed nor failed – " + "; ".join(reason.text for reason in self.invalid)
        n = len(self.results)
        tally = {word: sum(result.word == word for result in self.results) for word in WORDS}
        parts = [f"{count} {_SAID[word]}" for word, count in tally.items() if count]
        return f"{self.word}: of {n} {'gate' if n == 1 else 'gates'}, " + ", ".join(parts)


_SAID = {
    "invalid": "invalid",
    "fail": "failed",
    "no_data": "without data",
    "inconclusive": "inconclusive",
    "warn": "missed with a warning",
    "pass": "passed",
    "skipped": "skipped",
}

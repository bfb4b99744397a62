"""The file of numbers that relative gates compare with: per scenario and machine class, the last runs and
their noise.

It changes only by an explicit command whose difference a person reviews: a run that passes never moves what
the next one is compared with, or a slow drift would pass for ever.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path
from statistics import median

import msgspec

from harness.judge.files import write_whole
from harness.judge.gates import Gate, Gates
from harness.judge.numbers import Number, RunNumbers, key_of
from harness.judge.relative import Reference

SCHEMA = "harness.baseline/1"

# Runs kept per entry: enough for a steady median, few enough that last month's hardware fades.
KEPT = 20


class BaselineError(Exception):
    """A baseline cannot be used or made; the message is one line that says what and how to mend it."""


class Entry(msgspec.Struct):
    """The runs of one scenario on one class of machine. `noise` is the A/A spread per number, as a share."""

    scenario: str
    machine_class: str
    runs: list[RunNumbers] = []
    noise: dict[str, float] = {}
    noise_runs: int = 0

    def values(self, key: str) -> list[float]:
        """Return the number *key* of each run that has it; infinite where it was never reached."""
        return [run.numbers[key].finite for run in self.runs if key in run.numbers]


class Baseline(msgspec.Struct):
    """The whole file."""

    schema: str = SCHEMA
    entries: list[Entry] = []

    def entry(self, scenario: str, machine_class: str) -> Entry | None:
        """Return the entry, or None."""
        for entry in self.entries:
            if (entry.scenario, entry.machine_class) == (scenario, machine_class):
                return entry
        return None

    def made_entry(self, scenario: str, machine_class: str) -> Entry:
        """Return the entry, a new one if there is none."""
        entry = self.entry(scenario, machine_class)
        if entry is None:
            entry = Entry(scenario, machine_class)
            self.entries.append(entry)
        return entry


def read_baseline(path: Path) -> Baseline:
    """Return the baseline in *path*. Raises `BaselineError`; `FileNotFoundError` if there is none."""
    try:
        baseline = msgspec.json.decode(path.read_bytes(), type=Baseline)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise BaselineError(f"cannot read baseline {path} ({error.strerror or error})") from None
    except msgspec.DecodeError as error:
        raise BaselineError(f"{path} is not a baseline of schema {SCHEMA}: {error}") from None
    if baseline.schema != SCHEMA:
        raise BaselineError(f"{path}: schema {baseline.schema!r}, this harness reads {SCHEMA!r}")
    return baseline


def write_baseline(path: Path, baseline: Baseline) -> None:
    """Write *baseline*, whole or not at all. Raises `ResultsError`."""
    write_whole(path, msgspec.json.format(msgspec.json.encode(baseline), indent=1) + b"\n")


def reference(
    gate: Gate,
    path: Path,
    scenario: str,
    machine_class: str,
    run: RunNumbers,
    repeats: Sequence[RunNumbers] = (),
) -> Reference:
    """Return what *gate* compares *run* with, or why there is nothing.

    Raises `BaselineError` for a bad file.
    """
    try:
        baseline = read_baseline(path)
    except FileNotFoundError:
        return Reference(
            missing=f"no baseline yet: {path} does not exist (make it with `harness baseline record`)"
        )
    entry = baseline.entry(scenario, machine_class)
    if entry is None:
        classes = sorted(e.machine_class for e in baseline.entries if e.scenario == scenario)
        if not classes:
            return Reference(missing=f"{path} has no scenario {scenario!r}")
        have = ", ".join(classes)
        return Reference(
            missing=f"{path} was recorded on {have}, this machine is {machine_class}: not comparable"
        )
    key = key_of(gate)
    like = [r for r in entry.runs if (r.simulated, r.time_scale) == (run.simulated, run.time_scale)]
    values = [r.numbers[key].finite for r in like if key in r.numbers]
    if len(values) < gate.min_runs:
        return Reference(
            missing=f"{path} has {len(values)} runs of {scenario!r} with {key}, {gate.min_runs} are needed"
        )
    own = [r.numbers.get(key, Number(None, 0)).finite for r in repeats]
    return Reference(values, own)


def add_runs(entry: Entry, runs: Iterable[RunNumbers]) -> None:
    """Add *runs*, a run that is there already replaced; the oldest beyond `KEPT` go."""
    by_name = {run.run: run for run in [*entry.runs, *runs]}
    entry.runs = sorted(by_name.values(), key=lambda run: run.started_at or 0.0)[-KEPT:]


def noise_of(runs: Sequence[RunNumbers]) -> dict[str, float]:
    """Return per number how far apart two runs of the same build lie, as a share: the A/A noise.

    It is the root mean square of the log ratio over all pairs, which is √2 times the standard deviation
    between runs: about two thirds of all pairs lie closer than that. Numbers that some run never reached
    have none.
    """
    keys = set.intersection(*(set(run.numbers) for run in runs)) if runs else set()
    noise = {}
    for key in sorted(keys):
        values = [run.numbers[key].finite for run in runs]
        if min(values) > 0.0 and not math.isinf(max(values)):
            squares = [math.log(a / b) ** 2 for a, b in combinations(values, 2)]
            noise[key] = round(math.expm1(math.sqrt(sum(squares) / len(squares))), 6)
        elif max(values) == 0.0:
            noise[key] = 0.0
    return noise


def refused_limits(gates: Gates, entry: Entry) -> list[str]:
    """Return a sentence for each relative gate that is finer than twice the noise: it would cry wolf."""
    sentences = []
    for gate in gates.gates:
        noise = entry.noise.get(key_of(gate)) if gate.baseline is not None else None
        if noise is None:
            continue
        allowed = abs(gate.limit - 1.0)
        if allowed < 2.0 * noise:
            sentences.append(
                f"{gates.source}:{gate.line}: gate {gate.id!r} allows {100 * allowed:.3g} %, but two runs "
                f"of the same build already differ by {100 * noise:.3g} % here ({entry.noise_runs} runs): a "
                f"limit below {1 + 2 * noise:.2f}x would fail builds that changed nothing. Raise it, or make "
                f"runs longer"
            )
    return sentences


def medians(entry: Entry) -> dict[str, float]:
    """Return the median of each number over the entry's runs; infinite if most runs never reached it."""
    keys = sorted({key for run in entry.runs for key in run.numbers})
    return {key: median(entry.values(key)) for key in keys}

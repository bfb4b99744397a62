"""Two sides, A and B: what differs between their runs, by how much, and how sure that is.

The unit is a run where each side has four or more. With fewer it is a stretch of time of a run, which is
weaker: two runs can differ for reasons that all their stretches share, and the comparison says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Literal

from harness.judge.evidence import Evidence, Window
from harness.judge.judging import Judged, read_run
from harness.judge.metrics import METRICS
from harness.judge.numbers import Number, number_key, standard_numbers
from harness.judge.ranks import Shift, shift, smallest_p
from harness.observe.results import ATTEMPTS, read_records
from harness.stream.record import Attempt

Word = Literal["worse", "better", "no difference", "cannot tell"]

# With 3 + 3 the smallest p-value is 0.10: nothing could ever be called different at 5 %.
FEWEST_RUNS = 4
# Stretches per side where runs are too few, and the fewest streams of a stretch that are worth a number.
_STRETCHES = 8
COMPARED: tuple[tuple[str, str], ...] = (
    ("ttft", "p50"), ("ttft", "p95"), ("tpot", "p50"), ("gap_max", "p95"), ("duration", "p50"),
    ("success_rate", "rate"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One number of one protocol on both sides. `change` is a share of A's (a difference, for rates)."""

    protocol: str
    metric: str
    stat: str
    a: float
    b: float
    units: tuple[int, int]
    change: float
    low: float
    high: float
    p: float  # adjusted for the number of rows (Holm)
    word: Word

    @property
    def name(self) -> str:
        """The number in words."""
        return number_key(self.metric, self.stat, {})


@dataclass(frozen=True, slots=True)
class Side:
    """One side's valid runs, in the order in which they began."""

    label: str
    runs: tuple[Judged, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that is said about A and B."""

    a: Side
    b: Side
    unit: Literal["runs", "stretches"]
    rows: tuple[Row, ...]
    order: str
    notes: tuple[str, ...]
    confidence: float

    @property
    def word(self) -> Word:
        """The worst of all rows; a difference for the better counts only where nothing is worse."""
        words = {row.word for row in self.rows}
        for word in ("worse", "better", "no difference"):
            if word in words:
                return word
        return "cannot tell"


def read_side(label: str, folders: Iterable[Path]) -> tuple[Side, list[str]]:
    """Read a side's runs; invalid ones are left out and said. Raises `ResultsError`."""
    runs, said = [], []
    for folder in folders:
        judged = read_run(folder)
        if judged.invalid:
            said.append(f"{label}: run {judged.facts.name} is invalid: {judged.invalid[0].text}")
        elif judged.evidence.cells:
            runs.append(judged)
    runs.sort(key=lambda judged: judged.evidence.began)
    return Side(label, tuple(runs)), said


def compare(a: Side, b: Side, confidence: float = 0.95) -> Comparison:
    """Compare two sides with at least one valid run each. Raises `ResultsError`."""
    by_run = min(len(a.runs), len(b.runs)) >= FEWEST_RUNS
    protocols = sorted(
        {name for side in (a, b) for run in side.runs for name in run.evidence.labels("protocol")}
    )
    numbers = [[run.evidence for run in side.runs] if by_run else _stretches(side) for side in (a, b)]
    rows = []
    for protocol in protocols:
        where = {"protocol": protocol} if len(protocols) > 1 else {}
        metrics = tuple(dict.fromkeys(metric for metric, _ in COMPARED))
        ours, theirs = ([standard_numbers(e, where, metrics) for e in side] for side in numbers)
        for metric, stat in COMPARED:
            row = _row(protocol, metric, stat, where, ours, theirs, confidence)
            rows += [row] if row is not None else []
    return Comparison(
        a=a,
        b=b,
        unit="runs" if by_run else "stretches",
        rows=tuple(_holm(rows, confidence)),
        order=order_of(a, b),
        notes=tuple(_setups(a, b)),
        confidence=confidence,
    )


def order_of(a: Side, b: Side) -> str:
    """Return the order in which the runs began, as letters: ``ABABAB``."""
    began = [(run.evidence.began, letter) for letter, side in (("A", a), ("B", b)) for run in side.runs]
    return "".join(letter for _, letter in sorted(began))


def interleaved(order: str) -> bool:
    """Return whether no side ran more than twice on end: then what drifts hits both alike."""
    return "AAA" not in order and "BBB" not in order and len(set(order)) == 2 and order not in ("AB", "BA")


def _row(
    protocol: str, metric: str, stat: str, where: Mapping[str, str],
    ours: Sequence[Mapping[str, Number]], theirs: Sequence[Mapping[str, Number]], confidence: float,
) -> Row | None:  # fmt: skip
    key = number_key(metric, stat, where)
    share: Callable[[float], float]
    a = [numbers[key].finite for numbers in ours if key in numbers]
    b = [numbers[key].finite for numbers in theirs if key in numbers]
    if not a or not b:
        return None
    if METRICS[metric].kind == "rate":
        moved, share = shift(a, b, confidence), float
    else:
        moved, share = shift([_log(v) for v in a], [_log(v) for v in b], confidence), _as_change
    can_tell = smallest_p(len(a), len(b)) <= 1.0 - confidence
    return Row(
        protocol, metric, stat, median(a), median(b), (len(a), len(b)),
        share(moved.estimate), share(moved.low), share(moved.high), moved.p,
        _word(metric, moved, 1.0 - confidence) if can_tell else "cannot tell",
    )  # fmt: skip


def _word(metric: str, moved: Shift, alpha: float) -> Word:
    if moved.p > alpha or moved.estimate == 0.0:
        return "no difference"
    return "worse" if (moved.estimate > 0) == (METRICS[metric].better == "low") else "better"


def _holm(rows: Sequence[Row], confidence: float) -> list[Row]:
    """Return *rows* with p-values adjusted: of twenty comparisons of the same, one has p < 5 % by chance."""
    adjusted = list(rows)
    worst = 0.0
    ranked = sorted((i for i, row in enumerate(rows) if row.word != "cannot tell"), key=lambda i: rows[i].p)
    for place, i in enumerate(ranked):
        worst = max(worst, min(1.0, rows[i].p * (len(ranked) - place)))
        word: Word = rows[i].word if worst <= 1.0 - confidence else "no difference"
        adjusted[i] = replace(rows[i], p=worst, word=word)
    return adjusted


def _stretches(side: Side) -> list[Evidence]:
    """Cut a side's runs into about eight stretches of equal length, by when requests were planned."""
    per_run = max(1, _STRETCHES // len(side.runs))
    cut = []
    for run in side.runs:
        first, last = run.evidence.began, _last_planned(run)
        step = (last - first) / per_run or 1.0
        parts = [Evidence(window=Window()) for _ in range(per_run)]
        for record in _records(run):
            parts[min(per_run - 1, int((record.scheduled_at - first) / step))].add(record)
        for part in parts:
            part.close()
        cut += [part for part in parts if part.cells]
    return cut


def _records(run: Judged) -> Iterable[Attempt]:
    return (record for record in read_records(run.facts.folder / ATTEMPTS, []) if record.phase != "warmup")


def _last_planned(run: Judged) -> float:
    return max(record.scheduled_at for record in _records(run))


# What may differ between the sides, or differs between any two runs.
_EXPECTED = frozenset(
    {"host", "run_name", "results", "tag", "metrics_port", "gateway", "model", "web_port", "sim_truth"}
)


def _setups(a: Side, b: Side) -> list[str]:
    """Return what else differs between the sides: a difference in load is no difference between gateways."""
    notes = []
    ours, theirs = a.runs[0].facts, b.runs[0].facts
    if ours.simulated != theirs.simulated:
        notes.append("one side is simulated, the other is not")
    options = [facts.run.get("options", {}) for facts in (ours, theirs)]
    if all(isinstance(one, dict) for one in options):
        names = sorted(
            name for name in {*options[0], *options[1]} - _EXPECTED
            if options[0].get(name) != options[1].get(name)
        )  # fmt: skip
        if names:
            said = ", ".join(f"{n} ({options[0].get(n)!r} and {options[1].get(n)!r})" for n in names[:6])
            notes.append(f"the runs were not started alike: {said}")
    return notes


def _log(value: float) -> float:
    return math.log(min(max(value, 1e-9), 1e9))


def _as_change(log_ratio: float) -> float:
    return math.inf if log_ratio > 700 else math.expm1(log_ratio)

"""A gate relative to a baseline: has this build become worse than the ones before, beyond their noise?

``history`` puts one run against the baseline's: the ratio is to their median, its interval reaches from the
ratio to the largest of them to the ratio to the smallest. ``mann_whitney`` puts several runs of the build
against them and asks whether the difference could be chance.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from harness.judge.gates import Gate
from harness.judge.quantities import format_ratio, format_value
from harness.judge.ranks import shift
from harness.judge.sample import Estimate
from harness.judge.verdict import Against, Result, failed, undecided, without_data


@dataclass(frozen=True, slots=True)
class Reference:
    """What a relative gate compares with: the baseline's values, and those of further runs of what is judged.

    `missing` says why there is nothing to compare with.
    """

    values: Sequence[float] = ()
    repeats: Sequence[float] = ()
    missing: str = ""


def judge_relative(gate: Gate, estimate: Estimate, reference: Reference) -> Result:
    """Return the verdict on *gate*, whose number in this run is *estimate*."""
    value = math.inf if estimate.at_least else estimate.value
    if gate.method == "mann_whitney":
        own = [value, *reference.repeats]
        if len(own) < gate.min_runs:
            few = f"{len(own)} run{'' if len(own) == 1 else 's'} of this build"
            return without_data(
                gate, f"{few}, but Mann–Whitney needs {gate.min_runs}: give more results", estimate
            )
        return _ranked(gate, estimate, own, reference.values)
    return _history(gate, estimate, value, reference.values)


def _history(gate: Gate, estimate: Estimate, value: float, before: Sequence[float]) -> Result:
    middle = median(before)
    against = Against(
        middle, len(before), _ratio(value, middle), _ratio(value, max(before)), _ratio(value, min(before))
    )
    if gate.decide == "interval":
        return _by_interval(gate, estimate, against)
    said = _said(gate, value, against)
    if gate.holds(against.ratio):
        return Result(gate, "pass", said, False, estimate, against)
    return _with(failed(gate, said, estimate), against)


def _ranked(gate: Gate, estimate: Estimate, own: Sequence[float], before: Sequence[float]) -> Result:
    # Ratios are differences of logarithms; a number that was never reached ranks last, zero ranks first.
    moved = shift([_log(v) for v in before], [_log(v) for v in own], gate.confidence)
    against = Against(
        median(before), len(before), _exp(moved.estimate), _exp(moved.low), _exp(moved.high), moved.p
    )
    if gate.decide == "interval":
        return _by_interval(gate, estimate, against)
    said = f"{_said(gate, median(own), against)} (p = {moved.p:.3f}, {len(own)} runs against {len(before)})"
    if gate.holds(against.ratio):
        return Result(gate, "pass", said, False, estimate, against)
    if moved.p > 1.0 - gate.confidence:
        return _with(undecided(gate, f"{said}: may be chance", estimate), against)
    return _with(failed(gate, said, estimate), against)


def _by_interval(gate: Gate, estimate: Estimate, against: Against) -> Result:
    assert against.low is not None
    assert against.high is not None
    said = (
        f"between {format_ratio(against.low)} and {format_ratio(against.high)} of the baseline, "
        f"wanted {gate.op} {gate.limit_text}"
    )
    good = [gate.holds(against.low), gate.holds(against.high)]
    if all(good):
        return Result(gate, "pass", said, False, estimate, against)
    return _with(undecided(gate, said, estimate) if any(good) else failed(gate, said, estimate), against)


def _said(gate: Gate, value: float, against: Against) -> str:
    kind = gate.about.kind
    return (
        f"{format_value(value, kind)} is {format_ratio(against.ratio)} of the baseline's "
        f"{format_value(against.median, kind)}, wanted {gate.op} {gate.limit_text}"
    )


def _with(result: Result, against: Against) -> Result:
    return Result(result.gate, result.word, result.reason, result.blocking, result.estimate, against)


def _ratio(value: float, to: float) -> float:
    if value == to:
        return 1.0  # both zero, or neither ever reached
    if to == 0.0 or math.isinf(value):
        return math.inf
    return value / to


def _log(value: float) -> float:
    return math.log(min(max(value, sys.float_info.min), sys.float_info.max))


def _exp(value: float) -> float:
    return math.inf if value > 700.0 else math.exp(value)

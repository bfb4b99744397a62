"""One gate against the evidence: a verdict that says why, and never guesses where it cannot know."""

from __future__ import annotations

import math

from harness.judge.estimates import estimate_gate
from harness.judge.evidence import Cells, Evidence
from harness.judge.gates import Gate
from harness.judge.quantities import format_share, format_value
from harness.judge.relative import Reference, judge_relative
from harness.judge.sample import Estimate
from harness.judge.verdict import Result, failed, undecided, without_data


def judge_gate(gate: Gate, evidence: Evidence, reference: Reference | None = None) -> Result:
    """Return the verdict on *gate*; *reference* is what a relative one compares with."""
    if gate.baseline is None:
        return judge_cells(gate, evidence.select(gate.where), evidence.seconds)
    cells = evidence.select(gate.where)
    estimate = estimate_gate(gate, cells, evidence.seconds)
    # Before the baseline is asked for: an empty run must not hide behind a missing one.
    if no_data := _no_data(gate, cells, estimate):
        return no_data
    assert estimate is not None
    if reference is None or reference.missing:
        missing = reference.missing if reference else "no baseline was given"
        return Result(gate, "skipped", missing, False, estimate)
    return judge_relative(gate, estimate, reference)


def judge_cells(gate: Gate, cells: Cells, seconds: float) -> Result:
    """Return the verdict on an absolute *gate* over *cells* that *seconds* were measured for."""
    estimate = estimate_gate(gate, cells, seconds)
    if no_data := _no_data(gate, cells, estimate):
        return no_data
    assert estimate is not None
    return _absolute(gate, estimate)


def _no_data(gate: Gate, cells: Cells, estimate: Estimate | None) -> Result | None:
    what = "streams" if gate.view == "attempt" else "requests"
    if estimate is None:
        if not cells and gate.where:
            where = ", ".join(f"{key} = {value}" for key, value in gate.where.items())
            return without_data(gate, f"no {what} with {where}")
        if gate.metric == "recovered_rate":
            return without_data(gate, "no first attempt failed, so nothing was there to recover")
        return without_data(gate, f"no {what} say anything about {gate.metric}")
    if estimate.n < gate.min_samples:
        few = f"{estimate.n:,} {what if estimate.n != 1 else what.removesuffix('s')}"
        return without_data(gate, f"{few}, but {gate.stat} needs {gate.min_samples:,}", estimate)
    return None


def _absolute(gate: Gate, estimate: Estimate) -> Result:
    value, kind = estimate.value, gate.about.kind
    shown, limit = format_value(value, kind), f"{gate.op} {gate.limit_text}"
    if estimate.at_least:
        # The value is a lower bound: beyond an upper limit it is beyond for certain, else nobody knows.
        if gate.wants_low and not gate.holds(value):
            return failed(gate, f"at least {shown}, wanted {limit}", estimate)
        if not gate.wants_low and gate.holds(value):
            return Result(gate, "pass", f"at least {shown}, wanted {limit}", False, estimate)
        open_ = f"{estimate.cut:,} of {estimate.n:,} were ended by the client before it"
        reason = f"at least {shown}, more was not to be seen: {open_}"
        return without_data(gate, reason, estimate)
    if gate.decide == "interval":
        return _by_interval(gate, estimate)
    if gate.holds(value):
        return Result(gate, "pass", f"{shown}, wanted {limit}", False, estimate)
    if math.isinf(value):
        shown = f"never reached: {_share_lost(estimate)} failed before it and count as infinitely late"
    return failed(gate, f"{shown}, wanted {limit}", estimate)


def _by_interval(gate: Gate, estimate: Estimate) -> Result:
    limit = f"{gate.op} {gate.limit_text}"
    if estimate.low is None or estimate.high is None:
        reason = f"{estimate.n:,} values are too few for an interval of {gate.stat}"
        return undecided(gate, reason, estimate)
    if math.isinf(estimate.low) and gate.wants_low:
        return failed(
            gate, f"never reached: {_share_lost(estimate)} failed before it, wanted {limit}", estimate
        )
    kind, sure = gate.about.kind, f"{100 * gate.confidence:g} %"
    low, high = format_value(estimate.low, kind), format_value(estimate.high, kind)
    said = f"between {low} and {high} ({sure}), wanted {limit}"
    good = [gate.holds(estimate.low), gate.holds(estimate.high)]
    if all(good):
        return Result(gate, "pass", said, False, estimate)
    return undecided(gate, said, estimate) if any(good) else failed(gate, said, estimate)


def _share_lost(estimate: Estimate) -> str:
    return f"{estimate.lost:,} of {estimate.n:,} ({format_share(estimate.lost / estimate.n)})"

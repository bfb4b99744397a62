"""Numbers from evidence: a per-stream metric's stat, a share of requests, a gate's number."""

from __future__ import annotations

from collections.abc import Iterable

from harness.judge.binomial import share_interval
from harness.judge.evidence import Cell, Cells
from harness.judge.gates import Gate
from harness.judge.metrics import QUANTILES, View
from harness.judge.sample import Estimate


def estimate_gate(gate: Gate, cells: Cells, seconds: float) -> Estimate | None:
    """Return the gate's number with its interval; None if nothing says anything about it.

    *seconds* is how long the measured part took: what tokens per second are counted over.
    """
    kind = gate.about.kind
    if not cells:
        return None
    if kind == "time":
        stat = QUANTILES.get(gate.stat, gate.stat)
        return estimate_time(
            cells, gate.metric, stat, view=gate.view, failed=gate.failed,
            low_is_good=gate.wants_low, confidence=gate.confidence,
        )  # fmt: skip
    if kind == "rate":
        return estimate_rate(cells, gate.metric, gate.confidence)
    if kind == "count":
        started = sum(sum(cell.outcomes.values()) for cell in cells)
        return Estimate(float(started), started) if started else None
    streams = sum(cell.streams for cell in cells)
    if not streams or seconds <= 0.0:
        return None
    return Estimate(sum(cell.tokens for cell in cells) / seconds, streams)


def estimate_time(cells: Cells, metric: str, stat: float | str, *, view: View, failed: str,
                  low_is_good: bool = True, confidence: float | None = None) -> Estimate | None:  # fmt: skip
    """Return a per-stream metric over *cells*; None if no stream had anything to say.

    *stat* is a quantile or ``mean``, ``min``, ``max``.
    """
    sample = cells.sample(metric, view)
    if failed == "leave_out":
        sample = sample.without_failures()
    elif not low_is_good and sample.lost:
        sample = sample.failures_as(0.0)
    if not len(sample):
        return None
    if isinstance(stat, float):
        return sample.quantile(stat, confidence)
    return {"mean": sample.mean, "min": sample.smallest, "max": sample.largest}[stat]()


def estimate_rate(cells: Iterable[Cell], metric: str, confidence: float | None = None) -> Estimate | None:
    """Return a share of requests over *cells*; None if there is none to share."""
    part = whole = 0
    for cell in cells:
        hits, of = _share(cell, metric)
        part, whole = part + hits, whole + of
    if not whole:
        return None
    low, high = (None, None) if confidence is None else share_interval(part, whole, confidence)
    return Estimate(part / whole, whole, low=low, high=high)


def _share(cell: Cell, metric: str) -> tuple[int, int]:
    outcomes = cell.outcomes
    whole = sum(outcomes.values()) - outcomes["abandoned"]
    done, aborted = outcomes["completed"], outcomes["aborted"]
    match metric:
        case "success_rate":
            return done, whole
        case "error_rate":
            return whole - done - aborted, whole
        case "rejected_rate":
            return cell.rejected, whole
        case "stall_rate":
            return outcomes["stalled"], whole
        case "unfinished_rate":
            return aborted, whole
        case "recovered_rate":
            return cell.recovered, cell.failed_first
    return cell.good, whole  # goodput

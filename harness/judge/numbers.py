"""A run as a handful of numbers, one per metric, stat and filter:

What baselines keep and comparisons compare.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from harness.judge.estimates import estimate_gate, estimate_rate, estimate_time
from harness.judge.evidence import Evidence
from harness.judge.gates import Gate, Gates
from harness.judge.metrics import METRICS, MIN_SAMPLES, QUANTILES, RATES, TIMES, View

# What is kept of every run, asked for or not: the stats that a run of a few minutes can know.
STATS = ("p50", "p95", "p99")


class Number(msgspec.Struct, frozen=True):
    """A value from *n* streams or requests; null if it was not reached within what the run saw."""

    value: float | None
    n: int

    @property
    def finite(self) -> float:
        """The value, infinite for null."""
        return math.inf if self.value is None else self.value


class RunNumbers(msgspec.Struct, frozen=True):
    """One run's numbers by key (see `number_key`), and what it was a run of."""

    run: str
    started_at: float | None
    gateway: str
    simulated: bool
    time_scale: float
    version: str
    tags: dict[str, str]
    numbers: dict[str, Number]


def number_key(
    metric: str, stat: str, where: Mapping[str, str], view: View = "attempt", leave_out: bool = False
) -> str:
    """Return the name under which a number is kept: ``ttft p95 {protocol=chat}``."""
    parts = [metric if stat in ("rate", "value") else f"{metric} {stat}"]
    if where:
        parts.append("{" + ",".join(f"{key}={where[key]}" for key in sorted(where)) + "}")
    if METRICS[metric].kind == "time" and view == "request":
        parts.append("per request")
    if leave_out:
        parts.append("without failures")
    return " ".join(parts)


def key_of(gate: Gate) -> str:
    """Return the key of the number that *gate* looks at."""
    return number_key(gate.metric, gate.stat, gate.where, gate.view, gate.failed == "leave_out")


def numbers_of(evidence: Evidence, gates: Gates | None = None) -> dict[str, Number]:
    """Return the standard numbers, over all and per protocol, and those that *gates* look at."""
    found: dict[str, Number] = {}
    protocols = evidence.labels("protocol")
    wheres: Sequence[Mapping[str, str]] = [
        {}, *({"protocol": name} for name in protocols if len(protocols) > 1)
    ]  # fmt: skip
    for where in wheres:
        found.update(standard_numbers(evidence, where))
    for gate in gates.gates if gates else ():
        estimate = estimate_gate(gate, evidence.select(gate.where), evidence.seconds)
        if estimate is not None and estimate.n >= gate.min_samples:
            unknown = estimate.at_least or math.isinf(estimate.value)
            found[key_of(gate)] = Number(None if unknown else estimate.value, estimate.n)
    return found


def standard_numbers(
    evidence: Evidence, where: Mapping[str, str], metrics: Iterable[str] = (*TIMES, *RATES)
) -> dict[str, Number]:
    """Return the standard numbers of one filter; a stat with too few streams behind it is left out."""
    cells = evidence.select(where)
    found = {}
    for metric in metrics:
        if METRICS[metric].kind == "rate":
            estimate = estimate_rate(cells, metric)
            if estimate is not None and metric != "goodput":  # goodput depends on a file's [slo]
                found[number_key(metric, "rate", where)] = Number(estimate.value, estimate.n)
            continue
        for stat in STATS:
            estimate = estimate_time(cells, metric, QUANTILES[stat], view="attempt", failed="count")
            if estimate is not None and estimate.n >= MIN_SAMPLES[stat]:
                unknown = estimate.at_least or math.isinf(estimate.value)
                key = number_key(metric, stat, where)
                found[key] = Number(None if unknown else estimate.value, estimate.n)
    return found

"""Exact quantiles of one measure over many streams, honest about those that were cut short.

A stream that the run's end cut before its first token has a time to first token of *at least* so much. To
leave it out would make the slow streams vanish; to count the time so far would call it fast. So:

* every value known: linear interpolation between the two nearest values (numpy's default, type 7);
* some values only "at least": the Kaplan–Meier estimate, which is an observed value, or None where the
  quantile lies beyond what the run saw. Failures that never had the value are in neither: see `missing`.
"""

from __future__ import annotations

from array import array
from typing import Any

from harness.stream.assemble import quantile

STATS = (("p50_s", 0.50), ("p95_s", 0.95), ("p99_s", 0.99))

# A 95 % order-statistic interval for p99 exists from here on; below, it is little more than the maximum.
P99_NEEDS = 299


class Sample:
    """Values in seconds: known, censored ("at least") and missing."""

    __slots__ = ("censored", "missing", "values")

    def __init__(self) -> None:
        self.values: array[float] = array("d")
        self.censored: array[float] = array("d")
        self.missing = 0

    def add(self, value: float | None, at_least: float | None = None) -> None:
        """Add a value; without one, that it was at least *at_least*; without either, that it is missing."""
        if value is not None:
            self.values.append(value)
        elif at_least is not None:
            self.censored.append(at_least)
        else:
            self.missing += 1

    def quantiles(self) -> dict[str, float | None]:
        """Return p50, p95 and p99; None where they are not known."""
        if not self.values:
            return {name: None for name, _ in STATS}
        if not self.censored:
            ordered = sorted(self.values)
            return {name: quantile(ordered, q) for name, q in STATS}
        return {name: kaplan_meier(self.values, self.censored, q) for name, q in STATS}

    def to_plain(self) -> dict[str, Any]:
        """Return the numbers for the summary; seconds, rounded to the microsecond."""
        numbers: dict[str, float | None] = {
            "min_s": min(self.values, default=None),
            "mean_s": sum(self.values) / len(self.values) if self.values else None,
            **self.quantiles(),
            "max_s": max(self.values, default=None),
        }
        return {
            "n": len(self.values),
            "censored": len(self.censored),
            "missing": self.missing,
            **{name: None if value is None else round(value, 6) for name, value in numbers.items()},
        }


def kaplan_meier(values: array[float], censored: array[float], q: float) -> float | None:
    """Return the smallest value that at least the share *q* is estimated not to exceed, or None."""
    # At equal times what happened comes before what was cut: the cut one was still at risk then.
    moments = sorted([(value, 0) for value in values] + [(value, 1) for value in censored])
    at_risk, beyond = len(moments), 1.0
    for moment, cut in moments:
        if not cut:
            beyond *= 1.0 - 1.0 / at_risk
            if 1.0 - beyond >= q - 1e-12:
                return moment
        at_risk -= 1
    return None

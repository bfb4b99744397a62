"""One measure over many streams, with those that never had it: the base of every percentile that is judged.

A stream without a value is one of two things. It *failed*: then the value never came, which counts as
infinitely late. Or the client ended it first (the run's end, a user who left): then the value would have
come after at least so much time. Leaving either out would let a run pass whose slow half hung.

* Without at-least times the quantile is interpolated linearly between neighbours (type 7); where a neighbour
  is a failure, it is infinite.
* With them it is the Kaplan–Meier estimate. Where that is not reached within what the run saw, all that is
  known is a lower bound: the quantile if every at-least time had been the value.
* The interval is distribution-free: its lower end takes each at-least time for the value, its upper end for
  infinite, so it holds whatever the unfinished streams would have done.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from harness.judge.binomial import quantile_ranks

# A few streams cut by the run's end do not hide a maximum; more than this share of them might.
_CUT_TOLERATED = 0.01


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number from *n* streams or requests.

    `value` is infinite if it never came. With `at_least` it is only a lower bound: the run was too short to
    see more. `low` and `high` enclose it with the asked confidence; None if there is no such interval.
    """

    value: float
    n: int
    at_least: bool = False
    low: float | None = None
    high: float | None = None
    lost: int = 0  # of n, how many failed before they had a value
    cut: int = 0  # of n, how many the client ended before they had one


class Sample:
    """Values in seconds: known, at least so much (`cut`), and never (`lost`)."""

    __slots__ = ("_ordered", "_values", "add", "cut", "lost")

    def __init__(self) -> None:
        self._values: array[float] = array("d")
        self._ordered: array[float] = array("d")
        # Add a value that was measured. The array's own method: a million records call it ten times each.
        self.add = self._values.append
        self.cut: array[float] = array("d")
        self.lost = 0

    @classmethod
    def of(cls, samples: Iterable[Sample]) -> Sample:
        """Return one sample with the values of all *samples*; of one, itself, so that it stays sorted."""
        samples = list(samples)
        if len(samples) == 1:
            return samples[0]
        merged = cls()
        for sample in samples:
            merged._values.extend(sample._values)
            merged.cut.extend(sample.cut)
            merged.lost += sample.lost
        return merged

    @property
    def known(self) -> array[float]:
        """The measured values, ascending."""
        if len(self._ordered) != len(self._values):  # values are only ever added
            self._ordered = array("d", sorted(self._values))
        return self._ordered

    def __len__(self) -> int:
        return len(self._values) + len(self.cut) + self.lost

    def without_failures(self) -> Sample:
        """Return the sample without the streams that failed; those that were cut stay in."""
        rest = Sample()
        rest._values, rest._ordered, rest.cut = self._values, self._ordered, self.cut
        rest.add = rest._values.append
        return rest

    def failures_as(self, value: float) -> Sample:
        """Return the sample with each failure as *value*: 0.0 where a gate wants large numbers."""
        rest = Sample.of([self, Sample()])
        rest._values.extend([value] * rest.lost)
        rest.lost = 0
        return rest

    def quantile(self, q: float, confidence: float | None = None) -> Estimate:
        """Return the *q* quantile, with its interval if *confidence* is given.

        The sample must not be empty.
        """
        value, at_least = self._quantile(q)
        low = high = None
        ranks = None if confidence is None else quantile_ranks(len(self), q, confidence)
        if ranks is not None:
            low, high = self._ranked(ranks[0], as_known=True), self._ranked(ranks[1], as_known=False)
        return self._estimate(value, at_least, low, high)

    def mean(self) -> Estimate:
        """Return the mean; infinite with a failure, a lower bound if what was cut is larger than the rest."""
        if self.lost:
            return self._estimate(math.inf)
        known = self.known
        if self.cut and known and max(self.cut) < known[-1]:
            return self._estimate(math.fsum(value * weight for value, weight in self._weights()))
        return self._estimate((math.fsum(known) + math.fsum(self.cut)) / len(self), bool(self.cut))

    def smallest(self) -> Estimate:
        """Return the smallest value that was measured."""
        known = self.known
        if known:
            return self._estimate(known[0])
        return self._estimate(math.inf) if self.lost else self._estimate(min(self.cut), True)

    def largest(self) -> Estimate:
        """Return the largest value; a lower bound if more than 1 % of the streams were cut."""
        if self.lost:
            return self._estimate(math.inf)
        known = self.known
        largest = max(known[-1] if known else 0.0, max(self.cut, default=0.0))
        return self._estimate(largest, len(self.cut) > _CUT_TOLERATED * len(self))

    def _estimate(
        self, value: float, at_least: bool = False, low: float | None = None, high: float | None = None
    ) -> Estimate:
        return Estimate(value, len(self), at_least, low, high, self.lost, len(self.cut))

    def _quantile(self, q: float) -> tuple[float, bool]:
        known, n = self.known, len(self)
        if not self.cut:
            place = q * (n - 1)
            below = math.floor(place)
            rest = place - below
            above = below + 1 if rest > 0 else below
            if above >= len(known):
                return math.inf, False
            return known[below] + (known[above] - known[below]) * rest, False
        beyond, left, seen = 1.0, n, 0
        for moment in (*sorted(self.cut), math.inf):
            happened = bisect_right(known, moment, seen) - seen
            if left:
                # Smallest k with 1 - beyond * (left - k) / left >= q; the margin forgives rounding only.
                k = max(1, math.ceil(left * (1.0 - (1.0 - q) / beyond) - 1e-9))
                if k <= happened:
                    return known[seen + k - 1], False
                beyond *= (left - happened) / left
            seen += happened
            left -= happened + 1
            if beyond <= 0.0:
                break
        # Not reached. What is left are failures (never), and streams that were cut beyond all that was seen.
        if self.lost and known and max(self.cut) <= known[-1]:
            return math.inf, False
        rank = max(1, math.ceil(q * n - 1e-9))
        bound = self._ranked(rank, as_known=True)
        return bound, not math.isinf(bound)

    def _ranked(self, rank: int, as_known: bool) -> float:
        """Return the value of *rank* (from 1) with cut streams as known, or else as infinite."""
        ordered = sorted([*self.known, *self.cut]) if as_known and self.cut else self.known
        return ordered[rank - 1] if rank <= len(ordered) else math.inf

    def _weights(self) -> Iterable[tuple[float, float]]:
        """Yield each known value with its Kaplan–Meier weight; they add up to 1 if the largest is known."""
        known = self.known
        beyond, left, seen = 1.0, len(self), 0
        for moment in (*sorted(self.cut), math.inf):
            happened = bisect_right(known, moment, seen) - seen
            for value in known[seen : seen + happened]:
                yield value, beyond / left
            if left:
                beyond *= (left - happened) / left
            seen += happened
            left -= happened + 1

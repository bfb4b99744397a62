"""Fixed-bucket histograms of plain lists, and the bounds that this project uses, in seconds.

Two rules stand behind the bounds. A limit that people set (1 s, 2.5 s) is a bound, so that the share of
streams within it is an exact count and no interpolation. A moment at which something is *scheduled* is
never a bound: keepalives due every 10 s arrive between 10.00 and 10.05 s, and a bound at 10 would split
them over two buckets by jitter alone; hence 9.5 and 10.5.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from math import inf, isfinite

Bounds = tuple[float, ...]

_BEYOND_TWO_MINUTES = (150.0, 180.0, 300.0, 600.0)

FIRST_TOKEN: Bounds = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0, 1.25, 1.6, 2.0, 2.5, 3.2,
    4.0, 5.0, 6.3, 8.0, 10.0, 12.5, 16.0, 20.0, 30.0, 45.0, 60.0, 120.0, *_BEYOND_TWO_MINUTES,
)  # fmt: skip
GAP: Bounds = (
    0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.065, 0.08, 0.1, 0.15, 0.2,
    0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 7.5, 10.5, 12.5, 15.5, 20.0, 30.0, 45.0, 60.0,
)  # fmt: skip
# A silence ends with a keepalive as often as with a token, so the bounds avoid 10 and 15 s as well.
SILENCE: Bounds = (*GAP[4:], 90.0, 120.0, *_BEYOND_TWO_MINUTES)
KEEPALIVE: Bounds = (
    1.0, 2.5, 5.0, 7.5, 9.0, 9.5, 10.5, 11.0, 12.5, 14.0, 14.5, 15.5, 16.0, 17.5, 20.0, 25.0, 30.0,
    45.0, 60.0,
)  # fmt: skip
DURATION: Bounds = (
    0.1, 0.25, 0.5, 1.0, 1.6, 2.5, 4.0, 6.3, 8.0, 10.0, 12.5, 16.0, 20.0, 25.0, 32.0, 40.0, 50.0, 63.0, 80.0,
    100.0, 125.0, 160.0, 200.0, 300.0, 450.0, 600.0, 900.0, 1800.0, 3600.0,
)  # fmt: skip
# A stall that was closed at its limit lasts the limit and a little: the bounds lie just beyond round limits.
STALL: Bounds = (
    0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.5, 15.5, 20.5, 31.0, 46.0, 61.0, 91.0, 121.0, 151.0, 166.0, 181.0,
    241.0, 301.0, 451.0, 601.0, 901.0, 1801.0,
)  # fmt: skip
LAG: Bounds = (
    0.0001, 0.00025, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0,
)  # fmt: skip
RETRY_WAIT: Bounds = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0)
ATTEMPTS: Bounds = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)


def scaled(bounds: Bounds, factor: float) -> Bounds:
    """Return *bounds* times *factor*, rounded to six digits so that they print the same everywhere."""
    if factor == 1.0:
        return bounds
    return tuple(float(f"{bound * factor:.6g}") for bound in bounds)


class Histogram:
    """Counts per bucket; bucket *i* holds the values above bound *i - 1* and up to bound *i*.

    Values that are no measurement (NaN, infinite, negative) would poison the sum for ever: they are left
    out and counted in `rejected`.
    """

    __slots__ = ("bounds", "counts", "rejected", "sum")

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0
        self.rejected = 0

    @property
    def count(self) -> int:
        """How many values were counted."""
        return sum(self.counts)

    def add(self, value: float) -> None:
        """Count one value."""
        if 0.0 <= value < inf:
            self.counts[bisect_left(self.bounds, value)] += 1
            self.sum += value
        else:
            self.rejected += 1

    def add_many(self, values: Iterable[float]) -> None:
        """Count many values at once: once sorted, a bucket costs one search, however full."""
        ordered = sorted(values)
        total = sum(ordered)
        # NaN makes any order meaningless, so it has to be looked for before the order is trusted.
        if not ordered or not isfinite(total) or ordered[0] < 0.0:
            for value in ordered:
                self.add(value)
            return
        counts, bounds = self.counts, self.bounds
        seen, size = 0, len(ordered)
        for bucket in range(bisect_left(bounds, ordered[0]), len(bounds)):
            upto = bisect_right(ordered, bounds[bucket], seen)
            counts[bucket] += upto - seen
            seen = upto
            if seen == size:
                break
        counts[-1] += size - seen
        self.sum += total

    def merge(self, other: Histogram) -> None:
        """Add the counts of *other*. Raises `ValueError` if its bounds are not the same."""
        if other.bounds != self.bounds:
            raise ValueError("histograms with different bounds cannot be added")
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        self.sum += other.sum
        self.rejected += other.rejected

    def cumulative(self) -> list[int]:
        """Return for each bound how many values were at most as large; the last is the count of all."""
        running, result = 0, []
        for count in self.counts:
            running += count
            result.append(running)
        return result

    def quantile(self, q: float) -> float | None:
        """Return the *q* quantile (0 to 1), linear inside its bucket as Prometheus does; None without values.

        Beyond the last bound nothing is known but that: the last bound is returned.
        """
        running = self.cumulative()
        if not running[-1]:
            return None
        rank = q * running[-1]
        bucket = bisect_left(running, rank) if rank > 0 else next(i for i, n in enumerate(self.counts) if n)
        if bucket >= len(self.bounds):
            return self.bounds[-1]
        low = self.bounds[bucket - 1] if bucket else 0.0
        inside = rank - (running[bucket] - self.counts[bucket])
        return low + (self.bounds[bucket] - low) * inside / self.counts[bucket]

    def to_plain(self) -> list[object]:
        """Return ``[counts, sum, rejected]``: the bounds are known from what the histogram is of."""
        return [list(self.counts), self.sum, self.rejected]

    @classmethod
    def from_plain(cls, bounds: Bounds, plain: Sequence[object]) -> Histogram:
        """Return the histogram of `to_plain`. Raises `ValueError` if it was made with other bounds."""
        counts, total, rejected = plain
        if not isinstance(counts, list | tuple) or len(counts) != len(bounds) + 1:
            raise ValueError("a histogram was made with other bounds: all nodes must run the same version")
        made = cls(bounds)
        made.counts = [int(n) for n in counts]
        made.sum = _number(total)
        made.rejected = int(_number(rejected))
        return made


def _number(value: object) -> float:
    if not isinstance(value, int | float):
        raise ValueError(f"{value!r} is not a number")
    return float(value)

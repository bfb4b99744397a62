"""Comparing two handfuls of numbers without assuming how they are spread: Mann–Whitney and Hodges–Lehmann.

A number here is one run (or one block of time of a run), never one stream: streams of a run share queues, so
their thousands are no independent witnesses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

# Up to this many pairs the distribution is counted out exactly; beyond, its normal limit is as good as equal.
_EXACT_PAIRS = 1_600


@dataclass(frozen=True, slots=True)
class Shift:
    """How far B lies above A: the median of all pairwise differences, and its confidence interval.

    `low` and `high` are infinite where so few numbers allow no interval; `p` is two-sided.
    """

    estimate: float
    low: float
    high: float
    p: float


def mann_whitney(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the two-sided p-value of A and B being drawn from the same distribution; 1.0 if one is empty.

    Exact without ties for up to 1,600 pairs; with ties (and beyond) by the normal limit with both
    corrections. The smallest value that 3 + 3 numbers can give is 0.10, 4 + 4 0.029, 5 + 5 0.008.
    """
    n, m = len(a), len(b)
    if not n or not m:
        return 1.0
    wins = sum((x > y) + 0.5 * (x == y) for x in b for y in a)
    if n * m <= _EXACT_PAIRS and len({*a, *b}) == n + m:
        counts = _wins_counts(n, m)
        tail = sum(counts[: round(min(wins, n * m - wins)) + 1])
        return min(1.0, 2.0 * tail / sum(counts))
    ties = _tie_term([*a, *b])
    total = n + m
    variance = n * m / 12.0 * (total + 1 - ties / (total * (total - 1)))
    if variance <= 0.0:
        return 1.0  # all numbers are the same
    z = max(0.0, abs(wins - n * m / 2.0) - 0.5) / math.sqrt(variance)
    return math.erfc(z / math.sqrt(2.0))


def shift(a: Sequence[float], b: Sequence[float], confidence: float = 0.95) -> Shift:
    """Return the Hodges–Lehmann shift from A to B. Both must hold finite numbers, at least one each."""
    differences = sorted(y - x for x in a for y in b)
    pairs = len(differences)
    middle = (differences[(pairs - 1) // 2] + differences[pairs // 2]) / 2.0
    cut = _cut(len(a), len(b), 1.0 - confidence)
    low, high = (-math.inf, math.inf) if cut is None else (differences[cut], differences[pairs - 1 - cut])
    return Shift(middle, low, high, mann_whitney(a, b))


def smallest_p(n: int, m: int) -> float:
    """Return the smallest two-sided p-value that *n* and *m* numbers can give."""
    return min(1.0, 2.0 / math.comb(n + m, n))


def _cut(n: int, m: int, alpha: float) -> int | None:
    """Return how many of the sorted pairwise differences lie outside the interval on each side."""
    if n * m <= _EXACT_PAIRS:
        counts = _wins_counts(n, m)
        allowed, tail = alpha / 2.0 * sum(counts), 0
        for below, count in enumerate(counts):
            tail += count
            if tail > allowed:
                return below - 1 if below else None
    z = _normal_quantile(1.0 - alpha / 2.0)
    place = n * m / 2.0 - z * math.sqrt(n * m * (n + m + 1) / 12.0)
    return max(0, math.floor(place)) if place > 0 else None


@lru_cache(maxsize=64)
def _wins_counts(n: int, m: int) -> list[int]:
    """Return in how many of the orders of n + m different numbers B wins 0, 1, 2, … of the n·m pairs.

    The generating function is the Gaussian binomial: multiply by 1 - x^(m+i) and divide by 1 - x^i, i = 1 …
    n.
    """
    size = n * m + 1
    counts = [1] + [0] * (size - 1)
    for i in range(1, n + 1):
        for k in range(size - 1, m + i - 1, -1):
            counts[k] -= counts[k - m - i]
        for k in range(i, size):
            counts[k] += counts[k - i]
    return counts


def _tie_term(values: Sequence[float]) -> float:
    """Return the sum of t³ - t over groups of t equal numbers."""
    groups: dict[float, int] = {}
    for value in values:
        groups[value] = groups.get(value, 0) + 1
    return float(sum(t**3 - t for t in groups.values()))


def _normal_quantile(p: float) -> float:
    """Return the standard normal quantile, by bisection on the error function."""
    low, high = -10.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2.0
        if math.erfc(-middle / math.sqrt(2.0)) / 2.0 < p:
            low = middle
        else:
            high = middle
    return (low + high) / 2.0

"""The binomial distribution, exactly, and the two intervals that need nothing else.

Both hold for values of any distribution: a quantile's interval runs between two order statistics, a share's
is the one of Clopper and Pearson. Neither assumes a bell curve, which no latency has.
"""

from __future__ import annotations

import math
from collections.abc import Callable

# Lentz's method stops when a factor changes the result by less than this; about sqrt(n) steps are needed.
_PRECISION = 1e-15
_TINY = 1e-300
_MOST_STEPS = 100_000
_BISECTIONS = 80  # halves [0, 1] down to below one unit in the last place


def at_least(k: int, n: int, p: float) -> float:
    """Return the probability of *k* or more successes in *n* trials of probability *p*."""
    if k <= 0:
        return 1.0
    if k > n:
        return 0.0
    return _regularized_beta(p, k, n - k + 1)


def at_most(k: int, n: int, p: float) -> float:
    """Return the probability of *k* or fewer successes in *n* trials of probability *p*."""
    if k < 0:
        return 0.0
    if k >= n:
        return 1.0
    # Not 1 - at_least: tails of 1e-20 have to stay apart from zero.
    return _regularized_beta(1.0 - p, n - k, k + 1)


def share_interval(k: int, n: int, confidence: float) -> tuple[float, float]:
    """Return the Clopper–Pearson interval of a share of which *k* in *n* were seen; `(0, 1)` for n = 0.

    It covers the true share with at least *confidence*, whatever it is. Nothing seen in 299 bounds it by 1.0
    % on one side at 95 %; two-sided, as here, by 1.23 %.
    """
    if n == 0:
        return 0.0, 1.0
    tail = (1.0 - confidence) / 2.0
    low = 0.0 if k == 0 else _bisect(lambda p: at_least(k, n, p) < tail)
    high = 1.0 if k == n else _bisect(lambda p: at_most(k, n, p) >= tail)
    return low, high


def quantile_ranks(n: int, q: float, confidence: float) -> tuple[int, int] | None:
    """Return the ranks (from 1) of the two order statistics between which the *q* quantile lies.

    With equal tails where *n* allows it; near an edge, where one tail cannot be made that small, the other
    gets what is left. None if *n* is too small for any interval: below 6 for p50, 59 for p95, 299 for p99 at
    95 %.
    """
    alpha = 1.0 - confidence
    if n < 1 or q**n + (1.0 - q) ** n > alpha + 1e-12:
        return None
    # The interval misses above if as many values as the upper rank lie below the quantile, and misses below
    # if fewer than the lower rank do. Where one tail cannot shrink to half of alpha, the other gives way.
    high_tail = max(alpha / 2.0, at_least(n, n, q))
    low_tail = max(alpha / 2.0, at_most(0, n, q))
    if high_tail + low_tail > alpha:
        if high_tail > alpha / 2.0:
            low_tail = alpha - high_tail
        else:
            high_tail = alpha - low_tail
    high = _first(1, n, lambda u: at_least(u, n, q) <= high_tail + 1e-12)
    low = _first(1, n, lambda rank: at_most(rank - 1, n, q) > low_tail + 1e-12) - 1
    return max(low, 1), high


def samples_needed(q: float, confidence: float = 0.95) -> int:
    """Return from how many values on an interval for the *q* quantile exists."""
    n = 1
    while quantile_ranks(n, q, confidence) is None:
        n += 1
    return n


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Return the first number of the range from which on *holds* is true; high + 1 if there is none."""
    high += 1
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _bisect(below: Callable[[float], bool]) -> float:
    """Return where *below*, true at 0, turns false."""
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        if below(middle):
            low = middle
        else:
            high = middle
    return (low + high) / 2.0


def _regularized_beta(x: float, a: float, b: float) -> float:
    """Return I_x(a, b), by the continued fraction on the side where it converges fast."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _fraction(x, a, b) / a
    return 1.0 - front * _fraction(1.0 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    """Return the continued fraction of the incomplete beta function (modified Lentz)."""
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > _TINY else _TINY)
    value = d
    for m in range(1, _MOST_STEPS):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 + numerator * d
            d = 1.0 / (d if abs(d) > _TINY else _TINY)
            c = 1.0 + numerator / c
            c = c if abs(c) > _TINY else _TINY
            value *= c * d
        if abs(c * d - 1.0) < _PRECISION:
            break
    return value

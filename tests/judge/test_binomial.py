"""The binomial distribution against numbers that can be counted by hand, and the intervals built on it."""

from __future__ import annotations

import math
import random

import pytest

from harness.judge.binomial import at_least, at_most, quantile_ranks, samples_needed, share_interval


@pytest.mark.parametrize(("n", "p"), [(1, 0.5), (7, 0.3), (40, 0.95), (60, 0.01)])
def test_tails_are_the_sums_of_their_terms(n, p):
    terms = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
    for k in range(-1, n + 2):
        assert sum(terms[max(0, k) :]) == pytest.approx(at_least(k, n, p), rel=1e-10)
        assert sum(terms[: max(0, k + 1)]) == pytest.approx(at_most(k, n, p), rel=1e-10)


@pytest.mark.parametrize(("q", "needed"), [(0.5, 6), (0.9, 29), (0.95, 59), (0.99, 299), (0.999, 2995)])
def test_from_how_many_values_on_an_interval_exists(q, needed):
    assert needed == samples_needed(q)
    assert quantile_ranks(needed - 1, q, 0.95) is None


@pytest.mark.parametrize(
    ("n", "q", "ranks"),
    [
        (6, 0.5, (1, 6)),  # the whole sample: 1 - 2 / 64
        (59, 0.95, (50, 59)),  # up to the maximum, and what is left of 5 % below
        (200, 0.99, None),
        (1000, 0.95, (936, 964)),
    ],
)
def test_ranks_of_a_quantiles_interval(n, q, ranks):
    assert ranks == quantile_ranks(n, q, 0.95)


@pytest.mark.parametrize(
    ("n", "q"), [(6, 0.5), (59, 0.95), (300, 0.99), (77, 0.9), (1000, 0.5), (4000, 0.999)]
)
def test_the_interval_covers_at_least_as_often_as_it_says(n, q):
    """Exactly: the quantile lies below rank l with P(B < l), above rank u with P(B >= u)."""
    low, high = quantile_ranks(n, q, 0.95) or (0, 0)

    assert at_most(low - 1, n, q) + at_least(high, n, q) <= 0.05 + 1e-9


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [
        (0, 10, 0.0, 0.3085),  # 1 - 0.025 ** (1 / 10)
        (10, 10, 0.6915, 1.0),
        (5, 10, 0.1871, 0.8129),
        (0, 0, 0.0, 1.0),  # nothing is known of nothing
    ],
)
def test_interval_of_a_share(k, n, low, high):
    assert (low, high) == pytest.approx(share_interval(k, n, 0.95), abs=1e-4)


def test_the_interval_of_a_quantile_covers_in_simulation():
    """400 samples of 100 from an exponential distribution; the median is ln 2. Seeded."""
    chance, hits = random.Random(7), 0
    ranks = quantile_ranks(100, 0.5, 0.95)
    assert ranks is not None
    for _ in range(400):
        values = sorted(chance.expovariate(1.0) for _ in range(100))
        hits += values[ranks[0] - 1] <= math.log(2) <= values[ranks[1] - 1]

    assert 376 <= hits  # 94 %; the interval's own level is 95 to 97 %


def test_a_million_trials_are_no_harder():
    assert (499_020, 500_981) == quantile_ranks(1_000_000, 0.5, 0.95)

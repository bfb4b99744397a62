"""Mann–Whitney and Hodges–Lehmann against counts by hand and published values."""

from __future__ import annotations

import itertools
import math

import pytest

from harness.judge.ranks import mann_whitney, shift, smallest_p


@pytest.mark.parametrize(
    ("a", "b", "p"),
    [
        ([1, 2, 3], [4, 5, 6], 0.1),  # 2 / 20
        ([1, 2, 3, 4], [5, 6, 7, 8], 2 / 70),
        ([1, 2, 3, 4, 5], [6, 7, 8, 9, 10], 2 / 252),
        ([1, 3, 5], [2, 4, 6], 0.7),  # B wins 6 of 9: the tail 0 … 3 holds 1+1+2+3 of 20 orders
        ([1, 1], [1, 1], 1.0),  # nothing but ties
        ([], [1], 1.0),
    ],
)
def test_p_value(a, b, p):
    assert p == pytest.approx(mann_whitney(a, b))
    assert p == pytest.approx(mann_whitney(b, a))


def test_exact_p_is_the_share_of_all_orders():
    """Every way to deal nine different numbers to 4 and 5, counted out."""
    values = [1.0, 2.5, 3.0, 4.2, 5.1, 6.0, 7.7, 8.0, 9.3]
    a, b = [1.0, 3.0, 4.2, 7.7], [2.5, 5.1, 6.0, 8.0, 9.3]

    def wins(ours):
        return sum(y > x for x in ours for y in values if y not in ours)

    seen = min(wins(a), 20 - wins(a))
    dealt = [wins(ours) for ours in itertools.combinations(values, 4)]
    share = sum(w <= seen or w >= 20 - seen for w in dealt) / len(dealt)

    assert share == pytest.approx(mann_whitney(a, b))


def test_ties_count_half_and_take_their_part_of_the_variance():
    """B wins 2 + 3.5 + 4 + 4 of 16: z = (13.5 - 8 - 0.5) / √(16 / 12 × (9 - 30 / 56))."""
    a, b = [1.0, 2.0, 2.0, 3.0], [2.0, 3.0, 4.0, 5.0]
    z = 5.0 / math.sqrt(16 / 12 * (9 - 30 / 56))

    assert math.erfc(z / math.sqrt(2)) == pytest.approx(mann_whitney(a, b))
    assert math.erfc(z / math.sqrt(2)) == pytest.approx(mann_whitney(b, a))


def test_smallest_p_is_what_separate_groups_give():
    assert 0.1 == pytest.approx(smallest_p(3, 3))
    assert 2 / 252 == pytest.approx(smallest_p(5, 5))


def test_shift_is_the_median_difference_and_its_interval_the_third_from_each_end():
    """Of 5 + 5, U may be 2 at 5 %, so the interval leaves out two of the 25 differences on each side."""
    moved = shift([1, 2, 3, 4, 5], [11.5, 12.5, 13.5, 14.5, 15.5])
    differences = sorted(b - a for a in (1, 2, 3, 4, 5) for b in (11.5, 12.5, 13.5, 14.5, 15.5))

    assert 10.5 == moved.estimate
    assert (differences[2], differences[22]) == (moved.low, moved.high)


def test_three_against_three_bound_nothing_at_95_percent():
    moved = shift([1, 2, 3], [4, 5, 6])

    assert (-math.inf, math.inf) == (moved.low, moved.high)


def test_beyond_the_exact_bound_the_normal_limit_takes_over(monkeypatch):
    """40 against 40, B shifted by a quarter of the range: both ways, and far from any other number."""
    a = [float(i) for i in range(40)]
    b = [i + 10.25 for i in range(40)]
    exact, low = mann_whitney(a, b), shift(a, b).low
    monkeypatch.setattr("harness.judge.ranks._EXACT_PAIRS", 0)

    assert 0.00035 == pytest.approx(exact, abs=1e-5)
    assert exact == pytest.approx(mann_whitney(a, b), rel=0.3)
    assert low == pytest.approx(shift(a, b).low, abs=0.3)

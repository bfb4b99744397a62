"""Quantiles with failures and unfinished streams: neither may make a run look better."""

from __future__ import annotations

import math

import pytest

from harness.judge.sample import Sample


def sample(known=(), cut=(), lost=0):
    made = Sample()
    for value in known:
        made.add(value)
    made.cut.extend(cut)
    made.lost = lost
    return made


@pytest.mark.parametrize(
    ("made", "q", "value", "at_least"),
    [
        # all known: type 7, halfway between the second and the third of four
        (sample([1, 2, 3, 4]), 0.5, 2.5, False),
        (sample([4, 1, 3, 2]), 1.0, 4.0, False),
        # one of four failed: the median lies between 2 and 3, the maximum is never
        (sample([1, 2, 3], lost=1), 0.5, 2.5, False),
        (sample([1, 2, 3], lost=1), 1.0, math.inf, False),
        # half failed: the median lies between 2 and never
        (sample([1, 2], lost=2), 0.5, math.inf, False),
        # cut before anything happened: says nothing, Kaplan–Meier leaves it out of the risk
        (sample([1, 2, 3, 4], cut=[0.5]), 0.5, 2.0, False),
        # by hand: after 1 (of 4) 3/4 remain, the cut at 1.5 leaves 2 at risk, after 2 remain 3/8
        (sample([1, 2, 3], cut=[1.5]), 0.5, 2.0, False),
        (sample([1, 2, 3], cut=[1.5]), 0.7, 3.0, False),
        # the slow half was cut at 9: nobody knows the p95, but it is at least 9
        (sample([1, 2, 3, 4, 5], cut=[9] * 5), 0.95, 9.0, True),
        (sample([1, 2, 3, 4, 5], cut=[9] * 5), 0.5, 5.0, False),
        # cut early, and the rest failed: at least the smallest that is possible
        (sample([1], cut=[0.5], lost=2), 0.5, math.inf, False),
        # cut at the very moment of the last value: what had happened then had happened
        (sample([1, 2], cut=[2], lost=2), 0.9, math.inf, False),
        # nothing but cut streams
        (sample(cut=[3, 4]), 0.5, 3.0, True),
    ],
)  # fmt: skip
def test_quantile(made, q, value, at_least):
    estimate = made.quantile(q)

    assert value == pytest.approx(estimate.value)
    assert at_least == estimate.at_least


def test_the_interval_holds_whatever_the_unfinished_streams_would_have_done():
    """Ranks of the median of 10 at 95 % are 2 and 9; two cut at 3.5 may have come at once or never."""
    estimate = sample([1, 2, 3, 4, 5, 6, 7, 8], cut=[3.5, 3.5]).quantile(0.5, 0.95)

    assert (2.0, math.inf) == (estimate.low, estimate.high)
    assert (10, 2, 0) == (estimate.n, estimate.cut, estimate.lost)


def test_no_interval_from_five_values():
    estimate = sample([1, 2, 3, 4, 5]).quantile(0.5, 0.95)

    assert (None, None) == (estimate.low, estimate.high)


@pytest.mark.parametrize(
    ("made", "value", "at_least"),
    [
        (sample([1, 2, 6]), 3.0, False),
        (sample([1, 2, 6], lost=1), math.inf, False),
        # Kaplan–Meier weights: 1/3 on 1, the cut at 2 hands its third to 6
        (sample([1, 6], cut=[2]), 1 / 3 + 6 * 2 / 3, False),
        (sample([1, 2], cut=[9]), 4.0, True),
        # 1/5 on 1, the cut at 2 leaves 4/5 for three, of which the cut at 4 hands its part to 5
        (sample([1, 3, 5], cut=[2, 4]), 1 / 5 + 3 * 4 / 15 + 5 * 8 / 15, False),
    ],
)
def test_mean(made, value, at_least):
    assert (pytest.approx(value), at_least) == (made.mean().value, made.mean().at_least)


def test_one_cut_stream_in_a_hundred_does_not_hide_the_maximum_but_two_do():
    hundred = [float(i) for i in range(99)]

    assert (98.0, False) == (lambda e: (e.value, e.at_least))(sample(hundred, cut=[5.0]).largest())
    assert (98.0, True) == (lambda e: (e.value, e.at_least))(sample(hundred, cut=[5.0, 6.0]).largest())
    assert (200.0, True) == (lambda e: (e.value, e.at_least))(sample([1.0], cut=[200.0]).largest())


def test_smallest_is_what_was_measured():
    assert 1.0 == sample([3, 1], cut=[0.2], lost=1).smallest().value


def test_failures_can_be_left_out_and_can_count_as_zero():
    made = sample([1, 2, 3], cut=[2.5], lost=3)

    assert (0, 4) == (made.without_failures().lost, len(made.without_failures()))
    assert [0, 0, 0, 1, 2, 3] == list(made.failures_as(0.0).known)
    assert 3 == made.lost  # and the sample itself is as it was


def test_samples_add_up():
    both = Sample.of([sample([3, 1], lost=1), sample([2], cut=[5])])

    assert [1, 2, 3] == list(both.known)
    assert (1, [5]) == (both.lost, list(both.cut))

from __future__ import annotations

import math
import random

import pytest

from harness.observe import buckets
from harness.observe.buckets import Histogram

BOUNDS = (1.0, 2.0, 4.0)


def test_a_value_on_a_bound_belongs_to_the_bucket_that_ends_there():
    histogram = Histogram(BOUNDS)
    for value in (0.0, 1.0, 1.5, 2.0, 4.0, 4.1):
        histogram.add(value)

    assert histogram.counts == [2, 2, 1, 1]
    assert histogram.cumulative() == [2, 4, 5, 6]
    assert histogram.sum == pytest.approx(12.6)


def test_many_values_at_once_are_counted_as_one_by_one():
    rng = random.Random(7)
    for size in (0, 1, 2, 257):
        values = [rng.choice([*BOUNDS, rng.uniform(0, 6)]) for _ in range(size)]
        single, bulk = Histogram(BOUNDS), Histogram(BOUNDS)
        for value in values:
            single.add(value)
        bulk.add_many(values)

        assert bulk.counts == single.counts, (size, values)
        assert bulk.sum == pytest.approx(single.sum)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, -0.001])
def test_what_is_no_measurement_is_left_out_and_counted(bad):
    single, bulk = Histogram(BOUNDS), Histogram(BOUNDS)
    single.add(bad)
    single.add(1.5)
    bulk.add_many([3.0, bad, 1.5, 0.5])

    assert (single.counts, single.sum, single.rejected) == ([0, 1, 0, 0], 1.5, 1)
    assert (bulk.counts, bulk.sum, bulk.rejected) == ([1, 1, 1, 0], 5.0, 1)


def test_merging_adds_and_refuses_other_bounds():
    one, two = Histogram(BOUNDS), Histogram(BOUNDS)
    one.add_many([0.5, 3.0])
    two.add_many([0.5, 9.0, math.nan])
    one.merge(two)

    assert (one.counts, one.sum, one.rejected) == ([2, 0, 1, 1], 13.0, 1)
    with pytest.raises(ValueError, match="different bounds"):
        one.merge(Histogram((1.0, 2.0)))


def test_quantiles_are_linear_inside_a_bucket():
    histogram = Histogram(BOUNDS)
    histogram.add_many([1.5] * 4 + [3.0] * 4)  # four in (1, 2], four in (2, 4]

    assert histogram.quantile(0.0) == 1.0
    assert histogram.quantile(0.25) == 1.5
    assert histogram.quantile(0.5) == 2.0
    assert histogram.quantile(0.75) == 3.0
    assert histogram.quantile(1.0) == 4.0


def test_quantiles_of_nothing_and_beyond_the_last_bound():
    histogram = Histogram(BOUNDS)
    assert histogram.quantile(0.5) is None

    histogram.add(100.0)
    assert histogram.quantile(0.5) == 4.0


def test_plain_data_round_trip_and_another_version_is_refused():
    histogram = Histogram(BOUNDS)
    histogram.add_many([0.5, 3.0, -1.0])
    plain = histogram.to_plain()
    again = Histogram.from_plain(BOUNDS, plain)

    assert plain == [[1, 0, 1, 0], 3.5, 1]
    assert (again.counts, again.sum, again.rejected) == (histogram.counts, 3.5, 1)
    with pytest.raises(ValueError, match="same version"):
        Histogram.from_plain((1.0,), plain)


def test_limits_that_people_set_are_bounds_and_scheduled_moments_are_not():
    for bounds in (buckets.FIRST_TOKEN, buckets.SILENCE):
        assert bounds[-4:] == (150.0, 180.0, 300.0, 600.0)
    for bounds in (buckets.GAP, buckets.SILENCE, buckets.KEEPALIVE):
        assert not {10.0, 15.0} & set(bounds)
    for bounds in vars(buckets).values():
        if isinstance(bounds, tuple):
            assert list(bounds) == sorted(set(bounds))


def test_scaled_bounds_print_short():
    assert buckets.scaled((9.5, 10.5), 0.02) == (0.19, 0.21)
    assert buckets.scaled(BOUNDS, 1.0) is BOUNDS

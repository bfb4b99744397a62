"""Plans of open arrivals: rates, gaps, changes, replays; all without a clock."""

from __future__ import annotations

import itertools
import math
from random import Random

import pytest

from harness.load.arrivals import OpenLoad, Order, RatePlan, ReplayPlan, plan_of


def starts(plan, until):
    """Every start that the plan has up to the moment `until`."""
    found = []
    while (due := plan.due()) is not None and due <= until:
        found.append(plan.take()[0])
    return found


def kolmogorov_smirnov(values, cdf):
    """The largest distance between the values' distribution and `cdf`, times the root of their number."""
    values = sorted(values)
    n = len(values)
    distance = max(max((k + 1) / n - cdf(v), cdf(v) - k / n) for k, v in enumerate(values))
    return distance * math.sqrt(n)


# Beyond this the distributions differ at the level 0.001: sqrt(-ln(0.0005) / 2).
KS_AT_ONE_IN_A_THOUSAND = 1.949


def gaps(moments):
    return [b - a for a, b in itertools.pairwise(moments)]


@pytest.mark.parametrize("seed", range(5))
def test_poisson_starts_come_at_the_rate_and_their_gaps_are_exponential(seed):
    plan = RatePlan("poisson", Random(seed))
    plan.set_rate(20.0, 1000.0)
    moments = starts(plan, 1600.0)

    assert abs(len(moments) - 12_000) < 3 * math.sqrt(12_000)
    assert KS_AT_ONE_IN_A_THOUSAND > kolmogorov_smirnov(gaps(moments), lambda gap: 1 - math.exp(-20 * gap))


def test_the_test_of_gaps_sees_gaps_that_are_not_exponential():
    plan = RatePlan("poisson", Random(1))
    plan.set_rate(20.0, 0.0)
    moments = [round(moment, 1) for moment in starts(plan, 60.0)]  # arrivals in batches

    assert KS_AT_ONE_IN_A_THOUSAND < kolmogorov_smirnov(gaps(moments), lambda gap: 1 - math.exp(-20 * gap))


def test_constant_starts_are_one_period_apart_to_the_end():
    plan = RatePlan("constant", Random(1))
    plan.set_rate(8.0, 0.0)
    moments = starts(plan, 1000.0)

    assert 8000 == len(moments)
    assert pytest.approx([0.125] * 7999) == gaps(moments)


def test_processes_with_constant_starts_do_not_start_at_the_same_moments():
    firsts = set()
    for seed in range(10):
        plan = RatePlan("constant", Random(seed))
        plan.set_rate(1.0, 0.0)
        firsts.add(round(plan.take()[0], 6))

    assert 10 == len(firsts)
    assert all(0.0 <= first <= 1.0 for first in firsts)


def test_a_change_of_the_rate_keeps_what_had_already_gone_by_of_the_gap():
    plan = RatePlan("constant", Random(1))
    plan.set_rate(1.0, 0.0)
    first = plan.take()[0]
    plan.set_rate(4.0, first + 0.5)  # half of the gap is over; the other half goes four times as fast

    assert pytest.approx(first + 0.5 + 0.125) == plan.due()


def test_a_rate_that_doubles_half_way_gives_both_halves_their_number():
    plan = RatePlan("poisson", Random(2))
    plan.set_rate(50.0, 0.0)
    slow = starts(plan, 100.0)
    plan.set_rate(100.0, 100.0)
    fast = starts(plan, 200.0)

    assert abs(len(slow) - 5000) < 3 * math.sqrt(5000)
    assert abs(len(fast) - 10_000) < 3 * math.sqrt(10_000)
    assert KS_AT_ONE_IN_A_THOUSAND > kolmogorov_smirnov(gaps(fast), lambda gap: 1 - math.exp(-100 * gap))


def test_nobody_offers_nothing_comes():
    plan = RatePlan("poisson", Random(1))
    assert plan.due() is None

    plan.set_rate(5.0, 0.0)
    assert plan.due() is not None

    plan.set_rate(0.0, 0.01)
    assert plan.due() is None


def test_a_late_taker_moves_no_later_start():
    plan, late = RatePlan("poisson", Random(3)), RatePlan("poisson", Random(3))
    plan.set_rate(10.0, 0.0)
    late.set_rate(10.0, 0.0)
    moments = starts(plan, 10.0)
    # The second one is looked at only once, ten seconds late.
    assert moments == starts(late, 10.0)


@pytest.mark.parametrize("rate", [-1.0, math.inf, math.nan])
def test_a_rate_that_is_none_is_refused(rate):
    with pytest.raises(ValueError, match="no rate"):
        RatePlan("poisson", Random(1)).set_rate(rate, 0.0)


def replay(*seconds, speed=1.0, share=(0, 1)):
    return ReplayPlan([Order(at_s) for at_s in seconds], speed, share)


def test_a_replay_begins_with_the_first_user_and_keeps_the_log_s_gaps():
    plan = replay(0.0, 0.5, 2.0)
    plan.set_rate(0.0, 5.0)
    assert plan.due() is None

    plan.set_rate(1.0, 100.0)
    plan.set_rate(7.0, 100.4)  # more users change nothing
    assert [100.0, 100.5, 102.0] == starts(plan, 1000.0)
    assert plan.finished
    assert plan.due() is None


def test_a_faster_replay_shortens_the_gaps():
    plan = replay(0.0, 3.0, 6.0, speed=1.5)
    plan.set_rate(1.0, 0.0)

    assert [0.0, 2.0, 4.0] == starts(plan, 10.0)


def test_processes_share_a_replay_without_a_line_lost_or_played_twice():
    seconds = [float(n) for n in range(10)]
    found = []
    for number in range(3):
        plan = replay(*seconds, share=(number, 3))
        plan.set_rate(1.0, 0.0)
        found += starts(plan, 100.0)

    assert seconds == sorted(found)


def test_each_kind_of_load_gets_its_plan():
    assert isinstance(plan_of(OpenLoad("replay", orders=[Order(0.0)]), Random(1)), ReplayPlan)
    constant = plan_of(OpenLoad("constant"), Random(1))
    constant.set_rate(1.0, 0.0)
    assert pytest.approx([1.0] * 9) == gaps(starts(constant, 10.0))
    assert not OpenLoad().open
    assert OpenLoad("poisson").open

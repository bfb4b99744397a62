"""What a poll proves about sockets, with a clock and a scheduler that the test plays."""

from typing import cast

import gevent
import gevent.hub
import gevent.monkey
import pytest

from harness.transport.hubclock import HubClock, RunDelay

block = gevent.monkey.get_original("time", "sleep")


class Hub:
    """Stands in for a hub whose loop has no watchers of libev's kind."""

    loop = object()


class Account(RunDelay):
    """The kernel's account of the time spent ready but not running, in seconds."""

    def __init__(self):
        self._fd = -1
        self.total = self.marked = 0.0

    def mark(self):
        self.marked = self.total

    def since_mark(self):
        waited, self.marked = self.total - self.marked, self.total
        return waited


class Play:
    """Steps through turns of the loop: run greenlets, poll, read."""

    def __init__(self):
        self.now = 100.0
        self.clock = HubClock(cast(gevent.hub.Hub, Hub()), lambda: self.now)
        self.clock._run_delay = self.account = Account()
        self.delays: list[float] = []
        self.clock.on_delay = self.delays.append

    def turn(self, *, run=0.0, poll=0.0, starved=0.0, reads=0):
        """Run for *run* s, poll for *poll* s (*starved* of them without a processor), read *reads* times."""
        self.now += run
        self.clock._before_poll()
        self.now += poll
        self.account.total += starved
        self.clock._after_poll()
        self.clock.reads += reads
        return self.clock.empty_at


@pytest.fixture
def play():
    return Play()


def about(t):
    return pytest.approx(t, abs=1e-3)


def test_a_poll_that_slept_found_everything_empty_until_it_woke(play):
    assert play.turn(poll=0.04) == about(100.04)


def test_a_poll_that_did_not_sleep_leaves_the_bound_at_the_poll_before(play):
    """The events were there already; all that is known is what the previous poll saw."""
    play.turn(poll=0.04)

    assert play.turn(run=1.4, poll=0.0001) == about(100.04)


def test_after_a_busy_turn_the_next_poll_moves_the_bound_on(play):
    play.turn(run=1.4, poll=0.0001, reads=3)

    assert play.turn(run=0.001, poll=0.0001) == about(101.4)


def test_waiting_for_a_processor_is_not_sleep(play):
    """Data came after 10 ms and the process got its turn 390 ms later."""
    assert play.turn(poll=0.4, starved=0.39) == about(100.01)


def test_a_poll_that_was_only_starved_did_not_sleep_at_all(play):
    play.turn(poll=0.04)

    assert play.turn(run=1.0, poll=0.03, starved=0.03) == about(100.04)


def test_waiting_before_the_poll_is_not_counted_against_it(play):
    play.account.total += 0.2

    assert play.turn(run=0.2, poll=0.04) == about(100.24)


def test_a_sleep_beyond_our_own_timer_was_no_sleep(play):
    """The process was stopped meanwhile, and what came then was waiting when it went on."""
    play.turn(poll=0.04)

    assert play.turn(run=0.001, poll=0.7) == about(100.04)
    assert play.turn(run=0.001, poll=0.0001) == about(100.041)


def test_a_poll_that_was_full_proves_nothing_about_the_rest(play):
    """libev's first array holds 64 events; what did not fit may have been ready."""
    play.turn(poll=0.04)
    play.turn(run=1.4, poll=0.0001, reads=64)

    assert play.turn(run=0.01, poll=0.0001) == about(100.04)


def test_a_full_poll_makes_the_array_grow(play):
    play.turn(poll=0.04)
    for reads in (64, 100):
        play.turn(run=0.01, poll=0.0001, reads=reads)

    assert play.turn(run=0.01, poll=0.0001) == about(100.06)


def test_the_longest_turn_is_reported_about_every_tenth_of_a_second(play):
    for _ in range(10):
        play.turn(run=0.003, poll=0.02)
    play.turn(run=0.03, poll=0.1)

    assert [0.003, 0.003, 0.03] == pytest.approx(play.delays)


def test_a_long_block_fills_as_many_reports_as_it_lasted(play):
    """So that a percentile over the reports is one over time."""
    play.turn(run=1.45, poll=0.0)

    assert [1.45] * 14 == pytest.approx(play.delays)


def test_the_kernel_accounts_for_time_without_a_processor():
    """Real: the account exists here, and does not grow by sleeping."""
    account = RunDelay()
    try:
        assert account._total_ns() > 0
        block(0.05)
        assert account.since_mark() < 0.04
    finally:
        account.close()


def test_the_order_of_the_loop_is_what_the_bound_relies_on():
    """Greenlets, then our mark, then the poll, then our second mark, then reads."""
    clock = HubClock.of()
    order: list[str] = []

    def noted(name, mark):
        def note():
            order.append(name)
            mark()

        return note

    assert clock._prepare is not None
    assert clock._check is not None
    clock._prepare.start(noted("before", clock._before_poll))
    clock._check.start(noted("after", clock._after_poll))
    ready = gevent.get_hub().loop.timer(0)
    ready.start(order.append, "callback")
    gevent.spawn(order.append, "greenlet")
    try:
        gevent.sleep(0.01)
    finally:
        clock._prepare.start(clock._before_poll)
        clock._check.start(clock._after_poll)
        ready.close()

    assert order[:4] == ["greenlet", "before", "after", "callback"]


def test_one_clock_per_hub():
    assert HubClock.of() is HubClock.of(gevent.get_hub())

"""Greenlets of ended exchanges wake in order, and the hub looks at its sockets in between."""

from typing import cast

import gevent
import pytest
from gevent.hub import Waiter, get_hub

from harness.transport import waking
from harness.transport.waking import TURN_S, Waker


@pytest.fixture
def clock(monkeypatch):
    """A clock that only moves when a test says so."""
    now = [1000.0]
    monkeypatch.setattr(waking, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def polls():
    """The number of polls so far, as a list of one."""
    count = [0]
    watcher = get_hub().loop.check()

    def seen():
        count[0] += 1

    watcher.start(seen)
    yield count
    watcher.stop()
    watcher.close()


def sleepers(count, work):
    """Start *count* greenlets that wait, and do *work* with their number once woken."""
    waiters: list[Waiter[None]] = [Waiter() for _ in range(count)]

    def sleep(number):
        waiters[number].get()
        work(number)

    greenlets = [gevent.spawn(sleep, number) for number in range(count)]
    gevent.sleep(0)
    return waiters, greenlets


def test_they_wake_in_the_order_of_their_ends(clock):
    woken: list[int] = []
    waiters, greenlets = sleepers(5, woken.append)
    for number in (3, 1, 4, 0, 2):
        Waker.of(get_hub()).wake(waiters[number])
    assert woken == []

    gevent.joinall(greenlets, timeout=5, raise_error=True)

    assert woken == [3, 1, 4, 0, 2]


def test_nobody_waits_while_the_turn_has_time(clock, polls):
    seen = []
    waiters, greenlets = sleepers(20, lambda number: seen.append(polls[0]))
    for waiter in waiters:
        Waker.of(get_hub()).wake(waiter)

    gevent.joinall(greenlets, timeout=5, raise_error=True)

    assert len(set(seen)) == 1


def test_the_hub_polls_when_a_turn_is_over(clock, polls):
    seen = []

    def work(number):
        seen.append(polls[0])
        clock[0] += TURN_S / 2

    waiters, greenlets = sleepers(6, work)
    for waiter in waiters:
        Waker.of(get_hub()).wake(waiter)

    gevent.joinall(greenlets, timeout=5, raise_error=True)

    first = seen[0]
    assert [n - first for n in seen] == [0, 0, 1, 1, 2, 2]


def test_one_that_is_woken_by_another_has_its_turn(clock):
    woken: list[int] = []

    def work(number):
        woken.append(number)
        if number < 3:
            Waker.of(get_hub()).wake(waiters[number + 1])

    waiters, greenlets = sleepers(4, work)
    Waker.of(get_hub()).wake(waiters[0])

    gevent.joinall(greenlets, timeout=5, raise_error=True)

    assert woken == [0, 1, 2, 3]


def test_one_that_cannot_wake_holds_nobody_up(clock, capfd):
    class Broken:
        def switch(self, value):
            raise RuntimeError("broken")

    woken: list[int] = []
    waiters, greenlets = sleepers(1, woken.append)
    waker = Waker.of(get_hub())
    waker.wake(cast("Waiter[None]", Broken()))
    waker.wake(waiters[0])

    gevent.joinall(greenlets, timeout=5, raise_error=True)

    assert woken == [0]
    assert "broken" in capfd.readouterr().err


def test_a_hub_has_one():
    assert Waker.of(get_hub()) is Waker.of(get_hub())

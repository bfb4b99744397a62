import pytest

from harness.sim.clockwork import Clockwork


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def noting(seen, name):
    """Return an action that writes *name* down and is finished."""
    return lambda now: seen.append(name)


@pytest.fixture
def clock():
    return Clock()


def test_what_is_due_runs_in_order_of_time_and_then_of_arrival(clock):
    work = Clockwork(clock)
    seen: list[object] = []
    for due, name in ((2.0, "late"), (1.0, "first"), (1.0, "second"), (9.0, "never")):
        work.at(due, noting(seen, name))
    clock.now = 3.0
    work.run()

    assert ["first", "second", "late"] == seen
    assert 9.0 == work.earliest()


def test_an_action_comes_back_at_the_time_it_names_until_it_names_none(clock):
    work = Clockwork(clock)
    seen: list[object] = []

    def tick(now):
        seen.append(now)
        return now + 1.0 if len(seen) < 3 else None

    work.at(0.0, tick)
    for clock.now in (0.0, 0.5, 1.0, 2.0, 3.0):
        work.run()

    assert [0.0, 1.0, 2.0] == seen
    assert work.earliest() is None


def test_an_action_may_add_another_that_is_overdue_without_losing_its_own_place(clock):
    work = Clockwork(clock)
    seen: list[object] = []

    def parent(now):
        seen.append("parent")
        if len(seen) == 1:
            work.at(0.5, lambda now: seen.append("child"))  # earlier than the entry that is running
            return 4.0
        return None

    clock.now = 2.0
    work.at(1.0, parent)
    work.run()
    clock.now = 4.0
    work.run()

    assert ["parent", "child", "parent"] == seen
    assert work.earliest() is None


def test_an_action_that_fails_is_not_run_again(clock):
    work = Clockwork(clock)
    seen: list[object] = []

    def fails(now):
        raise RuntimeError("broken")

    work.at(0.0, fails)
    work.at(0.0, lambda now: seen.append("next"))
    with pytest.raises(RuntimeError):
        work.run()
    work.run()

    assert ["next"] == seen


def test_a_run_does_at_most_so_many_actions_so_that_sockets_get_their_turn(clock):
    work = Clockwork(clock)
    seen: list[object] = []
    for _ in range(5):
        work.at(0.0, lambda now: seen.append(1))
    work.run(most=2)

    assert 2 == len(seen)


def test_waking_is_asked_for_only_when_an_entry_becomes_the_earliest(clock):
    woken: list[float] = []
    work = Clockwork(clock, woken.append)
    for due in (5.0, 7.0, 3.0):
        work.at(due, lambda now: None)

    assert [5.0, 3.0] == woken

from harness.sim.capacity import Capacity


def enter(capacity: Capacity, name: str, started: list[str]) -> bool | None:
    return capacity.enter(name, lambda: started.append(name))


def test_without_slots_all_start():
    capacity = Capacity()

    assert [True] * 50 == [enter(capacity, str(n), []) for n in range(50)]


def test_beyond_the_slots_the_next_is_refused_until_one_leaves():
    capacity = Capacity(2)
    started: list[str] = []
    entered = [enter(capacity, name, started) for name in "abc"]
    capacity.leave("a")

    assert [True, True, None] == entered
    assert enter(capacity, "d", started) is True
    assert ["a", "b", "d"] == started


def test_a_queue_starts_in_order_of_arrival_and_skips_who_has_left():
    capacity = Capacity(1, queue=True)
    started: list[str] = []
    entered = [enter(capacity, name, started) for name in "abcd"]
    capacity.leave("b")  # a client that gave up waiting
    capacity.leave("a")
    capacity.leave("c")

    assert [True, False, False, False] == entered
    assert ["a", "c", "d"] == started

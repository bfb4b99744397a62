"""Kernel stamps become monotonic time, and no step of the wall clock gets through."""

import struct

import pytest

from harness.transport.stamps import StampClock

HOUR = 3600.0


class Clocks:
    """Two clocks that a test sets."""

    def __init__(self):
        self.mono = 1000.0
        self.wall_offset = 1.7e9

    def monotonic(self):
        return self.mono

    def realtime(self):
        return self.mono + self.wall_offset

    def stamp(self):
        """Return what the kernel would note at this moment."""
        real = self.realtime()
        return [(1, 35, struct.pack("@ll", int(real), int(real % 1 * 1e9)))]


@pytest.fixture
def clocks():
    return Clocks()


@pytest.fixture
def stamps(clocks):
    return StampClock(clocks.monotonic, clocks.realtime)


def test_a_stamp_is_the_arrival_however_late_the_read(clocks, stamps):
    clocks.mono = 1001.0
    stamp = clocks.stamp()
    clocks.mono = 1002.4

    assert stamps.arrival(stamp, 1000.5, clocks.mono) == pytest.approx(1001.0, abs=1e-6)
    assert stamps.unstamped == 0


def test_a_missing_stamp_is_told_and_counted(stamps):
    assert stamps.arrival([], 1000.0, 1000.0) is None
    assert stamps.unstamped == 1


def test_a_step_between_two_reads_costs_the_read_that_finds_it_and_no_other(clocks, stamps):
    for step in (HOUR, -HOUR):
        clocks.wall_offset += step
        clocks.mono += 1
        assert stamps.arrival(clocks.stamp(), clocks.mono - 1, clocks.mono) is None
        clocks.mono += 1
        stamp = clocks.stamp()
        assert stamps.arrival(stamp, clocks.mono - 1, clocks.mono) == pytest.approx(clocks.mono, abs=1e-6)


@pytest.mark.parametrize("step", [HOUR, -HOUR, 0.05, -0.05])
def test_a_step_between_arrival_and_read_is_never_believed(step, clocks, stamps):
    """Also a small one, that would leave the time between the two reads."""
    clocks.mono = 1001.0
    stamp = clocks.stamp()
    clocks.mono = 1001.2
    clocks.wall_offset += step

    assert stamps.arrival(stamp, 1000.0, clocks.mono) is None


def test_bytes_older_than_a_step_are_not_believed_in_the_next_read_either(clocks, stamps):
    """Two sockets: the first read finds the step, the second has bytes from before it."""
    clocks.mono = 1001.0
    old = clocks.stamp()
    clocks.wall_offset += 0.05
    clocks.mono = 1001.2
    assert stamps.arrival(clocks.stamp(), 1000.0, clocks.mono) is None

    assert stamps.arrival(old, 1000.0, clocks.mono) is None


@pytest.mark.parametrize("away", [-0.2, 0.2])
def test_a_stamp_before_the_previous_byte_or_after_now_is_refused(away, clocks, stamps):
    clocks.mono = 1001.0 + away
    stamp = clocks.stamp()
    clocks.mono = 1001.1

    assert stamps.arrival(stamp, 1001.0, clocks.mono) is None


@pytest.mark.parametrize(("away", "expected"), [(-20e-6, 1001.0), (0.1 + 20e-6, 1001.1)])
def test_the_skew_between_reading_two_clocks_is_no_reason_to_refuse(away, expected, clocks, stamps):
    clocks.mono = 1001.0 + away
    stamp = clocks.stamp()
    clocks.mono = 1001.1

    assert stamps.arrival(stamp, 1001.0, clocks.mono) == expected


def test_losing_the_processor_between_the_two_clocks_is_no_step(clocks, stamps):
    """Else one such moment on a busy machine would cost the stamps of all bytes that are waiting."""
    clocks.mono = 1001.0
    waiting = clocks.stamp()
    clocks.mono = 1001.01
    stamp = clocks.stamp()
    now = clocks.mono
    clocks.mono += 0.004  # between the read and the look at the wall clock

    assert stamps.arrival(stamp, 1000.0, now) == pytest.approx(1001.01, abs=1e-5)
    assert stamps.arrival(waiting, 1000.0, clocks.mono) == pytest.approx(1001.0, abs=1e-6)
    assert stamps.unstamped == 0


@pytest.mark.parametrize("pause", [0.0003, 0.004])
def test_a_pause_between_the_looks_at_the_two_clocks_does_not_move_the_arrival(pause, clocks, stamps):
    clocks.mono = 1001.0
    stamp = clocks.stamp()
    now = clocks.mono
    clocks.mono += pause

    assert stamps.arrival(stamp, 1000.0, now) == pytest.approx(1001.0, abs=5e-6)


def test_a_step_too_small_to_tell_is_followed(clocks, stamps):
    clocks.wall_offset += 0.0009
    for _ in range(500):
        clocks.mono += 0.01
        t = stamps.arrival(clocks.stamp(), clocks.mono - 0.01, clocks.mono)

    assert t == pytest.approx(clocks.mono, abs=2e-5)

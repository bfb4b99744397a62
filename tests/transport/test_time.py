"""Arrival times are the kernel's, whatever our own process does; sent times come from the server's process.

Both processes read the same monotonic clock, so they compare.
"""

import time
from itertools import pairwise

import gevent
import gevent.monkey
import pytest

from harness.transport import stamps
from harness.transport.hubclock import HubClock

CHUNKED = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
NEAR_S = 0.005
OWN_S = 0.25  # how late our own process may read on a busy machine, where the time is its own

block = gevent.monkey.get_original("time", "sleep")  # stops the whole process, the hub too


def drip(count, interval):
    return [
        "read",
        ["send", CHUNKED],
        ["drip", "data: %d\n\n", count, interval],
        ["send", "0\r\n\r\n"],
        "linger",
    ]


def events(data):
    return data.count(b"\n\n")


class Read:
    """One feed beside the truth: how many events, and when its first and its last were sent."""

    def __init__(self, feed, sent):
        data, self.t, self.earliest = feed
        self.count = events(data)
        self.first_sent = sent[0][0]
        self.before, self.after = sent[self.count - 1]  # around the sending of the last

    def is_exact(self, late_s=NEAR_S):
        return self.before - 1e-4 <= self.t <= self.after + late_s


def compare(record, times):
    """Return the feeds of *record* beside when their events were sent."""
    reads, seen = [], 0
    for feed in record.feeds:
        reads.append(Read(feed, times[seen:]))
        seen += reads[-1].count
    assert seen == len(times)
    return reads


def test_an_event_is_recorded_when_it_arrived(serve, attempt):
    served = serve(drip(20, 0.01))

    record = attempt(served.url)

    assert record.clock == "kernel"
    assert all(read.is_exact() for read in compare(record, served.wait_for("dripped")[0]["times"]))
    assert record.t0 < record.headers_at <= record.feeds[0][1]


@pytest.mark.slow
def test_a_stall_of_our_own_process_is_not_the_servers(serve, attempt):
    """Blocked for 1.4 s while tokens arrive every 20 ms: the kernel merges the waiting segments into buffers
    that carry the stamp of their last one, so the last event of a late read is exact and the others are
    known to lie between the last moment at which the socket was empty and that stamp."""
    served = serve(drip(120, 0.02))
    gevent.spawn_later(0.4, block, 1.4)

    record = attempt(served.url)

    reads = compare(record, served.wait_for("dripped")[0]["times"])
    late = max(reads, key=lambda read: read.count)
    assert late.count > 50
    assert late.t - late.earliest > 1.0
    assert all(read.is_exact() for read in reads)
    assert all(read.earliest <= read.first_sent + 1e-3 for read in reads)
    assert max(record.lags) < 0.5, "the stamp of the last event is fresh: lag alone would not show the stall"


@pytest.mark.slow
def test_a_stall_of_the_server_is_recorded_as_such(serve, attempt):
    served = serve(["read", ["send", CHUNKED], ["drip", "data: %d\n\n", 3, 0.02], ["sleep", 1.4],
                    ["drip", "data: %d\n\n", 3, 0.02], ["send", "0\r\n\r\n"], "linger"])  # fmt: skip

    record = attempt(served.url)

    arrivals = [t for _, t, _ in record.feeds]
    windows = [t - earliest for _, t, earliest in record.feeds]
    assert max(b - a for a, b in pairwise(arrivals)) == pytest.approx(1.42, abs=0.05)
    assert max(windows) < 0.3, "the hub slept until the bytes came, so little is uncertain"


def test_two_events_in_one_segment_are_certain_after_a_silence(serve, attempt):
    served = serve(["read", ["send", CHUNKED], ["sleep", 0.3], ["send", "12\r\ndata: 1\n\ndata: 2\n\n\r\n"],
                    ["sleep", 0.05], ["send", "0\r\n\r\n"], "linger"])  # fmt: skip

    record = attempt(served.url)

    data, t, earliest = record.feeds[0]
    assert events(data) == 2
    assert t - earliest < 0.1


def test_a_block_while_other_streams_are_read_widens_every_window(serve, attempt, recorder):
    """More late sockets than one poll returns: the ones in the second batch were not empty at the first."""
    served = serve(drip(30, 0.02))
    records = [recorder() for _ in range(100)]
    users = [
        gevent.spawn(attempt, served.url, recorder=record, headers=[("X-User", str(number))])
        for number, record in enumerate(records)
    ]
    gevent.spawn_later(0.25, block, 0.25)
    gevent.joinall(users, raise_error=True)

    sent = {report["conn"]: report["times"] for report in served.wait_for("dripped", 100)}
    late = 0
    for request in served.wait_for("request", 100):
        number = int(request["head"].partition("X-User: ")[2].split()[0])
        reads = compare(records[number], sent[request["conn"]])
        late += max(read.count for read in reads) > 2
        assert all(read.earliest <= read.first_sent + 2e-3 for read in reads)
    assert late > 50


def test_a_bound_that_a_stamp_contradicts_is_not_used(serve, attempt, monkeypatch):
    """Whatever the hub believes: a byte that came before "empty" proves it wrong, for its neighbours too."""
    clock = HubClock.of()
    genuine = clock.stamps.arrival

    def arrival(self, ancillary, low, now):
        t = genuine(ancillary, low, now)
        return None if t is None else max(low, t - 0.02)

    monkeypatch.setattr(stamps.StampClock, "arrival", arrival)
    served = serve(drip(5, 0.05))

    record = attempt(served.url)

    assert min(t - earliest for _, t, earliest in record.feeds[1:]) > 0.02


class WallClock:
    """The wall clock, stepped by a test. (The kernel's stamps stay as they are.)"""

    def __init__(self):
        self.offset = 0.0

    def __call__(self):
        return time.time() + self.offset


@pytest.fixture
def wall(monkeypatch):
    clock = HubClock.of().stamps
    wall = WallClock()
    genuine, clock.realtime = clock.realtime, wall
    yield wall
    clock.realtime = genuine


@pytest.mark.parametrize("step", [3600.0, -3600.0])
def test_a_wall_clock_step_moves_no_recorded_time(step, wall, serve, attempt):
    """Between two reads: the read that finds the step uses its own time, which is its delay away.

    (Here the kernel does not step with the clock, so every stamp after it looks an hour wrong, too.)
    """
    served = serve(drip(20, 0.01))
    gevent.spawn_later(0.1, setattr, wall, "offset", step)

    record = attempt(served.url)

    reads = compare(record, served.wait_for("dripped")[0]["times"])
    assert all(read.is_exact(OWN_S) for read in reads)
    assert all(read.earliest <= read.t for read in reads)
    assert record.clock == "user"


@pytest.mark.parametrize("step", [3600.0, -3600.0])
def test_a_wall_clock_step_between_arrival_and_read(step, wall, serve, attempt):
    served = serve(drip(20, 0.01))

    def step_and_block():
        block(0.05)  # bytes arrive and wait
        wall.offset = step

    gevent.spawn_later(0.1, step_and_block)
    record = attempt(served.url)

    reads = compare(record, served.wait_for("dripped")[0]["times"])
    assert max(read.count for read in reads) > 1
    assert all(read.is_exact(OWN_S) for read in reads)


def test_a_passing_step_costs_only_the_reads_that_meet_it(wall, serve, attempt):
    clock = HubClock.of().stamps
    before = clock.unstamped
    served = serve(drip(20, 0.01))
    gevent.spawn_later(0.1, setattr, wall, "offset", 3600.0)
    gevent.spawn_later(0.12, setattr, wall, "offset", 0.0)

    record = attempt(served.url)

    assert 1 <= clock.unstamped - before <= 6
    assert all(read.is_exact(OWN_S) for read in compare(record, served.wait_for("dripped")[0]["times"]))


def test_without_kernel_stamps_the_record_says_user(serve, attempt, monkeypatch):
    monkeypatch.setattr(stamps, "enable", lambda sock: False)
    served = serve(drip(10, 0.01))

    record = attempt(served.url)

    assert record.clock == "user"
    assert all(read.is_exact(OWN_S) for read in compare(record, served.wait_for("dripped")[0]["times"]))
    assert record.lags == [0.0] * len(record.lags)


def test_first_reads_without_stamps_use_our_own_time(serve, attempt, monkeypatch):
    """As in a kernel that has not begun to stamp: the option is set but the first reads carry nothing."""
    clock = HubClock.of().stamps
    genuine = clock.arrival
    calls = []

    def arrival(ancillary, low, now):
        calls.append(now)
        return genuine(ancillary if len(calls) > 3 else [], low, now)

    monkeypatch.setattr(stamps.StampClock, "arrival", lambda self, *arguments: arrival(*arguments))
    before = clock.unstamped
    served = serve(drip(10, 0.01))

    record = attempt(served.url)

    assert clock.unstamped - before == 3
    assert record.clock == "user"
    assert all(read.is_exact(OWN_S) for read in compare(record, served.wait_for("dripped")[0]["times"]))


def test_a_warm_socket_is_kept_open_so_that_first_reads_are_stamped():
    HubClock.of()

    assert len(stamps._warm) == 1

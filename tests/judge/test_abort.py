"""A hopeless run ends early, and a run that only stumbles does not: all on a clock that the test moves."""

from __future__ import annotations

import pytest

from harness.judge.abort import AbortWatch
from harness.judge.gatefile import parse_gates

KEY = ("chat", "g", "default", "m1")
ABORT = {"after": "30s", "sustained": "10s", "window": "20s"}


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def play(toml_gate, made, seconds, *, waiting=lambda t: (), **gate):
    """Feed `made(t)`, the records of second t, and look every 2 s; return when it said stop, and what."""
    gates = parse_gates("version = 1\n" + toml_gate(**{"min_samples": 10, "abort": ABORT, **gate}), "g.toml")
    clock = Clock()
    watch = AbortWatch(gates, clock)
    for t in range(seconds):
        clock.now = 100.0 + t
        for record in made(t):
            watch.add(record)
        if t % 2 == 0 and (stop := watch.check(waiting(t))):
            return t, stop
    return None


def per_second(record, ttft_s):
    return lambda t: [record(10 * t + i, ttft_s(t)) for i in range(10)]


@pytest.mark.parametrize(
    ("ttft_s", "stopped_at"),
    [
        (lambda t: 0.4, None),
        # slow from the start: not before 30 s, and then for 10 s more
        (lambda t: 9.0, 40),
        # slow from 60 s on: of a window of 20 s more than 5 % at once, 10 s later the end
        (lambda t: 9.0 if t >= 60 else 0.4, 72),
        # a stumble of 2 s leaves the window after 20 s, which is too long for `sustained`
        (lambda t: 9.0 if 60 <= t < 62 else 0.4, 72),
        # slow only while the run warms up
        (lambda t: 9.0 if t < 10 else 0.4, None),
    ],
)
def test_when_it_stops(ttft_s, stopped_at, toml_gate, record):
    found = play(toml_gate, per_second(record, ttft_s), 120)

    assert stopped_at == (found and found[0])


def test_a_stumble_shorter_than_sustained_ends_nothing(toml_gate, record):
    """The window forgets after 20 s, so with `sustained` at 30 s a stumble of 2 s is forgiven."""
    ttft_s = lambda t: 9.0 if 60 <= t < 62 else 0.4  # noqa: E731
    abort = {**ABORT, "sustained": "30s"}

    assert play(toml_gate, per_second(record, ttft_s), 200, abort=abort) is None


def test_it_says_which_gate_and_why(toml_gate, record):
    _, stop = play(toml_gate, per_second(record, lambda t: 9.0), 60)

    assert "g1" == stop.gate_id
    assert "ttft p95: 9.00 s, wanted < 1.5s, for 10.0 s on end" == stop.reason


def test_too_few_streams_end_nothing(toml_gate, record):
    one = lambda t: [record(t, 9.0)] if t % 5 == 0 else []  # noqa: E731

    assert play(toml_gate, one, 120) is None


def test_rates_end_a_run_too(toml_gate, record, rejected):
    made = lambda t: [rejected(10 * t + i) if i < 3 else record(10 * t + i) for i in range(10)]  # noqa: E731
    gate = {"metric": "rejected_rate", "stat": "rate", "limit": "25%"}

    assert 40 == play(toml_gate, made, 120, **gate)[0]
    assert play(toml_gate, made, 120, **{**gate, "limit": "31%"}) is None


def test_a_gateway_that_hangs_altogether_ends_no_stream_but_the_waiting_ones_tell(toml_gate, record):
    """From 50 s on no stream ends; twenty wait, and are 1.5 s late soon after."""
    made = lambda t: [record(10 * t + i) for i in range(10)] if t < 50 else []  # noqa: E731

    def waiting(t):
        return [(KEY, float(t - 50))] * 20 if t > 50 else []

    assert play(toml_gate, made, 120) is None
    assert 62 == play(toml_gate, made, 120, waiting=waiting)[0]
    assert play(toml_gate, made, 120, waiting=waiting, where={"protocol": "messages"}) is None


def test_the_warm_up_is_not_looked_at(toml_gate, record):
    made = lambda t: [record(10 * t + i, 9.0, phase="warmup") for i in range(10)]  # noqa: E731

    assert play(toml_gate, made, 120) is None


def test_without_an_abort_there_is_nothing_to_watch(toml_gate, record):
    watch = AbortWatch(parse_gates("version = 1\n" + toml_gate(), "g.toml"), Clock())
    watch.add(record(0))

    assert not watch.watches
    assert watch.check() is None


def test_what_left_the_window_is_forgotten(toml_gate, record):
    """A long run keeps as many slices as its window has, and one or two more."""
    gates = parse_gates("version = 1\n" + toml_gate(abort=ABORT), "g.toml")
    clock = Clock()
    watch = AbortWatch(gates, clock)
    for t in range(1000):
        clock.now = 100.0 + t
        watch.add(record(t))

    assert len(watch._slices) <= 13

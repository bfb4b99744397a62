"""Thousands of streams leave nothing behind: no descriptor, no watcher, no object."""

import gc
import os
import resource
from time import monotonic

import gevent
import pytest
from gevent import get_hub
from gevent.pool import Pool

from harness.gateways import load
from harness.stream import Session
from harness.transport import HarnessTransport
from harness.transport.attempt import Attempt
from harness.transport.connection import Connection
from harness.transport.exchange import Exchange
from harness.transport.hubclock import HubClock
from harness.wire.chat import ChatGrammar

HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
CHUNKED = HEAD + "Transfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n"


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def left_over():
    """Count what a stream is made of."""
    gc.collect()
    return [type(o).__name__ for o in gc.get_objects() if isinstance(o, (Connection, Exchange, Attempt))]


@pytest.mark.slow
@pytest.mark.parametrize(("script", "reason"), [
    (["read", ["send", CHUNKED + "0\r\n\r\n"], "linger"], "eof"),
    (["read", ["send", CHUNKED], "close"], "cut"),
    (["read", ["send", CHUNKED], "linger"], "closed"),
], ids=["ended", "cut", "expired"])  # fmt: skip
def test_two_thousand_streams_leave_nothing_behind(script, reason, serve, recorder):
    served = serve(script)
    HubClock.of()  # has two descriptors of its own
    open_before, active_before = descriptors(), get_hub().loop.activecnt

    def one(_):
        transport, record = HarnessTransport(), recorder(limit_s=5 if reason != "closed" else 0.3)
        transport.stream("POST", served.url, [], b"{}", record)
        transport.close()
        return record.reason

    # All at once, as far as the limit of open files goes.
    at_once = min(500, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 3)
    with gevent.Timeout(60):
        reasons = list(Pool(at_once).imap_unordered(one, range(2000)))

    assert reasons.count(reason) == 2000
    gevent.sleep(0)
    assert descriptors() == open_before
    assert get_hub().loop.activecnt == active_before
    assert left_over() == []


@pytest.mark.parametrize("script", [
    (["read", ["send", CHUNKED + "0\r\n\r\n"], "linger"]),
    (["read", ["send", CHUNKED], "close"]),
    (["read", ["send", CHUNKED], "linger"]),
    (["read", ["send", "HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\nno"], "close"]),
], ids=["ended", "cut", "expired", "refused"])  # fmt: skip
def test_a_stream_is_freed_when_it_ends_and_leaves_the_collector_nothing(script, serve, attempt):
    served = serve(*[script] * 3)
    limits = load("generic").limits.with_override("progress", 0.1).with_override("first_token", 0.1)

    def one():
        attempt(served.url, recorder=Session(ChatGrammar(), limits, monotonic()))

    one()  # what only the first one leaves: caches
    gc.collect()
    gc.disable()
    try:
        one()
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
    finally:
        gc.set_debug(0)
        gc.enable()
        left = [type(o).__name__ for o in gc.garbage if type(o).__module__.startswith("harness.")]
        gc.garbage.clear()

    assert left == []


def test_an_idle_connection_is_all_that_a_transport_keeps(serve, attempt, transport):
    served = serve(["read", ["send", HEAD + "Content-Length: 0\r\n\r\n"]] * 9)
    open_before, active_before = descriptors(), get_hub().loop.activecnt

    for _ in range(3):
        attempt(served.url)

    assert descriptors() == open_before + 1
    assert get_hub().loop.activecnt == active_before
    transport.close()
    assert descriptors() == open_before

"""Limits, leaving early, and being killed: the connection closes at once and the session hears it once."""

from time import monotonic
from typing import cast

import gevent
import gevent.monkey
import pytest
from gevent.event import Event

from harness.transport import dial
from harness.transport.connection import Connection
from harness.transport.exchange import Exchange
from harness.transport.watchdog import Watchdog

CHUNKED = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
FIRST = CHUNKED + "9\r\ndata: 1\n\n\r\n"

block = gevent.monkey.get_original("time", "sleep")  # stops the whole process, the hub too


def test_a_limit_fires_while_the_server_is_silent(serve, attempt):
    served = serve(["read", ["send", FIRST], "linger"])

    record = attempt(served.url, limit_s=0.2)

    assert (record.reason, record.body, len(record.expired)) == ("closed", b"data: 1\n\n", 1)
    assert record.expired[0] >= record.feeds[-1][1] + 0.2
    served.wait_for("gone")


@pytest.mark.parametrize(
    "script", [["linger"], ["read", "linger"], ["read", ["send", "HTTP/1.1 200 OK\r\n"], "linger"]]
)
def test_a_limit_fires_before_any_answer(script, serve, attempt):
    record = attempt(serve(script).url, limit_s=0.1)

    assert (record.reason, len(record.expired)) == ("closed", 1)


def test_a_limit_that_moves_away_does_not_fire(serve, attempt):
    """Each event puts the deadline off; the timer is not touched, it only looks again when it rings."""
    served = serve(
        ["read", ["send", CHUNKED], ["drip", "data: %d\n\n", 14, 0.05], ["send", "0\r\n\r\n"], "linger"]
    )

    record = attempt(served.url, limit_s=0.4)

    assert (record.reason, record.body.count(b"\n\n"), record.expired) == ("eof", 14, [])


def test_a_deadline_that_comes_nearer_is_noticed(serve, attempt, recorder):
    def come_nearer(record):
        record.due = record.feeds[-1][1] + 0.1
        record.urgency += 1

    served = serve(["read", ["send", FIRST], "linger"])
    began = monotonic()

    record = attempt(served.url, recorder=recorder(limit_s=60, on_feed=come_nearer))

    assert record.reason == "closed"
    assert monotonic() - began < 10


def test_a_session_that_wants_to_close_is_obeyed_at_once(serve, attempt, recorder):
    def be_done(record):
        record.due = 0.0
        record.urgency += 1

    record = attempt(serve(["read", ["send", FIRST], "linger"]).url, recorder=recorder(on_feed=be_done))

    assert record.reason == "closed"


def test_a_limit_that_only_warns_lets_the_stream_go_on(serve, attempt, recorder):
    served = serve(["read", ["send", FIRST], ["sleep", 0.3], ["send", "0\r\n\r\n"], "linger"])

    record = attempt(served.url, recorder=recorder(limit_s=0.1, only_warn=True))

    assert (record.reason, len(record.expired)) == ("eof", 1)


def test_a_late_wake_up_does_not_invent_a_stall(serve, attempt):
    """The process is stopped beyond the limit while events arrive: they are read before it is judged."""
    served = serve(
        ["read", ["send", CHUNKED], ["drip", "data: %d\n\n", 50, 0.02], ["send", "0\r\n\r\n"], "linger"]
    )
    gevent.spawn_later(0.1, block, 0.7)

    record = attempt(served.url, limit_s=0.4)

    assert (record.reason, record.expired) == ("eof", [])


class Torrent:
    """Stands in for a connection that always has more to read."""

    kernel_clock = stamped = all_sent = True
    at_end = False
    lag_s = 0.0

    def __init__(self):
        self.hub = gevent.get_hub()
        self.more = [b"HTTP/1.1 200 OK\r\n\r\n"]

    @property
    def t(self):
        return monotonic()

    earliest = t

    def open_for(self, on_readable):
        pass

    def send(self, data):
        pass

    def close(self):
        pass

    def receive(self):
        return self.more.pop() if self.more else b"x" * 100


def test_a_server_that_never_pauses_cannot_hold_off_a_limit(recorder):
    """There is no moment at which nothing is left to read, and the limit on the whole fires all the same."""
    record, ended = recorder(limit_s=0.05, from_start=True), Event()
    watchdog = Watchdog(gevent.get_hub(), record, lambda late_s: None)
    torrent = cast(Connection, Torrent())
    Exchange(torrent, record, watchdog, "POST", lambda reusable: ended.set()).start(b"")

    with gevent.Timeout(5):
        ended.wait()

    assert record.reason == "closed"


@pytest.mark.parametrize("script", [["read", ["send", FIRST], "linger"], ["read", "linger"]])
def test_abort_closes_at_once(script, serve, attempt, transport):
    served = serve(script)
    gevent.spawn_later(0.1, transport.abort)

    record = attempt(served.url)

    assert record.reason == "abandoned"
    assert served.wait_for("gone")[0]["t"] - record.ended_at < 0.5


def test_abort_takes_a_reason(serve, attempt, transport):
    gevent.spawn_later(0.05, transport.abort, "aborted")

    assert attempt(serve(["read", "linger"]).url).reason == "aborted"


def test_abort_from_inside_the_session(serve, attempt, transport, recorder):
    """A pre-flight leaves at the first event."""
    leaves = recorder(on_feed=lambda _: transport.abort())

    record = attempt(serve(["read", ["send", FIRST + "0\r\n\r\n"], "linger"]).url, recorder=leaves)

    assert (record.reason, record.body) == ("abandoned", b"data: 1\n\n")


def test_abort_at_the_moment_of_connecting(serve, attempt, transport, recorder):
    """The greenlet that connects cannot be interrupted any more, its exchange not yet."""
    leaves = recorder(on_connected=lambda _: transport.abort())

    assert attempt(serve(["read", "linger"]).url, recorder=leaves).reason == "abandoned"


def test_abort_without_anything_running_does_nothing(transport):
    transport.abort()


# A full backlog: the handshake never completes, whoever listens.
def _unreachable():
    socket = gevent.monkey.get_original("socket", "socket")
    listener = socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    fillers = []
    for _ in range(3):
        filler = socket()
        filler.setblocking(False)
        filler.connect_ex(listener.getsockname())
        fillers.append(filler)
    return listener, fillers


@pytest.fixture
def unreachable():
    listener, fillers = _unreachable()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    for sock in [listener, *fillers]:
        sock.close()


def test_a_limit_fires_while_connecting(unreachable, attempt):
    record = attempt(unreachable, limit_s=0.2)

    assert (record.reason, record.calls, len(record.expired)) == ("closed", ["end"], 1)


def test_abort_while_connecting(unreachable, attempt, transport):
    gevent.spawn_later(0.05, transport.abort)

    assert attempt(unreachable).reason == "abandoned"


def test_an_address_that_does_not_answer_is_left_for_the_next(unreachable, serve, attempt, monkeypatch):
    served = serve(["read", ["send", "HTTP/1.1 204 x\r\n\r\n"], "linger"])
    dead = int(unreachable.rpartition(":")[2].strip("/"))
    found = [(2, 1, 6, "", ("127.0.0.1", port)) for port in (dead, served.port)]
    monkeypatch.setattr("gevent.socket.getaddrinfo", lambda *_: found)
    monkeypatch.setattr(dial, "_ADDRESS_PATIENCE_S", 0.05)

    assert attempt("http://two.example/", limit_s=5).reason == "eof"


def test_a_limit_fires_while_the_name_is_looked_up(attempt, monkeypatch):
    monkeypatch.setattr("gevent.socket.getaddrinfo", lambda *_: gevent.sleep(5))

    assert attempt("http://slow.example/", limit_s=0.1).reason == "closed"


def test_a_busy_process_is_not_taken_for_a_server_that_does_not_connect(serve, attempt):
    """The connection stood long before the limit; the hub, blocked, only saw it after."""
    served = serve(["read", ["send", "HTTP/1.1 204 x\r\n\r\n"], "linger"])
    gevent.spawn(block, 0.3)

    record = attempt(served.url, limit_s=0.1)

    assert (record.reason, record.expired) == ("eof", [])


@pytest.mark.parametrize("script", [["read", ["send", FIRST], "linger"], ["read", "linger"]])
def test_a_killed_greenlet_closes_its_connection_and_dies(script, serve, attempt, recorder):
    served, record = serve(script), recorder()
    user = gevent.spawn(attempt, served.url, recorder=record)
    served.wait_for("request")
    gevent.sleep(0.05)

    user.kill()

    assert isinstance(user.value, gevent.GreenletExit)
    assert record.reason == "aborted"
    served.wait_for("gone")


def test_a_greenlet_killed_while_connecting_dies(unreachable, attempt, recorder):
    record = recorder()
    user = gevent.spawn(attempt, unreachable, recorder=record)
    gevent.sleep(0.05)

    user.kill()

    assert isinstance(user.value, gevent.GreenletExit)
    assert record.reason == "aborted"

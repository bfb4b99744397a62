"""The transport and the real session together: whose stall is it?"""

from time import monotonic

import gevent
import gevent.monkey
import pytest

from harness.gateways import load
from harness.stream.session import Session
from harness.wire.chat import ChatGrammar

CHUNKED = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNK = 'data: {"id":"1","object":"chat.completion.chunk","choices":[{"index":0,%s}]}\n\n'
TOKEN = CHUNK % '"delta":{"content":"t%d "}'
LAST = CHUNK % '"delta":{},"finish_reason":"stop"'
END = LAST + "data: [DONE]\n\n"

block = gevent.monkey.get_original("time", "sleep")  # stops the whole process, the hub too


@pytest.fixture
def stream(serve, attempt):
    """Return a function that plays *steps* between the headers and the end, into a session of its own."""

    def run(*steps):
        served = serve(
            ["read", ["send", CHUNKED], *steps, ["send", f"{len(END):x}\r\n{END}\r\n0\r\n\r\n"], "linger"]
        )
        session = Session(ChatGrammar(), load("generic").limits, monotonic())
        attempt(served.url, recorder=session)
        return session

    return run


@pytest.mark.slow
def test_our_own_stall_is_uncertainty_and_no_gap(stream):
    gevent.spawn_later(0.4, block, 1.4)

    session = stream(["drip", TOKEN, 120, 0.02])

    assert session.outcome == "completed"
    assert len(session.uncertainties) > 50
    assert max(session.uncertainties) == pytest.approx(1.4, abs=0.3)
    assert session.pace.gap_max_s < 0.7
    assert session.stalls.soft == []


@pytest.mark.slow
def test_the_servers_stall_is_a_gap_and_certain(stream):
    session = stream(["drip", TOKEN, 5, 0.02], ["sleep", 1.4], ["drip", TOKEN, 5, 0.02])

    assert session.outcome == "completed"
    assert max(session.uncertainties, default=0.0) < 0.3
    assert session.pace.gap_max_s == pytest.approx(1.4, abs=0.3)

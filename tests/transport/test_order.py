"""Whose bytes are read first when one poll finds many sockets readable."""

import socket

import gevent
import pytest
from gevent.hub import get_hub

from harness.transport.connection import Connection


@pytest.fixture
def pairs():
    """Connections with their other ends."""
    made = []

    def make():
        near, far = socket.socketpair()
        near.setblocking(False)
        connection = Connection(get_hub(), near, None, "peer", stamps=False)
        made.append((connection, far))
        return connection, far

    yield make
    for connection, far in made:
        connection.close()
        far.close()


@pytest.mark.parametrize("late", [0, 1, 2])
def test_an_answer_that_has_not_begun_is_read_before_those_that_flow(late, pairs):
    order: list[int] = []
    all_of_them = [pairs() for _ in range(3)]

    def reader(number, connection):
        return lambda: order.append(number) if connection.receive() else None

    for number, (connection, _) in enumerate(all_of_them):
        connection.open_for(reader(number, connection))
        if number != late:
            connection.calm(reader(number, connection))
    for _, far in all_of_them:
        far.send(b"x")
    gevent.sleep(0.01)

    assert order[0] == late
    assert sorted(order) == [0, 1, 2]


def test_a_calm_connection_is_read_as_before(pairs):
    connection, far = pairs()
    seen: list[bytes | None] = []

    def read():
        seen.append(connection.receive())

    connection.open_for(read)
    connection.calm(read)
    for text in (b"a", b"b"):
        far.send(text)
        gevent.sleep(0.01)

    assert seen == [b"a", b"b"]


def test_calm_after_close_is_nothing(pairs):
    connection, _ = pairs()
    connection.open_for(lambda: None)
    connection.close()
    connection.calm(lambda: None)

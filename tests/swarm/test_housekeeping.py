"""What is looked at each second."""

import os
import socket

import pytest

from harness.swarm.housekeeping import count_sockets


def test_sockets_are_counted_and_nothing_else():
    before = count_sockets() or 0
    sockets = [socket.socket() for _ in range(7)]
    reading, writing = os.pipe()
    try:
        assert count_sockets() == before + 7
    finally:
        for one in sockets:
            one.close()
        os.close(reading)
        os.close(writing)
    assert count_sockets() == before


@pytest.mark.parametrize("error", [FileNotFoundError, PermissionError])
def test_a_system_that_does_not_tell_is_no_zero(error, monkeypatch):
    def refuse(path):
        raise error(path)

    monkeypatch.setattr(os, "listdir", refuse)
    assert count_sockets() is None

"""Ports for the servers that tests start."""

import itertools
import os
import socket

# Below the range that the kernel gives to connections (32768 and up): a client that happened to get the same
# number would keep a server from listening on every interface. Each test process has numbers of its own.
_FIRST, _EACH, _PROCESSES = 10_000, 400, 50
_numbers = itertools.cycle(range(_EACH))


def find_free_ports(number: int) -> list[int]:
    """Return *number* ports that nobody listens on; no port is given out twice in a while."""
    first = _FIRST + os.getpid() % _PROCESSES * _EACH
    found: list[int] = []
    while len(found) < number:
        port = first + next(_numbers)
        if _is_free(port):
            found.append(port)
    return found


def find_free_port() -> int:
    """Return one port that nobody listens on."""
    return find_free_ports(1)[0]


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("0.0.0.0", port)).close()
    except OSError:
        return False
    return True

"""How many instructions of user code one read of one token costs: a number that no busy machine changes.

On shared cores the µs of `bench_transport.py` differ by a fifth from run to run; two versions of the path
of an event are better compared by what valgrind counts. From the watcher's callback on everything is real
but the socket, which is a Python object here and part of the count. The kernel's work is not in it.

    python benchmarks/count_instructions.py
"""

from __future__ import annotations

import locust  # first, because it patches

import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import cast

import bench_event
from gevent.hub import get_hub

from harness.gateways import load
from harness.stream import Session
from harness.transport.connection import Connection
from harness.transport.exchange import Exchange
from harness.transport.watchdog import Watchdog
from harness.wire import grammar_for

assert locust.__version__
FEW, MANY = 500, 4500
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


class Peer:
    """A socket that always has the same bytes, which have just arrived."""

    def __init__(self) -> None:
        self.near, self.far = socket.socketpair()
        self.data = b""

    def fileno(self) -> int:
        return self.near.fileno()

    def send(self, data: bytes) -> int:
        return len(data)

    def recvmsg(self, size: int, room: int) -> tuple[bytes, list[tuple[int, int, bytes]], int, None]:
        seconds, rest = divmod(time.time_ns(), 1_000_000_000)
        return self.data, [(socket.SOL_SOCKET, 35, struct.pack("@ll", seconds, rest))], 0, None


def chunk(data: bytes) -> bytes:
    """Return *data* as one chunk of an HTTP body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def read(protocol: str, times: int) -> None:
    """Begin a stream and read its token *times* times."""
    opening, events = bench_event.streams()[protocol]
    peer, hub = Peer(), get_hub()
    session = Session(grammar_for(protocol), load("generic").limits, time.monotonic())
    connection = Connection(hub, cast(socket.socket, peer), None, "peer", stamps=True)
    exchange = Exchange(
        connection, session, Watchdog(hub, session, lambda late_s: None), "POST", lambda reusable: None
    )
    exchange.start(b"request")
    for data in (HEAD, *map(chunk, opening)):
        peer.data = data
        exchange._readable()
    for number in range(times):
        peer.data = chunk(events[number])
        exchange._readable()
    if session.progress_count != times:
        raise SystemExit(f"{protocol}: {session.progress_count} of {times} tokens were understood")


def count(protocol: str, times: int) -> int:
    """Return the instructions of a process that reads *times* tokens."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            "valgrind", "--tool=callgrind", f"--callgrind-out-file={Path(folder) / 'out'}",
            sys.executable, __file__, protocol, str(times),
        ]  # fmt: skip
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": "0"}
        )
    found = re.search(r"Collected : (\d+)", done.stderr)
    assert found is not None
    return int(found[1])


def main() -> None:
    """Print a line per protocol; with a protocol and a number, be the process that is counted."""
    if len(sys.argv) == 3:
        read(sys.argv[1], int(sys.argv[2]))
        return
    if shutil.which("valgrind") is None:
        raise SystemExit("valgrind is not installed: apt-get install valgrind")
    for protocol in bench_event.streams():
        per_read = (count(protocol, MANY) - count(protocol, FEW)) / (MANY - FEW)
        print(f"{protocol:<10}{per_read:>9,.0f} instructions per read", flush=True)


if __name__ == "__main__":
    main()

"""The server's life: listen, say so, run until told to stop or orphaned, leave the log complete."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import os
import resource
import signal
import socket
import ssl
import sys
import time
from dataclasses import dataclass
from typing import IO

from harness.sim.capacity import Capacity
from harness.sim.choice import Chooser
from harness.sim.clockwork import Clockwork
from harness.sim.gateway import Setup, SimulatedGateway
from harness.sim.mix import Mix
from harness.sim.server import Connection
from harness.sim.truth import TruthLog

_BACKLOG = 4096
_FLUSH_S = 1.0


@dataclass(frozen=True, slots=True)
class Listening:
    """What to serve, and where."""

    host: str
    port: int
    setup: Setup
    mix: dict[str, float]
    capacity: Capacity
    truth_path: str | None
    parent: int | None
    tls: ssl.SSLContext | None
    verdict: bool
    """Say at the end what the clients did."""


def serve(listening: Listening) -> int:
    """Serve until stopped; return the exit code: 0, or 2 if it cannot listen or write."""
    truth_file: IO[bytes] | None = None
    if listening.truth_path is not None:
        try:
            truth_file = open(listening.truth_path, "ab", buffering=0)  # noqa: SIM115 - closed by TruthLog.close
        except OSError as error:
            print(
                f"harness sim: --truth: cannot write {listening.truth_path}: {error.strerror}",
                file=sys.stderr,
            )
            return 2
    truth = TruthLog(truth_file)
    _allow_many_sockets()
    try:
        return asyncio.run(_serve(listening, truth))
    except KeyboardInterrupt:  # between the loop's own signal handling and its end
        return 0
    finally:
        truth.close()


async def _serve(listening: Listening, truth: TruthLog) -> int:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    ticker = _Ticker(loop)
    mix = Mix(listening.mix, listening.setup.seed)
    gateway = SimulatedGateway(
        listening.setup, Chooser(mix), listening.capacity, truth, ticker.clockwork, time.time
    )
    try:
        server = await loop.create_server(
            lambda: Connection(gateway),
            listening.host,
            listening.port,
            backlog=_BACKLOG,
            ssl=listening.tls,
        )
    except OSError as error:
        where = f"{listening.host}:{listening.port}"
        if isinstance(error, socket.gaierror):
            why, mend = "no such address", "pass one of this machine's with --host, as in 127.0.0.1"
        else:
            why, mend = os.strerror(error.errno or 0), "try another --port, or 0 for any free one"
        print(f"harness sim: cannot listen on {where}: {why}; {mend}", file=sys.stderr)
        return 2
    if not all(_is_loopback(socket.getsockname()[0]) for socket in server.sockets):
        print(
            f"harness sim: warning: listening on {listening.host} for other machines too, without a password "
            "(--host 127.0.0.1 keeps it here)",
            file=sys.stderr,
            flush=True,
        )
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    # What exists now lives as long as the process; the collector need not look at it again and again.
    gc.collect()
    gc.freeze()
    # Of the rest, asyncio's own transports alone are left to it: each refers to itself. Those that were open
    # during a look are older then, and have their turn at every fifth.
    gc.set_threshold(10_000, 5, 5)
    watch = loop.create_task(_each_second(truth, listening.parent, stopped))
    port = server.sockets[0].getsockname()[1]
    host = f"[{listening.host}]" if ":" in listening.host else listening.host
    profile = listening.setup.profile
    how = f"mix {mix}, seed {listening.setup.seed}, time scale {profile.time_scale:g}"
    scheme = "http" if listening.tls is None else "https"
    print(f"sim:{profile.name} ready on {scheme}://{host}:{port} ({how})", flush=True)
    await stopped.wait()
    watch.cancel()
    server.close()
    gateway.stop()
    if listening.verdict:
        print("\n".join(gateway.verdict.lines()), flush=True)
    return 0


class _Ticker:
    """Drives the clockwork with one timer of the loop, armed for the earliest entry."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.clockwork = Clockwork(loop.time, self._arm)
        self._timer: asyncio.TimerHandle | None = None
        self._running = False

    def _arm(self, due: float) -> None:
        if self._running:
            return  # `_tick` arms it when it is through
        if self._timer is not None:
            if self._timer.when() <= due:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(due, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._running = True
        try:
            self.clockwork.run()
        finally:
            self._running = False
            earliest = self.clockwork.earliest()
            if earliest is not None:
                self._arm(earliest)


async def _each_second(truth: TruthLog, parent: int | None, stopped: asyncio.Event) -> None:
    """Flush the log, and stop when the parent is gone: nobody else would stop an orphan."""
    is_child = parent is not None and os.getppid() == parent
    while True:
        await asyncio.sleep(_FLUSH_S)
        truth.flush()
        if parent is not None and not _alive(parent, is_child):
            stopped.set()


def _alive(parent: int, is_child: bool) -> bool:
    if is_child:
        return os.getppid() == parent  # also right for a parent that is dead but not yet waited for
    try:
        os.kill(parent, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def _allow_many_sockets() -> None:
    """Raise the limit of open files as far as it may be: a socket per stream."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError):
        pass  # the soft limit stays, and the system will say so when it is reached

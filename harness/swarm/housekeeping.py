"""What has to be done each second, run or no run."""

from __future__ import annotations

from locust.stats import RequestStats

import gc
import itertools
import os
import stat
import time
from collections.abc import Callable
from typing import Any, Protocol

import gevent

from harness.observe.aggregate import Aggregate
from harness.observe.history import History
from harness.swarm.trimming import trim

# Rarely: what it looks through are mostly the open streams, and it stops them all meanwhile.
_GC_THRESHOLDS = (20_000, 20, 5)

_EACH_S = 1.0
_TRIM_EACH = 60  # seconds


class Flushable(Protocol):
    """What holds records back for a moment."""

    def flush(self) -> None:
        """Hand them on."""


class Housekeeper:
    """Hands written records to the system, looks at this process's own load, and bounds what Locust keeps."""

    def __init__(self, aggregate: Aggregate, stats: RequestStats) -> None:
        self.keeper: Flushable | None = None
        self.history: History | None = None
        self.each_second: Callable[[], None] | None = None
        self._aggregate = aggregate
        self._stats = stats
        self._greenlet: gevent.Greenlet[..., Any] | None = None

    def start(self) -> None:
        """Begin, in a greenlet of its own.

        Everything that exists now is taken from the garbage collector for good: going through it once more
        takes 20 ms and more, in the middle of a scrape or of the streams, and none of it is garbage. A stream
        leaves nothing for the collector either: its objects let go of each other when it ends.
        """
        gc.collect()
        gc.freeze()
        gc.set_threshold(*_GC_THRESHOLDS)
        self._greenlet = gevent.spawn(self._keep_house)

    def stop(self) -> None:
        """End it. Stopping twice is harmless."""
        if self._greenlet is not None:
            self._greenlet.kill()
            self._greenlet = None

    def _keep_house(self) -> None:
        # Not psutil: it opens a file for that, and a process without descriptors would lose its housekeeper.
        looked, used = time.monotonic(), time.process_time()
        for second in itertools.count(1):
            gevent.sleep(_EACH_S)
            before, looked = looked, time.monotonic()
            used_before, used = used, time.process_time()
            self._aggregate.cpu_ratio = (used - used_before) / (looked - before)
            self._aggregate.open_sockets = count_sockets()
            if self.keeper is not None:
                self.keeper.flush()
            if self.history is not None:
                self.history.tick()
            if self.each_second is not None:
                self.each_second()
            if second % _TRIM_EACH == 0:
                trim(self._stats)


def count_sockets() -> int | None:
    """Return the number of sockets that this process has open; None where the system does not tell."""
    count = 0
    try:
        # Each second, while streams wait: a quarter of the time that reading the links would take.
        for entry in os.listdir("/proc/self/fd"):
            try:
                count += stat.S_ISSOCK(os.fstat(int(entry)).st_mode)
            except OSError:
                continue
    except OSError:
        return None
    return count

"""What a stream's waits mean: gaps between tokens, silences, keepalives that are due, soft stalls.

`JudgedStream` is the part of a session that an ordinary event touches; the session around it speaks with the
transport and the grammar.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from operator import sub
from typing import Final, Literal

from harness.gateways import Keepalive, Limits
from harness.stream.firsts import Firsts
from harness.stream.outcome import Outcome
from harness.stream.pace import Pace
from harness.stream.stall import StallBook
from harness.stream.timeline import Timeline
from harness.stream.view import OpenStream
from harness.wire.sse import Item

# "Streaming" that comes at once is a proxy that buffers: more than this many events in one read, or
# a whole answer of more tokens than this within BURST_S.
BURST_EVENTS = 20
BURST_S = 0.050

GAPS_PER_FLUSH = 256

# So many pieces of ordinary output are counted together.
LOT: Final = 32

NO_SIGNAL: Final = -1  # a code that no event has


class JudgedStream(OpenStream):
    """An open stream whose waits are judged by `limits` and the gateway's keepalive promise.

    `on_gaps` receives the gaps in slices while the stream runs.

    Most output means what the output before it meant, came as soon, and came alone: an event of `_usual`
    signal, no later than `_notable_s` after the byte before it. Of such only the moment is noted, in `_lot`;
    what is counted of them is counted by `_count_lot`, before anything else is counted or asked.
    """

    __slots__ = (
        "_events", "_flushed", "_last_exact", "_lot", "_notable_gap_s", "_notable_s", "_notable_silence_s",
        "_on_gaps", "_ordinary", "_progress", "_reads", "_trace", "_usual", "first", "first_token_window_s",
        "firsts", "outcome", "stalls", "uncertainties", "urgency",
    )  # fmt: skip

    def __init__(
        self,
        opened: float,
        limits: Limits,
        keepalive: Keepalive | None,
        on_gaps: Callable[[array[float]], None] | None,
    ) -> None:
        super().__init__(opened, limits, Pace(keepalive, self._overdue))
        self.outcome: Outcome | None = None
        self.urgency = 0
        self.firsts = Firsts()
        self.first = self.firsts.moments
        self.stalls = StallBook()
        self.uncertainties: list[float] = []
        self.first_token_window_s = 0.0  # how much earlier than recorded it may have come
        self._events = self._reads = self._progress = 0
        self._trace = Timeline()
        self._lot: list[float] = []
        self._usual = NO_SIGNAL
        self._last_exact: float | None = None
        # A longer silence, a longer gap, or other signals than these need more than to be counted.
        self._notable_silence_s = self._notable_gap_s = self._notable_s = -1.0
        self._ordinary = 0
        self._on_gaps = on_gaps
        self._flushed = 0

    @property
    def soft_stall_counts(self) -> Mapping[str, int]:
        """How many soft stalls of each class there were; the record keeps the first `KEPT_SOFT`."""
        return self.stalls.counts

    @property
    def events(self) -> int:
        """How many events came."""
        return self._events + len(self._lot)

    @property
    def reads(self) -> int:
        """In how many reads the bytes came."""
        return self._reads + len(self._lot)

    @property
    def progress_count(self) -> int:
        """How many pieces of output came."""
        return self._progress + len(self._lot)

    @property
    def trace(self) -> Timeline:
        """Times and meanings of all events and comments so far."""
        self._count_lot()
        return self._trace

    @property
    def gaps(self) -> array[float]:
        """All gaps between progress events that can be held against the gateway, seconds."""
        self._count_lot()
        return self.pace.gaps

    def _count_lot(self) -> None:
        """Count the pieces of ordinary output of which only the moments were noted."""
        lot = self._lot
        if not lot:
            return
        self._events += len(lot)
        self._reads += len(lot)
        self._progress += len(lot)
        self._trace.extend(lot, self._usual)
        last = self._last_exact
        assert last is not None
        gaps = self.pace.gaps
        gaps.append(lot[0] - last)
        gaps.extend(map(sub, islice(lot, 1, None), lot))
        self._last_exact = lot[-1]
        lot.clear()  # before anybody hears of it, who may ask again
        if len(gaps) - self._flushed >= GAPS_PER_FLUSH:
            self._flush_gaps()

    def _output(self, t: float, *, exact: bool) -> None:
        """Count one piece of output; its gap counts only between two moments that are exact."""
        self._progress += 1
        self.last_progress = t
        last = self._last_exact
        if not exact:
            self._last_exact = None
            return
        self._last_exact = t
        if last is not None:
            gap_s = t - last
            gaps = self.pace.gaps
            gaps.append(gap_s)
            if gap_s > self._notable_gap_s:
                self._long_gap(gap_s, last, t)
            if len(gaps) - self._flushed >= GAPS_PER_FLUSH:
                self._flush_gaps()

    def _long_gap(self, gap_s: float, last: float, t: float) -> None:
        """Note a gap that is the longest so far, or slow."""
        slow_s = self.limits.progress.warn_s
        if gap_s > self.pace.gap_max_s:
            self.pace.gap(gap_s, last)
        self._warn(slow_s, last, t)
        self._notable_gap_s = self.pace.gap_max_s if slow_s is None else min(slow_s, self.pace.gap_max_s)
        self._notable_s = min(self._notable_gap_s, self._notable_silence_s)

    def _silence(self, before: float, until: float, items: Sequence[Item]) -> None:
        """Note a silence that is the longest so far, or means something: waiting, a promise, a warning."""
        if self.outcome is not None:
            return
        pace, warn_s = self.pace, self.limits.silence.warn_s
        pace.silence(before, until, items)
        self._warn(warn_s, before, until)
        self._notable_silence_s = min(
            pace.floor_s, pace.silence_max_s, math.inf if warn_s is None else warn_s
        )
        self._notable_s = min(self._notable_gap_s, self._notable_silence_s)

    def _stall_over(self, t: float) -> None:
        """A watched stall ended: by output (it was thinking after all), or with the stream."""
        self.stalls.end_hard(self, t, fatal=False)
        self._ordinary = self.firsts.seen
        self.urgency += 1  # all limits run again

    def _soft(self, class_: str, limit_s: float, began: float, ended: float) -> None:
        self.stalls.add_soft(self, class_, limit_s, began, ended)

    def _overdue(
        self, severity: Literal["late", "violation"], limit_s: float, began: float, ended: float
    ) -> None:
        self._soft(f"keepalive_{severity}", limit_s, began, ended)

    def _warn(self, limit_s: float | None, began: float, ended: float) -> None:
        if limit_s is not None and ended - began > limit_s:
            self._soft("slow_progress", limit_s, began, ended)

    def _open_gap(self, t: float) -> None:
        """A gap that output did not end, but the stream did, was slow all the same."""
        if self.phase == "mid_stream" and self._last_exact is not None:
            self._warn(self.limits.progress.warn_s, self._last_exact, t)
        elif self.phase != "connect" and "first_token" not in self.first and self.settled is None:
            self._warn(self.limits.first_token.warn_s, self.zero, t)

    def _last_silence(self, t: float) -> None:
        """Judge the silence and the keepalive interval that end here without a byte to end them."""
        if self.headers_at is not None:
            self.pace.closing(t, self.last_byte, self.headers_at)

    def _burst(self) -> None:
        """Judge whether a whole answer came at once."""
        first, last = self.first_byte, self.last_progress
        if first is None or last is None or "burst" in self.stalls.counts or self.uncertainties:
            return
        if self.progress_count > BURST_EVENTS and last - first <= BURST_S:
            self._soft("burst", BURST_S, first, last)

    def _flush_gaps(self) -> None:
        if self._on_gaps is not None and len(self.pace.gaps) > self._flushed:
            self._on_gaps(self.pace.gaps[self._flushed :])
            self._flushed = len(self.pace.gaps)

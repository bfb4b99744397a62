"""The rhythm of one stream: gaps between tokens, silences between bytes, keepalives and their promise."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Final, Literal

from harness.gateways import Keepalive
from harness.wire.grammar import PING_NAMES
from harness.wire.sse import Comment, Event, Item

# A shorter silence is the pace of generation, not waiting.
WAIT_FLOOR_S: Final = 1.0

# Enough to recognise a keepalive by its text.
KEPT_TEXT_BYTES: Final = 512

# A server that floods comments must not grow our memory.
KEPT_INTERVALS: Final = 10_000

# severity, limit_s, began, ended
Overdue = Callable[[Literal["late", "violation"], float, float, float], None]


class Pace:
    """Accumulates what the record says about progress, silence and keepalives.

    `promise` is the gateway's keepalive promise; `overdue` is told when it is broken. All moments
    are monotonic seconds. A silence up to `floor_s` is the pace of generation, not waiting.
    """

    __slots__ = (
        "_overdue", "comments", "dead_s", "first_keepalive", "floor_s", "gap_max_at", "gap_max_s", "gaps",
        "interval_count", "interval_max_s", "interval_min_s", "interval_sum_s",
        "keepalive_gaps", "last_keepalive", "late", "pings", "promise",
        "silence_max_at", "silence_max_s", "text", "thinking_s",
        "violations",
    )  # fmt: skip

    def __init__(self, promise: Keepalive | None, overdue: Overdue) -> None:
        self.promise = promise
        self._overdue = overdue
        self.floor_s = WAIT_FLOOR_S if promise is None else min(WAIT_FLOOR_S, promise.interval_s / 2)
        self.gaps: array[float] = array("d")
        self.gap_max_s = -1.0
        self.gap_max_at: float | None = None
        self.silence_max_s = -1.0
        self.silence_max_at: float | None = None
        self.comments = self.pings = 0
        self.first_keepalive: float | None = None
        self.last_keepalive: float | None = None
        self.text: str | None = None
        self.keepalive_gaps: list[tuple[str, float]] = []
        self.interval_count = 0
        self.interval_sum_s = 0.0
        self.interval_min_s: float | None = None
        self.interval_max_s: float | None = None
        self.late = self.violations = 0
        self.thinking_s = self.dead_s = 0.0

    def gap(self, gap_s: float, began: float) -> None:
        """A gap between two pieces of output, longer than all before, began at *began*."""
        self.gap_max_s, self.gap_max_at = gap_s, began

    def first_byte(self, t: float, headers: float | None) -> None:
        """The body begins: the promise counts from the headers until then."""
        if headers is not None:
            self._judge_idle(headers, t)

    def silence(self, began: float, until: float, items: Sequence[Item]) -> None:
        """No byte came between *began*, the last one's moment, and *until*; *items* is what came then."""
        silent_s = until - began
        if silent_s > self.silence_max_s:
            self.silence_max_s, self.silence_max_at = silent_s, began
        if silent_s > self.floor_s:
            self._judge_idle(began, until)
            covered = self._after_keepalive(began) or (bool(items) and _is_sign_of_life(items[0]))
            self._wait(silent_s, covered=covered)

    def comment(self, item: Comment, t: float, before: float, exact: bool, headers: float | None) -> None:
        """A comment came at *t*; *before* is the moment of the last byte before it."""
        self.comments += 1
        if self.text is None:
            self.text = item.raw[:KEPT_TEXT_BYTES].decode("utf-8", "replace")
        self._keepalive("comment", t, before, exact, headers)

    def ping(self, t: float, before: float, exact: bool, headers: float | None) -> None:
        """An event without content came at *t*: a ping, or a delta of zero width."""
        self.pings += 1
        self._keepalive("ping", t, before, exact, headers)

    def closing(self, t: float, last_byte: float | None, headers: float | None) -> None:
        """The stream ends at *t*, however: judge the silence and the interval that end here."""
        began = last_byte if last_byte is not None else headers
        if began is None:
            return
        silent_s = t - began
        if last_byte is not None and silent_s > self.silence_max_s:
            self.silence_max_s, self.silence_max_at = silent_s, began
        if silent_s > self.floor_s:
            self._judge_idle(began, t)
            self._wait(silent_s, covered=self._after_keepalive(began))
        self._judge_periodic(t, headers)

    def _keepalive(
        self, kind: Literal["comment", "ping"], t: float, before: float, exact: bool, headers: float | None
    ) -> None:
        last = self.last_keepalive
        if self.first_keepalive is None:
            self.first_keepalive = t
        if exact:
            self._judge_periodic(t, headers)
            if self.promise is not None and self.promise.kind == "idle":
                if before < t:  # what came in the same read as something else followed no idle time
                    self._interval(kind, t - before)
            elif last is not None:
                self._interval(kind, t - last)
        self.last_keepalive = t

    def _after_keepalive(self, began: float) -> bool:
        """Whether the last thing that came, at *began*, was a keepalive."""
        return self.last_keepalive == began

    def release(self) -> None:
        """The stream is over: let go of who listens, or only the garbage collector could free the two."""
        self._overdue = _nobody

    def _interval(self, kind: str, interval_s: float) -> None:
        self.interval_count += 1
        self.interval_sum_s += interval_s
        if self.interval_min_s is None or interval_s < self.interval_min_s:
            self.interval_min_s = interval_s
        if self.interval_max_s is None or interval_s > self.interval_max_s:
            self.interval_max_s = interval_s
        if len(self.keepalive_gaps) < KEPT_INTERVALS:
            self.keepalive_gaps.append((kind, interval_s))

    def _judge_idle(self, began: float, until: float) -> None:
        if self.promise is not None and self.promise.kind == "idle":
            self._judge(began, until)

    def _judge_periodic(self, t: float, headers: float | None) -> None:
        if self.promise is not None and self.promise.kind == "periodic":
            began = self.last_keepalive if self.last_keepalive is not None else headers
            if began is not None:
                self._judge(began, t)

    def _judge(self, began: float, ended: float) -> None:
        assert self.promise is not None
        interval_s = ended - began
        if interval_s > self.promise.violation_s:
            self.violations += 1
            self._overdue("violation", self.promise.violation_s, began, ended)
        elif interval_s > self.promise.late_s:
            self.late += 1
            self._overdue("late", self.promise.late_s, began, ended)

    def _wait(self, silent_s: float, *, covered: bool) -> None:
        """A promise that was broken covers nothing."""
        if covered and (self.promise is None or silent_s <= self.promise.violation_s):
            self.thinking_s += silent_s
        else:
            self.dead_s += silent_s


def _nobody(severity: str, limit_s: float, began: float, ended: float) -> None:
    """Nothing is overdue once a stream has ended."""


def _is_sign_of_life(item: Item) -> bool:
    return isinstance(item, Comment) or (isinstance(item, Event) and item.type in PING_NAMES)

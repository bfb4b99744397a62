"""Which limit runs in which phase, from which moment, and what it is called when it fires.

Three clocks make the difference between thinking and stuck: the last byte of any kind, the last
progress event, and the start. A read timeout knows only the first, so a keepalive hides a stuck
stream from it for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, get_args

from msgspec import structs

from harness.gateways import Limits
from harness.stream.outcome import Phase
from harness.stream.record import Stall


@dataclass(slots=True)
class Clocks:
    """The moments of one stream that limits count from: monotonic seconds, None before they happen."""

    opened: float
    phase: Phase = "connect"
    t0: float | None = None
    headers_at: float | None = None
    first_byte: float | None = None
    last_byte: float | None = None
    last_progress: float | None = None
    settled: float | None = None
    pending: bool = False  # part of an event is waiting for its end

    @property
    def zero(self) -> float:
        """The moment that offsets count from: `t0`, or the start if no connection came about."""
        return self.opened if self.t0 is None else self.t0


@dataclass(frozen=True, slots=True)
class Rule:
    """One limit: while in `phases` it counts from the clock `since`, times `share`."""

    limit: str
    phases: frozenset[Phase]
    since: str
    share: float = 1.0
    needs_pending: bool = False


_WAITING: Final[frozenset[Phase]] = frozenset({"before_headers", "before_first_byte", "before_first_token"})
_BODY: Final[frozenset[Phase]] = frozenset({"before_first_token", "mid_stream"})

# Enough soft stalls to explain a stream; all of them are counted.
KEPT_SOFT: Final = 50

# In this order: of two limits that fire at the same moment the more telling one names the stall.
RULES: Final[tuple[Rule, ...]] = (
    Rule("connect", frozenset({"connect"}), "opened"),
    Rule("headers", frozenset({"before_headers"}), "t0"),
    Rule("first_byte", frozenset({"before_first_byte"}), "headers_at"),
    Rule("silence", _BODY, "last_byte", share=0.5, needs_pending=True),
    Rule("silence", _BODY, "last_byte"),
    Rule("first_token", _WAITING, "t0"),
    Rule("progress", frozenset({"mid_stream"}), "last_progress"),
    Rule("total", _WAITING | {"mid_stream"}, "t0"),
    Rule("close", frozenset({"after_terminal"}), "settled"),
)

_RULES_OF: Final = {phase: tuple(rule for rule in RULES if phase in rule.phases) for phase in get_args(Phase)}


@dataclass(frozen=True, slots=True)
class Due:
    """A limit that runs: it fires at `at`, `limit_s` after `began` (monotonic seconds)."""

    at: float
    rule: Rule
    limit_s: float
    began: float


def running(clocks: Clocks, limits: Limits, *, only_total: bool = False) -> list[Due]:
    """Return the limits that run now, earliest first; `only_total` (a watched stall) leaves most out."""
    due = []
    for rule in _RULES_OF[clocks.phase]:
        if rule.needs_pending and not clocks.pending:
            continue
        if only_total and rule.limit not in ("total", "close"):
            continue
        fail_s: float | None = getattr(limits, rule.limit).fail_s
        began: float | None = getattr(clocks, rule.since)
        if fail_s is not None and began is not None:
            due.append(Due(began + fail_s * rule.share, rule, fail_s * rule.share, began))
    due.sort(key=lambda d: d.at)  # stable: ties stay in the order of RULES
    return due


def name_stall(due: Due, clocks: Clocks) -> str:
    """Return the class of the stall that *due* is: the limit that fired and what was seen name it."""
    limit = due.rule.limit
    if limit == "connect":
        return "no_connect"
    if limit == "total":
        return "over_total"
    if clocks.headers_at is None:
        return "no_headers"
    if clocks.first_byte is None or clocks.last_byte is None:
        return "headers_no_body"
    if due.rule.needs_pending:
        return "half_event"
    if clocks.phase == "mid_stream":
        progress = clocks.last_progress
        alive = limit == "progress" and progress is not None and clocks.last_byte > progress
        return "keepalive_only_mid" if alive else "dead_silence_mid"
    alive = limit == "first_token" and clocks.last_byte > clocks.first_byte
    return "keepalive_only_pre" if alive else "dead_silence_pre"


class StallBook:
    """What was overdue in one stream: at most one hard stall, any number of soft ones.

    `watched` is true while a hard stall is only watched: the stream may still come back.
    """

    __slots__ = ("counts", "hard", "soft", "watched")

    def __init__(self) -> None:
        self.hard: Stall | None = None
        self.soft: list[Stall] = []
        self.counts: dict[str, int] = {}
        self.watched = False

    def add_soft(self, clocks: Clocks, class_: str, limit_s: float, began: float, ended: float) -> None:
        """Book a soft stall; the count is right even where the list is full."""
        self.counts[class_] = self.counts.get(class_, 0) + 1
        if len(self.soft) < KEPT_SOFT:
            self.soft.append(_stall(clocks, class_, limit_s, began, ended))

    def begin_hard(self, clocks: Clocks, due: Due, now: float, *, watch: bool) -> None:
        """A hard limit fired. An earlier one that came back moves to the soft ones."""
        if self.hard is not None:
            self.soft.append(self.hard)
        self.hard = _stall(clocks, name_stall(due, clocks), due.limit_s, due.began, now)
        self.watched = watch

    def end_hard(self, clocks: Clocks, t: float, *, fatal: bool) -> None:
        """The hard stall ended: with output or an end of the stream's own, or `fatal`, by closing it."""
        if self.hard is not None:
            self.hard = structs.replace(self.hard, ended_s=t - clocks.zero, fatal=fatal)
        self.watched = False


def _stall(clocks: Clocks, class_: str, limit_s: float, began: float, ended: float) -> Stall:
    zero = clocks.zero
    return Stall(class_, clocks.phase, limit_s, began - zero, ended - zero, False)

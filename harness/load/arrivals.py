"""When requests are planned to start, whatever became of the ones before: the clock of an open load.

Pure: time and chance come in. A plan is absolute, so a start that comes late never moves the next one;
that is what keeps a slow gateway from slowing down its own test.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal, Protocol

ArrivalKind = Literal["closed", "poisson", "constant", "replay"]
KINDS: tuple[ArrivalKind, ...] = ("closed", "poisson", "constant", "replay")


@dataclass(frozen=True, slots=True)
class Order:
    """What one line of a replayed log asks for; None: as the run's options say."""

    at_s: float  # from the start of the replay, before `--speed`
    protocol: str | None = None
    model: str | None = None
    messages: tuple[dict[str, Any], ...] | None = None
    prompt_tokens: int | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class OpenLoad:
    """How an open load arrives. Rates are requests per second.

    Each of Locust's users offers `rate_per_user`; `share` is which part of a replay this process plays
    (number, of how many). At most `max_in_flight` requests are open in one process: the next arrival is
    dropped and counted, never put off.
    """

    kind: ArrivalKind = "closed"
    rate_per_user: float = 1.0
    max_in_flight: int = 5000
    orders: Sequence[Order] = field(default=(), repr=False)
    speed: float = 1.0
    share: tuple[int, int] = (0, 1)

    @property
    def open(self) -> bool:
        """Whether requests arrive without waiting for each other."""
        return self.kind != "closed"


class Plan(Protocol):
    """A sequence of planned starts."""

    def set_rate(self, rate: float, now: float) -> None:
        """Go on with *rate* from *now* (monotonic seconds); everything due before was taken."""

    def due(self) -> float | None:
        """Return the next planned start; None if there is none."""

    def take(self) -> tuple[float, Order | None]:
        """Take the next planned start out of the plan."""

    @property
    def finished(self) -> bool:
        """Whether no start will ever come again."""


class RatePlan:
    """Starts at a rate that may change: ``poisson`` (independent of each other) or ``constant``.

    The plan counts in expected starts instead of seconds: the next one is `_left` of them away, and a
    change of the rate only changes how fast these go by. So a changing rate needs no restart, and the
    Poisson process stays one.
    """

    finished = False

    def __init__(self, kind: Literal["poisson", "constant"], random: Random) -> None:
        self._random = random
        self._poisson = kind == "poisson"
        self._rate = 0.0
        self._since = 0.0
        # Constant starts of several processes must not coincide.
        self._left = self._draw() if self._poisson else random.random()

    def set_rate(self, rate: float, now: float) -> None:
        """Go on with *rate* from *now*. Raises `ValueError` for a rate that is none."""
        if not 0.0 <= rate < math.inf:
            raise ValueError(f"no rate: {rate}")
        self._left = max(0.0, self._left - self._rate * (now - self._since))
        self._rate, self._since = rate, now

    def due(self) -> float | None:
        """Return the next planned start; None at a rate of 0."""
        return self._since + self._left / self._rate if self._rate else None

    def take(self) -> tuple[float, None]:
        """Take the next planned start."""
        due = self.due()
        assert due is not None
        self._since, self._left = due, self._draw()
        return due, None

    def _draw(self) -> float:
        return self._random.expovariate(1.0) if self._poisson else 1.0


class ReplayPlan:
    """The starts of a log, from the first `set_rate` above 0 on; the rate itself means nothing here."""

    def __init__(self, orders: Sequence[Order], speed: float = 1.0, share: tuple[int, int] = (0, 1)) -> None:
        self._orders = orders[share[0] :: share[1]]
        self._speed = speed
        self._next = 0
        self._start: float | None = None

    def set_rate(self, rate: float, now: float) -> None:
        """Begin, if this is the first time that anybody offers anything."""
        if rate and self._start is None:
            self._start = now

    @property
    def finished(self) -> bool:
        """Whether every line was taken."""
        return self._next >= len(self._orders)

    def due(self) -> float | None:
        """Return when the next line is due."""
        if self._start is None or self.finished:
            return None
        return self._start + self._orders[self._next].at_s / self._speed

    def take(self) -> tuple[float, Order]:
        """Take the next line."""
        due = self.due()
        assert due is not None
        self._next += 1
        return due, self._orders[self._next - 1]


def plan_of(load: OpenLoad, random: Random) -> Plan:
    """Return the plan of an open load."""
    if load.kind == "replay":
        return ReplayPlan(load.orders, load.speed, load.share)
    assert load.kind in ("poisson", "constant")
    return RatePlan("poisson" if load.kind == "poisson" else "constant", random)

"""When each token is due: an absolute schedule, so that lateness never adds up."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """How a healthy stream flows. Seconds; never touched by the time scale."""

    first_token_s: float = 0.2
    gap_s: float = 0.02
    tokens: int = 60
    jitter: float = 0.0
    """Part of a gap by which a token may be early or late, at random (0 to 1)."""


class Schedule:
    """The due times of one stream, in seconds from the moment its request was read whole."""

    __slots__ = ("_first_s", "_gap_s", "_jitter", "_random", "shift_s")

    def __init__(self, pace: Pace, seed: int) -> None:
        self._first_s = pace.first_token_s
        self._gap_s = pace.gap_s
        self._jitter = pace.jitter
        self._random = random.Random(seed) if pace.jitter else None
        self.shift_s = 0.0
        """What pauses have added; everything after a pause is late by it."""

    def due_s(self, k: int) -> float:
        """Return when token *k* (from 0) is due."""
        due = self._first_s + k * self._gap_s + self.shift_s
        if self._random is None:
            return due
        # Half a gap to either side at most: tokens keep their order, and the schedule does not drift.
        return max(due + self._jitter * self._gap_s * (self._random.random() - 0.5), 0.0)

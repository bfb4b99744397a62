"""What watching stalled streams has taught: how many were only thinking, and for how long."""

from __future__ import annotations

from typing import Any, get_args

from harness.gateways.durations import format_duration
from harness.stream.outcome import CLIENT_ENDED, SoftStallClass
from harness.stream.record import Attempt, Stall

# Not watched in any mode: without a connection there is nothing to wait for; `total` ends the watch.
_NEVER_WATCHED = frozenset(get_args(SoftStallClass)) | {"no_connect", "over_total"}


class Watch:
    """Hard stalls of a run with ``--on-stall watch``, by the limit that they passed."""

    def __init__(self) -> None:
        self._beyond: dict[float, dict[str, int]] = {}
        self._longest_wait_s: float | None = None

    def add(self, record: Attempt) -> None:
        """Add one attempt, stalled or healthy."""
        if record.success:
            # A healthy stream's waits for output: before the first token and between two.
            for wait_s in (record.first_token_s, record.progress.gap_max_s):
                if wait_s is not None:
                    self._longest_wait_s = max(wait_s, self._longest_wait_s or 0.0)
        for stall in (record.stall, *record.soft_stalls):
            if stall is not None and stall.class_ not in _NEVER_WATCHED:
                counts = self._beyond.setdefault(stall.limit_s, {"thinking": 0, "never": 0, "open": 0})
                counts[_fate(stall, record)] += 1

    def to_plain(self) -> list[dict[str, Any]]:
        """Return one entry per limit that was passed, with its sentence."""
        return [
            {
                "limit_s": limit_s,
                "came_back": counts["thinking"],
                "never_came_back": counts["never"],
                "open_at_end": counts["open"],
                "longest_healthy_wait_s": self._longest_wait_s,
                "sentence": self._sentence(limit_s, counts),
            }
            for limit_s, counts in sorted(self._beyond.items())
        ]

    def _sentence(self, limit_s: float, counts: dict[str, int]) -> str:
        fates = f"{_were(counts['thinking'])} thinking, {counts['never']} never came back"
        if counts["open"]:
            fates += f", {_were(counts['open'])} still open at the end"
        healthy = "no stream was healthy"
        if self._longest_wait_s is not None:
            healthy = f"no healthy stream was silent longer than {whole_seconds(self._longest_wait_s)}"
        return f"beyond {whole_seconds(limit_s)}: {fates}; {healthy}"


def _were(n: int) -> str:
    return f"{n:,} was" if n == 1 else f"{n:,} were"


def whole_seconds(seconds: float) -> str:
    """Return seconds as people say limits: ``120 s``; short ones with the digits that matter."""
    return f"{seconds:.0f} s" if seconds >= 10 else format_duration(seconds)


def _fate(stall: Stall, record: Attempt) -> str:
    # Output at the stall's end or later: it was thinking after all. Offsets are rounded to the microsecond.
    if record.last_token_s is not None and record.last_token_s >= stall.ended_s - 2e-6:
        return "thinking"
    return "open" if record.outcome in CLIENT_ENDED else "never"

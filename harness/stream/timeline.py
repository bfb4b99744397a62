"""Times and kinds of a stream's events, bounded: its beginning and its end are what explains it."""

from __future__ import annotations

from array import array
from typing import Any, Final

from harness.wire.signals import channel_name

# At the bound the middle half goes, so that a stream of any length keeps both ends.
BOUND: Final = 4096
FULL: Final = 2 * BOUND  # as many numbers, two for each event

COMMENT: Final = 0  # a code no signal has


class Timeline:
    """Append-only list of (moment, signal); code 0 is a comment.

    Both stand in one array, one after the other: an event of a stream among hundreds touches cold memory
    wherever it looks, so it looks at one place.
    """

    __slots__ = ("dropped", "flat")

    def __init__(self) -> None:
        self.flat: array[float] = array("d")
        self.dropped = 0

    @property
    def moments(self) -> array[float]:
        """When each event came, monotonic seconds."""
        return self.flat[::2]

    @property
    def codes(self) -> list[int]:
        """What each event meant."""
        return [int(code) for code in self.flat[1::2]]

    def add(self, moment: float, code: int) -> None:
        """Note one event."""
        flat = self.flat
        flat.append(moment)
        flat.append(code)
        if len(flat) >= FULL:
            self.shorten()

    def as_dict(self, zero: float) -> dict[str, Any]:
        """Return ``{"t": [seconds from zero], "kind": […], "dropped": events left out of the middle}``."""
        return {
            "t": [round(moment - zero, 6) for moment in self.moments],
            "kind": ["comment" if code == COMMENT else channel_name(code) for code in self.codes],
            "dropped": self.dropped,
        }

    def shorten(self) -> None:
        """Drop the middle half."""
        quarter = BOUND // 4
        self.dropped += len(self.flat) // 2 - 2 * quarter
        del self.flat[2 * quarter : -2 * quarter]

"""Times and kinds of a stream's events, bounded: its beginning and its end are what explains it."""

from __future__ import annotations

from array import array
from typing import Any, Final

from harness.wire.signals import channel_name

# At the bound the middle half goes, so that a stream of any length keeps both ends.
BOUND: Final = 4096

COMMENT: Final = 0  # a code no signal has


class Timeline:
    """Append-only list of (moment, signal); code 0 is a comment."""

    __slots__ = ("codes", "dropped", "moments")

    def __init__(self) -> None:
        self.moments: array[float] = array("d")
        self.codes: array[int] = array("H")
        self.dropped = 0

    def shorten(self) -> None:
        """Drop the middle half; call when `moments` has reached `BOUND`."""
        quarter = BOUND // 4
        self.dropped += len(self.moments) - 2 * quarter
        del self.moments[quarter:-quarter]
        del self.codes[quarter:-quarter]

    def as_dict(self, zero: float) -> dict[str, Any]:
        """Return ``{"t": [seconds from zero], "kind": […], "dropped": events left out of the middle}``."""
        return {
            "t": [round(moment - zero, 6) for moment in self.moments],
            "kind": ["comment" if code == COMMENT else channel_name(code) for code in self.codes],
            "dropped": self.dropped,
        }

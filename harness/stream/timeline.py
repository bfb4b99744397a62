"""Times and kinds of a stream's events, bounded: its beginning and its end are what explains it."""

from __future__ import annotations

from array import array
from typing import Any, Final

from harness.wire.signals import channel_name

# At the bound the middle half goes, so that a stream of any length keeps both ends.
BOUND: Final = 4096

COMMENT: Final = 0  # a code no signal has


class Timeline:
    """Append-only list of (moment, signal); code 0 is a comment.

    `moments`: when each event came, monotonic seconds. `codes`: what each meant.
    """

    __slots__ = ("codes", "dropped", "moments")

    def __init__(self) -> None:
        self.moments: array[float] = array("d")
        self.codes: array[int] = array("H")
        self.dropped = 0

    def add(self, moment: float, code: int) -> None:
        """Note one event."""
        self.moments.append(moment)
        self.codes.append(code)
        if len(self.moments) >= BOUND:
            self._shorten()

    def extend(self, moments: list[float], code: int) -> None:
        """Note events that all meant the same."""
        self.moments.fromlist(moments)
        self.codes.extend(array("H", (code,)) * len(moments))
        if len(self.moments) >= BOUND:
            self._shorten()

    def as_dict(self, zero: float) -> dict[str, Any]:
        """Return ``{"t": [seconds from zero], "kind": […], "dropped": events left out of the middle}``."""
        return {
            "t": [round(moment - zero, 6) for moment in self.moments],
            "kind": ["comment" if code == COMMENT else channel_name(code) for code in self.codes],
            "dropped": self.dropped,
        }

    def _shorten(self) -> None:
        """Drop the middle half."""
        quarter = BOUND // 4
        self.dropped += len(self.moments) - 2 * quarter
        del self.moments[quarter:-quarter], self.codes[quarter:-quarter]

"""When each kind of output came first, as far as a person could see it."""

from __future__ import annotations

from harness.wire.signals import CONTENT, PROGRESS, REASONING, REFUSAL, TOOL, VISIBLE

_NAMES = (
    (VISIBLE, "first_token"),
    (CONTENT | REFUSAL, "first_content"),
    (REASONING, "first_reasoning"),
    (TOOL, "first_tool"),
)


class Firsts:
    """The first moments of a stream; `seen` are the signals that hold nothing new any more.

    Whitespace is output, but the clocks of tokens and of content wait for a character to see.
    """

    __slots__ = ("moments", "seen")

    def __init__(self) -> None:
        self.moments: dict[str, float] = {}  # first_event, first_token, … -> monotonic seconds
        self.seen = 0

    def note(self, signal: int, t: float) -> bool:
        """Note output at *t*; returns true if it is the first that a person can see."""
        new = signal & ~self.seen
        kinds = signal & PROGRESS
        if signal & VISIBLE:
            kinds |= VISIBLE
        else:
            kinds &= ~(CONTENT | REFUSAL)
            new &= ~(CONTENT | REFUSAL)
        self.seen |= kinds
        for flags, name in _NAMES:
            if new & flags and name not in self.moments:
                self.moments[name] = t
        return bool(new & VISIBLE)

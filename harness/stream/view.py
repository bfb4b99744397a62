"""What anyone may read of a stream while it is open: for gauges, scrapes and the live timeline."""

from __future__ import annotations

from harness.gateways import Limits
from harness.stream.pace import Pace
from harness.stream.stall import Clocks


class OpenStream(Clocks):
    """The readable face of a session: its clocks, its pace, and whose attempt it is."""

    __slots__ = ("ended_at", "limits", "pace", "request")

    def __init__(self, opened: float, limits: Limits, pace: Pace) -> None:
        super().__init__(opened)
        self.limits = limits
        self.pace = pace
        self.ended_at: float | None = None
        self.request = ""  # whose attempt it is, if whoever opened it says so

    @property
    def ended(self) -> bool:
        """Whether the exchange is over."""
        return self.ended_at is not None

    @property
    def waiting(self) -> bool:
        """Whether the first output is still to come."""
        return self.phase not in ("mid_stream", "after_terminal")

    @property
    def slow_after_s(self) -> float | None:
        """The gap after which the stream counts as slow; None means never."""
        return self.limits.progress.warn_s

    @property
    def keepalive_gaps(self) -> list[tuple[str, float]]:
        """Keepalive intervals so far, each with its kind (``comment`` or ``ping``)."""
        return self.pace.keepalive_gaps

    @property
    def thinking_s(self) -> float:
        """Waiting that keepalives covered, seconds."""
        return self.pace.thinking_s

    @property
    def dead_s(self) -> float:
        """Waiting without any sign of life, seconds."""
        return self.pace.dead_s

"""What anyone may read of a stream while it is open: for gauges, scrapes and the live timeline."""

from __future__ import annotations

from array import array

from harness.gateways import Limits
from harness.stream.outcome import Phase
from harness.stream.pace import Pace
from harness.stream.stall import Clocks


class OpenStream:
    """The readable face of a session. Moments are monotonic seconds, None before they happen."""

    clocks: Clocks
    pace: Pace
    limits: Limits
    ended_at: float | None
    request = ""  # whose attempt it is, if whoever opened it says so

    @property
    def ended(self) -> bool:
        """Whether the exchange is over."""
        return self.ended_at is not None

    @property
    def phase(self) -> Phase:
        """The phase the stream is in."""
        return self.clocks.phase

    @property
    def opened(self) -> float:
        """When the attempt began, before connecting."""
        return self.clocks.opened

    @property
    def t0(self) -> float | None:
        """The moment before the request was written."""
        return self.clocks.t0

    @property
    def headers_at(self) -> float | None:
        """When the headers were whole."""
        return self.clocks.headers

    @property
    def last_byte(self) -> float | None:
        """When the last body byte came."""
        return self.clocks.last_byte

    @property
    def last_progress(self) -> float | None:
        """When the last new output came."""
        return self.clocks.last_progress

    @property
    def slow_after_s(self) -> float | None:
        """The gap after which the stream counts as slow; None means never."""
        return self.limits.progress.warn_s

    @property
    def gaps(self) -> array[float]:
        """All gaps between progress events that can be held against the gateway, seconds."""
        return self.pace.gaps

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

"""Plays one plan on one connection: steps when due, keepalives between events, the truth at the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from harness.sim.clockwork import Clockwork
from harness.sim.plan import (
    CLOSE,
    COMMENT,
    CONTENT,
    HANG,
    HEAD,
    LAST_BODY,
    MUTE,
    PART,
    PROGRESS,
    RAW,
    RESET,
    STALL,
    TERMINAL,
    UNMUTE,
    Plan,
    Step,
)
from harness.sim.truth import TruthLine

# How soon a stream whose client does not read looks again whether the socket has room.
_CONGESTED_S = 0.01


class Link(Protocol):
    """What a playback needs of its connection."""

    congested: bool

    def write(self, data: bytes) -> None:
        """Hand *data* to the socket."""

    def gone(self) -> bool:
        """Say whether writing is in vain, because the client is no longer there."""

    def finish(self) -> None:
        """The exchange is over and the body has its proper end."""

    def close(self) -> None:
        """Close after what has been written."""

    def reset(self) -> None:
        """Close with a RST, at once."""


@dataclass(frozen=True, slots=True)
class Beat:
    """The comments that this stream gets without asking."""

    comment: bytes
    interval_s: float
    periodic: bool
    """Every interval from the headers on; else after an interval without a byte."""
    promised: bool
    """Flows during the whole stream; else only while the plan stalls."""


class Playback:
    """One stream from its request to its end."""

    __slots__ = (
        "_base", "_beat", "_beating", "_chunked", "_clockwork", "_head", "_headed", "_last_byte", "_line",
        "_link", "_may_chunk", "_mid_event", "_muted", "_on_end", "_outcome", "_owed", "_plan",
        "_settled", "_stalled", "_step", "_t0", "over",
    )  # fmt: skip

    def __init__(
        self,
        plan: Plan,
        outcome: str,
        line: TruthLine,
        link: Link,
        clockwork: Clockwork,
        beat: Beat,
        head: bytes,
        chunked: bool,
        t0: float,
        on_end: Callable[[Playback, TruthLine], None],
    ) -> None:
        self._plan = plan
        self._outcome = outcome
        self._line = line
        self._link = link
        self._clockwork = clockwork
        self._beat = beat
        self._head = head
        self._may_chunk = chunked
        self._t0 = self._base = self._last_byte = t0
        self._on_end = on_end
        self._step: Step | None = None
        self._headed = self._chunked = self._mid_event = self._muted = self._owed = False
        self._beating = False
        self._settled = self._stalled = False
        self.over = False

    def start(self, now: float) -> None:
        """Begin the plan; its schedule counts from *now* (later than the request if it had to queue)."""
        self._base = now
        self._step = next(self._plan)
        self._clockwork.at(now, self.advance)

    def open_early(self, now: float) -> None:
        """Send the head and let keepalives flow although the plan has not begun."""
        self._write(self._open(now, b""), now)

    def advance(self, now: float) -> float | None:
        """Play every step that is due; return when the next one is."""
        if self.over:
            return None
        try:
            return self._advance(now)
        except BaseException:
            self._link.reset()
            raise

    def _advance(self, now: float) -> float | None:
        step = self._step
        if self._link.congested:
            return now + _CONGESTED_S
        base, plan, line = self._base, self._plan, self._line
        out = b""
        # Steps due together leave in one write: that is what a socket does with them anyway.
        while step is not None:
            due, kind, data = step
            if base + due > now:
                self._step = step
                self._write(out, now)
                return base + due
            if kind <= LAST_BODY:
                out += b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data
                if kind <= PROGRESS:
                    line.tokens += 1
                    if kind == CONTENT and line.first_content_s is None:
                        line.first_content_s = now - self._t0
                elif kind != PART:
                    self._note(kind)
                if line.first_byte_s is None:
                    line.first_byte_s = now - self._t0
                self._mid_event = kind == PART
                if kind == PART:
                    # A piece of an event is meant to be a segment of its own.
                    self._write(out, now)
                    out = b""
                    if self._link.gone():
                        return None  # `left` follows; more writes would only make the transport complain
                elif self._owed:
                    out += self._comment()
            else:
                out = self._control(kind, data, out, now)
                if kind == HANG or self.over:
                    return None
            step = next(plan, None)
        self._write(out + (b"0\r\n\r\n" if self._chunked else b""), now)
        self._end(self._outcome, now)
        self._link.finish()
        return None

    def _note(self, kind: int) -> None:
        if kind == COMMENT:
            self._line.comments += 1
        elif kind == TERMINAL:
            self._settled = True

    def _control(self, kind: int, data: bytes, out: bytes, now: float) -> bytes:
        """Do what is not body; return what is still to be written."""
        if kind == HEAD:
            return out + self._open(now, data)
        if kind == RAW:
            self._chunked = False
            if self._line.first_byte_s is None and data[-4:] != b"\r\n\r\n":
                self._line.first_byte_s = now - self._t0
            return out + data
        if kind == STALL:
            self._stalled = True
            self._beat_anyway(now)
            return out
        if kind in (MUTE, UNMUTE):
            self._muted = kind == MUTE
            if kind == UNMUTE:
                self._beat_anyway(now)
            return out
        self._write(out, now)
        if kind == CLOSE:
            self._end(self._outcome, now)
            self._link.close()
        elif kind == RESET:
            self._end(self._outcome, now)
            self._link.reset()
        return b""

    def _beat_anyway(self, now: float) -> None:
        """Let keepalives flow that the gateway does not promise."""
        if not self._beat.promised and not self._beating:
            self._beating = True
            self._clockwork.at(now + self._beat.interval_s, self.keep_alive)

    def _open(self, now: float, more: bytes) -> bytes:
        if self._headed:
            return b""
        self._headed = True
        self._chunked = self._may_chunk
        if self._beat.promised:
            self._clockwork.at(now + self._beat.interval_s, self.keep_alive)
        return self._head + more + b"\r\n"

    def keep_alive(self, now: float) -> float | None:
        """Write the comment that is due; return when the next one is."""
        beat = self._beat
        if self.over or self._settled:
            return None
        if not beat.periodic:
            quiet_until = self._last_byte + beat.interval_s
            # A microsecond of slack: the sum of two floats may fall short of the moment it was made for.
            if quiet_until > now + 1e-6:
                return quiet_until
        if self._headed and not self._muted:
            if self._mid_event:
                self._owed = True
            else:
                if self._line.first_byte_s is None:
                    self._line.first_byte_s = now - self._t0
                self._write(self._comment(), now)
        return now + beat.interval_s

    def _comment(self) -> bytes:
        self._owed = False
        self._line.comments += 1
        comment = self._beat.comment
        return b"%x\r\n%b\r\n" % (len(comment), comment) if self._chunked else comment

    def _write(self, data: bytes, now: float) -> None:
        if data:
            self._last_byte = now
            self._link.write(data)

    def left(self, now: float) -> None:
        """The client is gone: stop at once."""
        if not self.over:
            self._line.client_left = True
            self._end(self._judged("abandoned"), now)

    def stop(self, now: float) -> None:
        """The server stops."""
        if not self.over:
            self._end(self._judged("aborted"), now)

    def _judged(self, otherwise: str) -> str:
        """Return the outcome of a stream that did not come to its own end."""
        if self._settled:
            return self._outcome
        return "stalled" if self._stalled else otherwise

    def _end(self, outcome: str, now: float) -> None:
        self.over = True
        self._line.outcome = outcome
        self._line.end_s = now - self._t0
        # The clockwork may hold this playback until its next keepalive; the plan need not wait that long.
        self._plan = iter(())
        self._on_end(self, self._line)

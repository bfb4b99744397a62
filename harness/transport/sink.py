"""What the transport pushes into: the shape of one attempt's session, as far as sockets need to know it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

from harness.stream.outcome import EndReason


class StreamSink(Protocol):
    """One attempt. All times are `time.monotonic()` seconds; the sink itself reads no clock.

    Order of calls: `connected`, `sent`, `headers`, any number of `feed`, `end`; `end` may come at any
    point and is the last. An attempt that never got a connection sees `end` alone.
    """

    clock: Literal["kernel", "user"]  # set by the transport: "kernel" if every read carried the kernel's time

    @property
    def urgency(self) -> int:
        """A counter that grows whenever `deadline()` may have become earlier."""

    @property
    def waiting(self) -> bool:
        """Whether its first output is still to come; when that changes, `urgency` grows."""

    @property
    def ended(self) -> bool:
        """Whether `end` has been called."""

    def connected(
        self, t: float, *, connect_s: float | None, tls_s: float | None, peer: str, reused: bool
    ) -> None:
        """Take note of the connection; both durations are None on a reused one, `tls_s` without TLS."""

    def sent(self, t: float) -> None:
        """Start the attempt's time: the request is about to be written to the open connection."""

    def headers(self, status: int, headers: Mapping[str, str], t: float) -> None:
        """Take the final answer's status and headers (lower-case names)."""

    def feed(self, data: bytes, t: float, earliest: float | None = None) -> None:
        """Take the decoded body bytes of one socket read.

        The last byte arrived at *t*; those before it arrived between *earliest* and *t*.
        """

    def end(self, reason: EndReason, t: float, detail: str = "") -> None:
        """Take the attempt's end; *detail* is one line for a person, or empty."""

    def deadline(self) -> float | None:
        """Return the next moment at which a limit may fire."""

    def expire(self, now: float) -> bool:
        """Let a limit fire; True asks for the connection to be closed now."""

    def violation(self, rule: str) -> None:
        """Count one breach of *rule*."""

    def lag(self, lag_s: float) -> None:
        """Take how long after its arrival one read was made."""

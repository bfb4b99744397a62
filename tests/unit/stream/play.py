"""A session with a fake clock: say what comes when; limits fire in between, as they would."""

from __future__ import annotations

from typing import Any

from harness.gateways import Limits, Profile, load
from harness.stream import Attempt, Identity, Retry, Session, assemble
from harness.stream.outcome import EndReason
from harness.wire import grammar_for

EPOCH = 1_700_000_000.0
OPENED = 5000.0  # monotonic, and the connection takes a quarter of a second
T0 = OPENED + 0.25

IDENTITY = Identity(
    run="r1", request="q1", attempt=1, protocol="chat", gateway="generic", simulated=False,
    scenario="default", model="m", worker="local", phase="measure", scheduled_at=EPOCH,
)  # fmt: skip


class Play:
    """One attempt. All times are seconds after the request was written."""

    def __init__(
        self,
        protocol: str = "chat",
        gateway: str | Profile = "generic",
        *,
        limits: Limits | None = None,
        usage_requested: bool = False,
        connect: bool = True,
        **options: Any,
    ) -> None:
        profile = load(gateway) if isinstance(gateway, str) else gateway
        options = {"keepalive": profile.keepalive, "terminator": profile.terminator, **options}
        self.session = Session(
            grammar_for(protocol, usage_requested=usage_requested),
            limits or profile.limits,
            OPENED,
            **options,
        )
        self.fired: list[float] = []  # when a limit fired
        self._now = OPENED
        if connect:
            self.session.connected(T0, connect_s=0.25, tls_s=None, peer="192.0.2.1:80", reused=False)
            self.session.sent(T0)

    def wait(self, until: float, *, inclusive: bool = True) -> Play:
        """Nothing comes until then: let every limit fire that is due."""
        session = self.session
        while not session.ended:
            due = session.deadline()
            if due is None or due > T0 + until or (due == T0 + until and not inclusive):
                break  # a limit at the very moment of a read finds the bytes first
            self._now = max(due, self._now)  # what has to be closed at once has its moment in the past
            closed = session.expire(self._now)
            self.fired.append(round(self._now - T0, 6))
            if closed:
                session.end("closed", self._now)
        self._now = max(self._now, T0 + until)
        return self

    def head(
        self, at: float = 0.5, status: int = 200, kind: str = "text/event-stream", **headers: str
    ) -> Play:
        """The headers come."""
        self.wait(at, inclusive=False)
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        self.session.headers(status, {"content-type": kind, **names}, T0 + at)
        return self

    def read(self, at: float, data: bytes, earliest: float | None = None) -> Play:
        """One read; *earliest* is when its first byte may have come."""
        self.wait(at, inclusive=False)
        self.session.feed(data, T0 + at, None if earliest is None else T0 + earliest)
        return self

    def every(self, seconds: float, data: bytes, *, begin: float, end: float) -> Play:
        """The same read again and again, from *begin* to *end*."""
        steps = round((end - begin) / seconds)
        for step in range(steps + 1):
            self.read(begin + step * seconds, data)
        return self

    def end(self, at: float, reason: EndReason = "eof", detail: str = "") -> Attempt:
        """The exchange ends; returns its record."""
        self.wait(at, inclusive=False)
        self.session.end(reason, T0 + at, detail)
        return self.record()

    def record(self) -> Attempt:
        """The record of the ended exchange."""
        return assemble(self.session, IDENTITY, EPOCH - T0, retry=Retry("none"), final=False)

    @property
    def soft(self) -> list[tuple[str, str, float, float]]:
        """The soft stalls so far: class, phase, began, ended."""
        return [
            (s.class_, s.phase, round(s.began_s, 6), round(s.ended_s, 6)) for s in self.session.stalls.soft
        ]


def stall(record: Attempt) -> tuple[str, str, float, float, float, bool] | None:
    """The hard stall of *record*: class, phase, limit, began, ended, fatal."""
    found = record.stall
    if found is None:
        return None
    return (found.class_, found.phase, found.limit_s, found.began_s, found.ended_s, found.fatal)

"""Users who leave before their answer is whole: after a time, or after some tokens.

Pure: which requests are left is drawn from the caller's random numbers, and when is decided from the
moments and events that the transport reports.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Literal

from harness.gateways import DurationError, parse_duration
from harness.stream import Session
from harness.stream.outcome import EndReason

_RULE = re.compile(r"([0-9.]+)\s*%\s*@\s*(.+)")
_FIRST = "first-token"
_TOKENS = re.compile(r"([0-9]+)\s*tokens?")

EXPECTED = "expected SHARE%@WHEN as in 5%@2s, 5%@first-token or 5%@first-token+20tokens"


class AbandonError(ValueError):
    """``--abandon`` cannot be read; the message says what was expected."""


@dataclass(frozen=True, slots=True)
class Leave:
    """When a user leaves: `after_s` seconds (or `tokens` pieces of output) after the planned start, or
    after the first token."""

    share: float
    from_first_token: bool
    after_s: float = 0.0
    tokens: int = 0


def parse_abandon(text: str) -> tuple[Leave, ...]:
    """Return the rules in *text*, comma-separated. Raises `AbandonError`."""
    rules = tuple(_rule(entry.strip()) for entry in text.split(",") if entry.strip())
    if sum(rule.share for rule in rules) > 1.0:
        raise AbandonError(f"the shares of {text!r} add up to more than 100 %")
    return rules


def _rule(text: str) -> Leave:
    match = _RULE.fullmatch(text)
    if match is None:
        raise AbandonError(f"{EXPECTED}, got {text!r}")
    try:
        share = float(match[1]) / 100.0
    except ValueError:
        raise AbandonError(f"{EXPECTED}, got {text!r}") from None
    if not 0.0 < share <= 1.0:
        raise AbandonError(f"expected a share above 0 and up to 100 %, got {match[1]}%")
    anchor, plus, rest = match[2].partition("+")
    if anchor.strip() == _FIRST:
        if plus and (tokens := _TOKENS.fullmatch(rest.strip())):
            return Leave(share, True, tokens=int(tokens[1]))
        return Leave(share, True, after_s=_seconds(rest, text) if plus else 0.0)
    return Leave(share, False, after_s=_seconds(match[2], text))


def _seconds(text: str, whole: str) -> float:
    try:
        return parse_duration(text.strip())
    except DurationError as error:
        raise AbandonError(f"{EXPECTED}, got {whole!r} ({error})") from None


def choose(rules: tuple[Leave, ...], random: Random) -> Leave | None:
    """Return the rule that this request follows, if any: one draw for each request."""
    if not rules:
        return None
    draw = random.random()
    for rule in rules:
        if draw < rule.share:
            return rule
        draw -= rule.share
    return None


class LeavingSession:
    """A session whose user leaves: the transport pushes into it as into the *session* that it wraps.

    *planned* is the planned start of the request, monotonic seconds. Who has their whole answer before
    the time comes stays.
    """

    def __init__(self, session: Session, rule: Leave, planned: float) -> None:
        self._session = session
        self._rule = rule
        self._leaves_at: float | None = None if rule.from_first_token else planned + rule.after_s
        self._left = False
        self._urgency = 0

    @property
    def clock(self) -> Literal["kernel", "user"]:
        """Whose clock times the reads."""
        return self._session.clock

    @clock.setter
    def clock(self, value: Literal["kernel", "user"]) -> None:
        self._session.clock = value

    @property
    def urgency(self) -> int:
        """A counter that grows whenever `deadline` may have become earlier."""
        return self._session.urgency + self._urgency

    @property
    def waiting(self) -> bool:
        """Whether the first output is still to come."""
        return self._session.waiting

    @property
    def ended(self) -> bool:
        """Whether `end` has been called."""
        return self._session.ended

    def connected(
        self, t: float, *, connect_s: float | None, tls_s: float | None, peer: str | None, reused: bool
    ) -> None:
        """A connection is open."""
        self._session.connected(t, connect_s=connect_s, tls_s=tls_s, peer=peer, reused=reused)

    def sent(self, t: float) -> None:
        """The request is about to be written."""
        self._session.sent(t)

    def headers(self, status: int, headers: Mapping[str, str], t: float) -> None:
        """The final answer's status and headers are there."""
        self._session.headers(status, headers, t)

    def feed(self, data: bytes, t: float, earliest: float | None = None) -> None:
        """Take the bytes of one read, and see whether the user has seen enough."""
        session, rule = self._session, self._rule
        session.feed(data, t, earliest)
        if self._leaves_at is None and session.progress_count > rule.tokens:
            self._leaves_at = t + rule.after_s
            self._urgency += 1

    def end(self, reason: EndReason, t: float, detail: str = "") -> None:
        """The exchange is over."""
        self._session.end("abandoned" if self._left and reason == "closed" else reason, t, detail)

    def deadline(self) -> float | None:
        """Return the next moment at which a limit may fire or the user leaves."""
        due, leaves_at = self._session.deadline(), self._leaves_at
        if leaves_at is None or self._session.outcome is not None:
            return due
        return leaves_at if due is None else min(due, leaves_at)

    def expire(self, now: float) -> bool:
        """Let what is due happen; True asks for the connection to be closed now."""
        if self._leaves_at is not None and now >= self._leaves_at and self._session.outcome is None:
            self._left = True
            return True
        return self._session.expire(now)

    def violation(self, rule: str) -> None:
        """Count one breach of *rule*."""
        self._session.violation(rule)

    def lag(self, lag_s: float) -> None:
        """Note how late a read came after its bytes."""
        self._session.lag(lag_s)

"""What the client did with what it got: attempts, waits, and whether it waited as long as it was told to.

Times come in as arguments. A request is known by its id, else by its key and body: a client that tries
again sends the same bytes.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from statistics import median

# Requests under observation at once, and for how long after a failure: twice the longest wait that an
# answer asks for. The verdict on older ones is already counted.
_KEPT = 50_000
_FORGOTTEN_AFTER_S = 240.0
# A client's timer and the network may make a wait look this much shorter than it was.
_TOLERANCE_S = 0.02


@dataclass(slots=True)
class _Request:
    attempts: int = 0
    ended_s: float | None = None
    failed_with: str = ""
    told_s: float | None = None


@dataclass(slots=True)
class Verdict:
    """Counts what one client, or many, did over the life of the server."""

    _requests: OrderedDict[Hashable, _Request] = field(default_factory=OrderedDict)
    _attempts: Counter[int] = field(default_factory=Counter)
    _waits_s: deque[float] = field(default_factory=lambda: deque(maxlen=_KEPT))
    _told: int = 0
    _hurried: list[tuple[float, float]] = field(default_factory=list)
    _given_up: Counter[str] = field(default_factory=Counter)

    def begins(self, who: Hashable, anew: bool, now_s: float) -> None:
        """Note that an attempt of *who* begins; *anew*: the client says that it is a first one."""
        if anew:
            self._close(who)
        request = self._requests.setdefault(who, _Request())
        if request.ended_s is not None:
            waited_s = now_s - request.ended_s
            self._waits_s.append(waited_s)
            if request.told_s is not None:
                self._told += 1
                if waited_s < request.told_s - _TOLERANCE_S:
                    self._hurried.append((waited_s, request.told_s))
        request.attempts += 1
        self._forget(now_s)

    def _forget(self, now_s: float) -> None:
        """Close the oldest requests that nobody will try again: a server runs for weeks."""
        while self._requests:
            who, oldest = next(iter(self._requests.items()))
            is_over = oldest.ended_s is not None and now_s - oldest.ended_s > _FORGOTTEN_AFTER_S
            if not is_over and len(self._requests) <= _KEPT:
                return
            self._close(who)

    def ends(self, who: Hashable, outcome: str, told_s: float | None, now_s: float) -> None:
        """Note how the attempt ended; *told_s*: the wait that the answer asked for."""
        request = self._requests.get(who)
        if request is not None:
            request.ended_s, request.told_s = now_s, told_s
            request.failed_with = "" if outcome in ("completed", "abandoned", "aborted") else outcome
            if not request.failed_with:
                self._close(who)  # the same bytes once more are a new request

    def lines(self) -> list[str]:
        """Return the verdict for people."""
        for who in list(self._requests):
            self._close(who)
        total, attempts = sum(self._attempts.values()), sum(n * c for n, c in self._attempts.items())
        spread = ", ".join(f"{count} took {n}" for n, count in sorted(self._attempts.items()))
        lines = [f"client: {total} requests, {attempts} attempts ({spread or 'none'})"]
        if self._waits_s:
            low, mid, high = min(self._waits_s), median(self._waits_s), max(self._waits_s)
            lines.append(f"waits before a retry: {low:.2f} s to {high:.2f} s, median {mid:.2f} s")
        if self._told:
            kept = self._told - len(self._hurried)
            lines.append(f"Retry-After: obeyed {kept} of {self._told} times")
            if self._hurried:
                waited_s, told_s = min(self._hurried)
                lines.append(f"  the worst waited {waited_s:.2f} s instead of {told_s:.2f} s")
        if self._given_up:
            given_up = ", ".join(f"{outcome} {n}" for outcome, n in sorted(self._given_up.items()))
            lines.append(f"given up after: {given_up}")
        return lines

    def _close(self, who: Hashable) -> None:
        request = self._requests.pop(who, None)
        if request is not None:
            self._attempts[request.attempts] += 1
            if request.failed_with:
                self._given_up[request.failed_with] += 1


def told_wait_s(headers: Mapping[str, str], wall_s: float) -> float | None:
    """Return the wait that an answer's *headers* ask for, as the official SDKs read them."""
    try:
        if "Retry-After-Ms" in headers:
            return float(headers["Retry-After-Ms"]) / 1000.0
        if "Retry-After" not in headers:
            return None
        text = headers["Retry-After"]
        return float(text) if text.isdecimal() else parsedate_to_datetime(text).timestamp() - wall_s
    except ValueError:
        return None

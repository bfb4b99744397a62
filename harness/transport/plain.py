"""An ordinary httpx answer over our connections: for the requests beside the measured ones (a login)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from time import monotonic
from typing import Any, Literal

import gevent
import httpx
from gevent.event import Event

from harness.stream.outcome import EndReason
from harness.transport.attempt import Attempt, Keeper


class _Answer:
    """A session that only collects, for the greenlet that iterates; its limits are httpx's timeouts."""

    clock: Literal["kernel", "user"] = "user"
    waiting = False

    def __init__(self, timeouts: Mapping[str, float | None]) -> None:
        self.pieces: deque[bytes] = deque()
        self.changed = Event()
        self.reason: EndReason | None = None
        self.detail = ""
        self.urgency = 0
        self.was_sent = False
        self._read_s = timeouts.get("read")
        connect_s = timeouts.get("connect")
        self._due = None if connect_s is None else monotonic() + connect_s

    @property
    def ended(self) -> bool:
        return self.reason is not None

    def connected(
        self, t: float, *, connect_s: float | None, tls_s: float | None, peer: str, reused: bool
    ) -> None:
        """Nothing to keep."""

    def sent(self, t: float) -> None:
        self.was_sent = True
        self._wait_from(t)
        self.urgency += 1

    def headers(self, status: int, headers: Mapping[str, str], t: float) -> None:
        self._wait_from(t)
        self.changed.set()

    def feed(self, data: bytes, t: float, earliest: float | None = None) -> None:
        self._wait_from(t)
        self.pieces.append(data)
        self.changed.set()

    def end(self, reason: EndReason, t: float, detail: str = "") -> None:
        self.reason, self.detail = reason, detail or self.detail
        self.changed.set()

    def deadline(self) -> float | None:
        return self._due

    def expire(self, now: float) -> bool:
        self.detail = f"nothing came for {self._read_s:g} s" if self.was_sent else "no connection in time"
        return True

    def violation(self, rule: str) -> None:
        """Not judged."""

    def lag(self, lag_s: float) -> None:
        """Not measured."""

    def as_error(self, request: httpx.Request) -> httpx.TransportError:
        """Return the exception for how it ended."""
        if self.reason == "closed" and not self.was_sent:
            return httpx.ConnectTimeout(self.detail, request=request)
        return as_httpx_error(self.reason or "aborted", self.detail, request)

    def _wait_from(self, t: float) -> None:
        self._due = None if self._read_s is None else t + self._read_s


class _Body(httpx.SyncByteStream):
    def __init__(self, attempt: Attempt, answer: _Answer, request: httpx.Request) -> None:
        self._attempt = attempt
        self._answer = answer
        self._request = request

    def __iter__(self) -> Iterator[bytes]:
        answer = self._answer
        while True:
            while answer.pieces:
                yield answer.pieces.popleft()
            if answer.reason == "eof":
                return
            if answer.reason is not None:
                raise answer.as_error(self._request)
            answer.changed.clear()
            answer.changed.wait()

    def close(self) -> None:
        self._attempt.stop("abandoned")


def fetch(keeper: Keeper, request: httpx.Request) -> httpx.Response:
    """Send *request* and return its answer as soon as the headers are there; the body streams.

    Raises the exceptions of httpx.
    """
    timeouts: Any = request.extensions.get("timeout", {})
    answer = _Answer(timeouts)
    attempt = Attempt(keeper, answer, decode=False)  # httpx decodes
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw]
    gevent.spawn(attempt.run, request.method, request.url, headers, request.read())
    try:
        while attempt.head is None and answer.reason is None:
            answer.changed.clear()
            answer.changed.wait()
    except BaseException:
        attempt.stop("aborted")
        raise
    if attempt.head is None:
        raise answer.as_error(request)
    status, raw_headers = attempt.head
    return httpx.Response(status, headers=raw_headers, stream=_Body(attempt, answer, request))


def as_httpx_error(reason: EndReason, detail: str, request: httpx.Request) -> httpx.TransportError:
    """Return the exception that a caller of httpx expects for an attempt that ended so."""
    kind: type[httpx.TransportError]
    match reason:
        case "connect_error":
            kind = httpx.ConnectError
        case "closed":
            kind = httpx.ReadTimeout
        case "aborted" | "abandoned":
            kind = httpx.ReadError
        case _:
            kind = httpx.RemoteProtocolError
    return kind(detail or reason, request=request)

"""Captured streams: files that people have, judged offline by the session that judges live ones.

Three kinds of file. Raw bytes of a body, with or without the head that ``curl -i`` puts before it: no times,
so no limit can fire. Lines with a time each, as ``curl -N … | ts '%.s'`` writes them (unix seconds, seconds
since the start, ISO 8601, or the time of day). Our own ``timelines.jsonl``: times and kinds, from which an
equal stream is made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from harness.gateways import Limits, Profile
from harness.judge.equal_stream import equal_stream
from harness.stream import Attempt, Identity, Retry, Session, assemble
from harness.stream.outcome import EndReason
from harness.wire import grammar_for

End = Literal["eof", "cut", "open"]

_HEAD = re.compile(rb"HTTP/[\d.]+ (\d{3})[^\r\n]*\r?\n")
_DAY_S = 86_400.0
# Whoever waits this long sees every limit fire.
_FOR_EVER_S = 1e9


class CaptureError(ValueError):
    """The file is no capture; the message is one line for the user."""


@dataclass(frozen=True, slots=True)
class Capture:
    """One captured answer.

    `chunks`: seconds from the first one, bytes. `timed`: those seconds mean something.
    """

    chunks: tuple[tuple[float, bytes], ...]
    timed: bool
    began_at: float | None = None
    """Unix time of the first chunk, where the file says it."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})
    protocol: str | None = None
    name: str = "capture"
    attempt: int = 1
    told: str | None = None
    """The outcome that a timeline says itself."""


def read_capture(data: bytes) -> list[Capture]:
    """Return the captured answers in *data*. Raises `CaptureError`."""
    if not data.strip():
        raise CaptureError("the file is empty")
    if data.lstrip()[:1] == b"{":
        return [_timeline(line, n) for n, line in enumerate(data.splitlines(), 1) if line.strip()]
    first = next(line for line in data.splitlines(keepends=True) if line.strip())
    for stamp in _STAMPS:
        if stamp.pattern.fullmatch(first):
            return [_timed(data, stamp)]
    status, headers, body = _head(data)
    return [Capture(((0.0, body),), timed=False, status=status, headers=headers)]


def judge_capture(
    capture: Capture,
    profile: Profile,
    protocol: str,
    *,
    end: End = "eof",
    waited_s: float = 0.0,
    on_stall: Literal["close", "watch"] = "close",
) -> tuple[Attempt, dict[str, Any]]:
    """Return the record of *capture* and its timeline.

    Time counts from the first line, unless the capture's own clock says otherwise. *end*: how the connection
    ended after the last byte; ``open``: it did not, and whoever captured it gave up after *waited_s*.
    """
    session = Session(
        grammar_for(protocol), profile.limits if capture.timed else Limits(), 0.0,
        terminator=profile.terminator, on_stall=on_stall,
        keepalive=profile.keepalive if capture.timed else None,
    )  # fmt: skip
    session.sent(0.0)
    session.headers(capture.status, capture.headers, 0.0)
    now = 0.0
    for now, data in capture.chunks:
        if _closed_before(session, now):
            break
        session.feed(data, now)
    else:
        _end(session, capture, now, end, waited_s)
    identity = Identity(
        run="read", request=capture.name, attempt=capture.attempt, protocol=protocol, gateway=profile.name,
        simulated=False, scenario="default", model="", worker="local", phase="measure",
        scheduled_at=capture.began_at or 0.0,
    )  # fmt: skip
    record = assemble(session, identity, capture.began_at or 0.0, retry=Retry("none"), final=True)
    return record, session.timeline()


def _end(session: Session, capture: Capture, last_s: float, end: End, waited_s: float) -> None:
    """End the stream as the user says, or as a timeline's own outcome says."""
    reasons: dict[str, EndReason] = {"cut": "cut", "abandoned": "abandoned", "aborted": "aborted"}
    reason: EndReason = "abandoned" if end == "open" else end
    if capture.told is not None:
        reason = reasons.get(capture.told, reason)
        waited_s = _FOR_EVER_S if capture.told == "stalled" else waited_s
    if not _closed_before(session, last_s + waited_s):
        session.end(reason, last_s + waited_s, "as the capture says" if reason == "cut" else "")


def _closed_before(session: Session, now: float) -> bool:
    """Let every limit fire that is due before *now*; return whether that closed the stream."""
    while (due := session.deadline()) is not None and due < now:
        if session.expire(due):
            session.end("closed", due)
            return True
    return session.ended_at is not None


def _head(data: bytes) -> tuple[int, dict[str, str], bytes]:
    """Take the head that ``curl -i`` wrote off *data*; interim heads and redirects go with it."""
    status, headers = 200, {"content-type": "text/event-stream"}
    while found := _HEAD.match(data):
        blank = b"\r\n\r\n" if b"\r\n\r\n" in data else b"\n\n"
        head, _, data = data.partition(blank)
        status = int(found[1])
        lines = (line.decode("latin-1").partition(":") for line in head.splitlines()[1:])
        headers = {name.strip().lower(): value.strip() for name, _, value in lines}
    return status, headers, data


@dataclass(frozen=True, slots=True)
class _Stamp:
    """One way to write the time before a line: groups are the parts of the time, then the line."""

    pattern: re.Pattern[bytes]
    read: Callable[[re.Match[bytes]], float]
    is_date: bool = False
    wraps_s: float = 0.0


def _iso_s(found: re.Match[bytes]) -> float:
    moment = datetime.fromisoformat(found[1].decode().replace(",", "."))
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


_STAMPS = (
    _Stamp(
        re.compile(
            rb"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)(?:[ \t]|$)(.*)", re.DOTALL
        ),
        _iso_s,
        is_date=True,
    ),
    _Stamp(
        re.compile(rb"(\d\d):(\d\d):(\d\d(?:\.\d+)?)(?:[ \t]|$)(.*)", re.DOTALL),
        lambda found: int(found[1]) * 3600.0 + int(found[2]) * 60.0 + float(found[3]),
        wraps_s=_DAY_S,
    ),
    _Stamp(re.compile(rb"(\d+(?:\.\d+)?)(?:[ \t]|$)(.*)", re.DOTALL), lambda found: float(found[1])),
)
# Seconds beyond this are unix time; before it, they count from the start of the capture.
_UNIX_FROM = 1e9


def _timed(data: bytes, stamp: _Stamp) -> Capture:
    chunks: list[tuple[float, bytes]] = []
    began = last = 0.0
    # Not `splitlines`: a carriage return inside a line belongs to the stream.
    for number, line in enumerate(data.replace(b"\r\n", b"\n").split(b"\n"), 1):
        found = stamp.pattern.fullmatch(line + b"\n") or stamp.pattern.fullmatch(line)
        if found is None:
            if not line.strip():
                continue
            raise CaptureError(f"line {number} does not begin with a time, as the first line does")
        moment = stamp.read(found)
        if not chunks:
            began = last = moment
        if stamp.wraps_s and moment < last - stamp.wraps_s / 2:
            began -= stamp.wraps_s  # past midnight
            last = moment
        last = max(last, moment)  # a clock that was set back: time does not run backwards
        text = found[found.re.groups]
        chunks.append((round(last - began, 6), text if text.endswith(b"\n") else text + b"\n"))
    began_at = began if stamp.is_date or began > _UNIX_FROM else None
    return Capture(tuple(_told_in_head(chunks)), timed=True, began_at=began_at, **_head_of(chunks))


def _head_of(chunks: list[tuple[float, bytes]]) -> dict[str, Any]:
    if not chunks[0][1].startswith(b"HTTP/"):
        return {}
    status, headers, _ = _head(b"".join(data for _, data in chunks))
    return {"status": status, "headers": headers}


def _told_in_head(chunks: list[tuple[float, bytes]]) -> Iterator[tuple[float, bytes]]:
    """Yield the chunks of the body: the lines after the head, if there is one."""
    in_head = chunks[0][1].startswith(b"HTTP/")
    for at_s, data in chunks:
        if not in_head:
            yield at_s, data
        elif not data.strip():
            in_head = False


def _timeline(line: bytes, number: int) -> Capture:
    try:
        data = msgspec.json.decode(line, type=dict[str, Any])
        moments, kinds, protocol = data["t"], data["kind"], data["protocol"]
        chunks = tuple(
            (max(0.0, float(t)), equal)
            for t, equal in zip(moments, equal_stream(protocol, kinds), strict=True)
        )
    except (msgspec.DecodeError, KeyError, TypeError, ValueError) as error:
        raise CaptureError(f"line {number} is no timeline of ours: {error}") from None
    return Capture(
        chunks, timed=True, protocol=protocol, name=str(data.get("request", f"line {number}")),
        attempt=int(data.get("attempt", 1)), told=data.get("outcome"),
    )  # fmt: skip

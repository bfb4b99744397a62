"""A captured stream played again: a user's report becomes a test.

Reads the same files as `harness read`, with a reader of its own: raw bytes of a body, lines with a time
before each, and our timelines. Every request gets the capture whatever it asks for; the bytes are the
captured ones, without keepalives of our own. Durations are multiplied by the time scale, as all that the
simulator plays.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from harness.sim.faults.registry import fault
from harness.sim.plan import CLOSE, COMMENT, CONTENT, EVENT, HANG, MUTE, PART, TERMINAL, Plan
from harness.sim.script import Script

NAME = "replay"
ENDS = ("eof", "reset", "hang")

_STAMPED = re.compile(
    rb"(?:(?P<date>\d{4}-\d\d-\d\d[T ][\d:.,]+(?:Z|[+-]\d\d:?\d\d)?)"
    rb"|(?P<clock>\d\d:\d\d:[\d.]+)|(?P<s>\d+(?:\.\d+)?))"
    rb"(?:[ \t](?P<line>.*))?",
    re.DOTALL,
)
_DAY_S = 86_400.0
_TERMINALS = (
    b"data: [DONE]", b"data:[DONE]", b"event: message_stop", b"event: response.completed", b"event: error",
    b"event: response.incomplete", b"event: response.failed", b'data: {"error"',
)  # fmt: skip


class ReplayError(ValueError):
    """The file cannot be played; the message is one line for the user."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What to play: seconds from the first entry, with bytes of the body or a timeline's kind."""

    pieces: tuple[tuple[float, bytes], ...] = ()
    kinds: tuple[tuple[float, str], ...] = ()


def read_recording(path: str) -> Recording:
    """Return the recording in the file *path*. Raises `ReplayError`."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ReplayError(f"cannot read {path}: {error.strerror}") from None
    if not data.strip():
        raise ReplayError(f"{path} is empty")
    if data.lstrip()[:1] == b"{":
        return _timeline(data.lstrip().partition(b"\n")[0], path)
    lines = data.split(b"\n")
    first = next(line for line in lines if line.strip())
    pieces = _stamped(lines, path) if _STAMPED.fullmatch(first) else [(0.0, data)]
    return Recording(tuple(_blocks(_without_head(pieces))))


def enter(recording: Recording, end: str) -> None:
    """Enter the recording into the table of faults under `NAME`."""

    def plan(script: Script) -> Plan:
        scale = script.circumstances.profile.time_scale
        yield from (
            _kinds(script, recording.kinds, scale) if recording.kinds else _bytes(script, recording, scale)
        )
        if end == "reset":
            yield 0.0, CLOSE, b""
        elif end == "hang":
            yield 0.0, HANG, b""

    fault(NAME, "a captured stream, byte for byte", _outcome(recording, end))(plan)


def _outcome(recording: Recording, end: str) -> str:
    """Return what the capture most likely means: nothing here parses it as a client does."""
    body = b"".join(data for _, data in recording.pieces)
    kinds = {kind for _, kind in recording.kinds}
    if "error" in kinds or b'"error":{' in body.replace(b" ", b"") or b"event: error" in body:
        return "error_event"
    if "terminal" in kinds or any(mark in body for mark in _TERMINALS):
        return "completed"
    return {"eof": "truncated", "reset": "cut", "hang": "stalled"}[end]


def _bytes(script: Script, recording: Recording, scale: float) -> Plan:
    yield from ((due, kind, data) for due, kind, data in script.opening() if kind > PART)  # the head alone
    yield 0.0, MUTE, b""
    for at_s, data in recording.pieces:
        yield at_s * scale, _kind(data), data


def _kind(data: bytes) -> int:
    if data.startswith(b":"):
        return COMMENT
    if not data.endswith((b"\n\n", b"\r\n\r\n", b"\r\r")):
        return PART
    return TERMINAL if data.startswith(_TERMINALS) else EVENT


def _kinds(script: Script, kinds: Iterable[tuple[float, str]], scale: float) -> Plan:
    yield from script.opening()
    yield 0.0, MUTE, b""
    for at_s, kind in kinds:
        due = at_s * scale
        if kind == "comment":
            yield due, COMMENT, b": comment\n\n"
        elif kind == "keepalive":
            yield due, EVENT, b"event: ping\ndata: {}\n\n"
        elif kind == "error":
            yield from ((due, step, data) for _, step, data in script.breaks_off())
        elif kind == "terminal":
            yield from ((due, step, data) for _, step, data in script.closing())
        elif kind in ("content", "reasoning", "tool", "refusal"):
            channel = "content" if kind == "refusal" else kind
            yield from ((due, step, data) for _, step, data in script.open_channel(channel))
            yield due, CONTENT, script.apart(b"x", channel)


def _stamped(lines: list[bytes], path: str) -> list[tuple[float, bytes]]:
    moments: list[float] = []
    texts: list[bytes] = []
    for number, line in enumerate(lines, 1):
        found = _STAMPED.fullmatch(line.removesuffix(b"\r"))
        if found is None:
            if not line.strip():
                continue
            raise ReplayError(f"{path}, line {number}: no time before it, as before the first line")
        moments.append(_seconds(found))
        texts.append((found["line"] or b"") + b"\n")
    at_s, pieces = 0.0, [(0.0, texts[0])]
    for (before, now), text in zip(pairwise(moments), texts[1:], strict=True):
        step_s = now - before
        # The time of day begins anew at midnight; other clocks that run backwards were set back.
        at_s += step_s + _DAY_S if step_s < -_DAY_S / 2 else max(0.0, step_s)
        pieces.append((round(at_s, 6), text))
    return pieces


def _seconds(found: re.Match[bytes]) -> float:
    if found["date"]:
        moment = datetime.fromisoformat(found["date"].decode().replace(",", "."))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if found["clock"]:
        hours, minutes, seconds = found["clock"].split(b":")
        return int(hours) * 3600.0 + int(minutes) * 60.0 + float(seconds)
    return float(found["s"])


def _without_head(pieces: list[tuple[float, bytes]]) -> list[tuple[float, bytes]]:
    """Leave out the head that ``curl -i`` puts before a body: ours takes its place."""
    if not pieces[0][1].startswith(b"HTTP/"):
        return pieces
    if len(pieces) == 1:
        body = re.split(rb"\r?\n\r?\n", pieces[0][1], maxsplit=1)
        return [(0.0, body[1] if len(body) > 1 else b"")]
    end = next((n for n, (_, text) in enumerate(pieces) if not text.strip()), len(pieces) - 1)
    return pieces[end + 1 :]


def _blocks(pieces: list[tuple[float, bytes]]) -> Iterable[tuple[float, bytes]]:
    """Join lines with the time of their block's last one; a raw body is cut at its blank lines."""
    if len(pieces) == 1:
        at_s, body = pieces[0]
        yield from ((at_s, part) for part in re.split(rb"(?<=\n\n)|(?<=\r\n\r\n)|(?<=\r\r)", body) if part)
        return
    waiting, since = b"", 0.0
    for at_s, text in pieces:
        if waiting and at_s > since:  # what came earlier is not held back for its blank line
            yield since, waiting
            waiting = b""
        waiting, since = waiting + text, at_s
        if not text.strip():
            yield at_s, waiting
            waiting = b""
    if waiting:
        yield since, waiting


def _timeline(line: bytes, path: str) -> Recording:
    try:
        data = json.loads(line)
        return Recording(
            kinds=tuple((max(0.0, float(t)), str(k)) for t, k in zip(data["t"], data["kind"], strict=True))
        )
    except (ValueError, KeyError, TypeError) as error:
        raise ReplayError(f"{path}: the first line is no timeline: {error}") from None

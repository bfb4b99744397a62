"""Statements about errors inside a stream: that they come, in which shape, with which words, and last."""

from __future__ import annotations

from harness.judge.check.observation import Case, Observation, Payload, inner
from harness.judge.check.verdict import Seen, Verdict, fine, wrong

# How a stream ends whose reader is not told that it broke off.
_UNTOLD = frozenset({"truncated", "cut", "empty", "unterminated", "stalled", "protocol_error"})

_MISSING = "no stream broke off, and only a simulated upstream can be asked for one that does"


def _broken(case: Case, protocol: str | None = None) -> list[Observation]:
    """Return the streams that were asked to break, and those that did so by themselves."""
    return [
        stream
        for stream in case.observations
        if protocol in (None, stream.protocol)
        and (stream.situation == "break" or stream.record.outcome == "error_event")
    ]


def _error_of(stream: Observation) -> Payload | None:
    """Return the event that says the error."""
    for event, body in stream.payloads:
        if body.get("error") or event.type in ("error", "response.failed"):
            return event
    return None


def status_stays_200(case: Case) -> Verdict:
    """A stream that breaks off has status 200."""

    def test(stream: Observation) -> Seen | None:
        body = stream.body
        if not body or (b"data:" not in body and not stream.is_stream):
            return None
        return Seen(stream.record.status == 200, f"HTTP {stream.record.status} for a stream that broke off")

    return case.decide(_broken(case), test, _MISSING)


def errors_are_events(case: Case) -> Verdict:
    """Exactly one event says that the stream broke off."""

    def test(stream: Observation) -> Seen | None:
        return _reported(stream)

    return case.decide(_broken(case), test, _MISSING)


def _reported(stream: Observation) -> Seen | None:
    errors = [e for e, body in stream.payloads if body.get("error") or e.type in ("error", "response.failed")]
    if len(errors) > 1:
        return wrong(f"{len(errors)} error events", errors[1].block.raw, errors[1].block.at_s)
    if errors:
        return fine("one error event", errors[0].block.raw, errors[0].block.at_s)
    if stream.record.outcome in _UNTOLD:
        last = stream.blocks[-1].raw if stream.blocks else None
        told = f"{stream.record.outcome} after {stream.record.progress.count} token events, and no error"
        return wrong(told, last, stream.record.last_byte_s)
    return None


def cut_is_reported(protocol: str, case: Case) -> Verdict:
    """A stream of *protocol* that breaks off says so in an error event."""
    return case.decide(_broken(case, protocol), _reported, _MISSING)


def chat_shape(case: Case) -> Verdict:
    """`data: {"error": {…}}` without an event line."""

    def test(stream: Observation) -> Seen | None:
        event = _error_of(stream)
        if event is None:
            return None
        names = [name for name, _ in event.block.fields]
        right = names == [b"data"] and isinstance(inner(event.body or {}, "error"), dict)
        return Seen(right, "one data line with an error" if right else "another shape",
                    event.block.raw, event.block.at_s)  # fmt: skip

    return case.decide(_broken(case, "chat"), test, _MISSING)


def responses_shape(case: Case) -> Verdict:
    """`event: response.failed`; the bare `data: {"error": …}` is accepted and reported."""

    def test(stream: Observation) -> Seen | None:
        event = _error_of(stream)
        if event is None:
            return None
        body, block = event.body or {}, event.block
        if block.event == b"response.failed" and inner(body, "response", "status") == "failed":
            right = isinstance(inner(body, "response", "error"), dict)
            return Seen(
                right,
                "response.failed" if right else "response.failed without an error",
                block.raw,
                block.at_s,
            )
        if block.event is None and isinstance(body.get("error"), dict) and event.type != "error":
            return fine("not response.failed but a bare error object, which its code is known to send",
                        block.raw, block.at_s)  # fmt: skip
        return wrong(f"neither response.failed nor a bare error, but {event.type or 'an unnamed event'}",
                     block.raw, block.at_s)  # fmt: skip

    return case.decide(_broken(case, "responses"), test, _MISSING)


def messages_shape(case: Case) -> Verdict:
    """`event: error` with `type: error` and an error of type and message."""

    def test(stream: Observation) -> Seen | None:
        event = _error_of(stream)
        if event is None:
            return None
        body, block = event.body or {}, event.block
        right = (
            block.event == b"error"
            and body.get("type") == "error"
            and isinstance(inner(body, "error", "type"), str)
            and isinstance(inner(body, "error", "message"), str)
        )
        return Seen(right, "event: error" if right else "another shape", block.raw, block.at_s)

    return case.decide(_broken(case, "messages"), test, _MISSING)


def error_is_last(protocol: str, case: Case) -> Verdict:
    """After the error the stream ends: no event more, and the body ends in time."""
    close_s = case.profile.limits.close.fail_s

    def test(stream: Observation) -> Seen | None:
        event = _error_of(stream)
        if event is None:
            return None
        place = next(n for n, block in enumerate(stream.blocks) if block is event.block)
        rest = [block for block in stream.blocks[place + 1 :] if block.fields]
        if rest:
            return wrong("more after the error", rest[0].raw, rest[0].at_s)
        if any(stall.class_ == "post_terminal_hang" for stall in stream.record.soft_stalls):
            return wrong(
                f"the body did not end within {close_s or 0:g} s of the error", at_s=event.block.at_s
            )
        after_s = max(0.0, stream.record.end_s - event.block.at_s)
        return fine(f"the end {after_s:.3f} s after the error", at_s=event.block.at_s)

    return case.decide(_broken(case, protocol), test, _MISSING)


def error_text(protocol: str, case: Case) -> Verdict:
    """Type, code and message are the documented ones; the message of a real gateway may be translated."""
    promised = case.profile.errors.get(protocol)
    if promised is None:
        return Verdict("not testable here", f"the profile documents no error for {protocol}")

    def test(stream: Observation) -> Seen | None:
        event = _error_of(stream)
        if event is None:
            return None
        body = event.body or {}
        error = inner(body, "error") or inner(body, "response", "error") or body
        got = [inner(error, name) for name in ("type", "code", "message")]
        if protocol == "responses":
            got[0] = promised.type  # response.failed has no type
        wanted = [promised.type, promised.code, promised.message]
        strict = got if case.simulated else [*got[:2], promised.message]
        told = f"type {got[0]!r}, code {got[1]!r}, message {got[2]!r}"
        if strict != wanted:
            told += f"; documented are {wanted[0]!r}, {wanted[1]!r}, {wanted[2]!r}"
        elif got[2] != promised.message:
            told += f"; the documented message is {promised.message!r}"
        return Seen(strict == wanted, told, event.block.raw, event.block.at_s)

    return case.decide(_broken(case, protocol), test, _MISSING)


def documented_errors(case: Case) -> Verdict:
    """The errors of every protocol are those that the profile documents."""
    verdicts = [error_text(protocol, case) for protocol in case.profile.errors]
    for status in ("broken", "kept"):
        found = [v for v in verdicts if v.status == status]
        if found:
            return Verdict(
                found[0].status, found[0].reason, tuple(line for v in found for line in v.evidence)
            )
    return Verdict("not observed", _MISSING)


def errors_inside_the_loop(case: Case) -> Verdict:
    """A reader meets the error in the loop that reads the stream, without leaving it before."""

    def test(stream: Observation) -> Seen | None:
        hidden = next(
            (line for block in stream.blocks for line in block.lines if line.text.startswith(b"error:")), None
        )
        if hidden is not None:
            return wrong(
                "an error as a field of its own, which every reader ignores", hidden.text, hidden.at_s
            )
        if stream.record.outcome != "error_event":
            return None
        shape = stream.record.error.shape if stream.record.error else ""
        if stream.protocol == "messages" and shape.startswith("data."):
            event = _error_of(stream)
            return wrong("an error without an event line, which the official SDK drops in silence",
                         event.block.raw if event else None)  # fmt: skip
        return fine(f"read in the loop as {shape}, {stream.record.events} events in all")

    return case.decide(_broken(case), test, _MISSING)

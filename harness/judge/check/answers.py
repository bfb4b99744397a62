"""Statements about whole answers: status, type, keys, format, content, how they arrive."""

from __future__ import annotations

from urllib.parse import urlsplit

from harness.judge.check.observation import Case, Observation
from harness.judge.check.verdict import Seen, Verdict, fine, wrong
from harness.wire.responses import EVENTS as RESPONSES_EVENTS

WHOLE = ("healthy", "no-usage", "thinking", "resume")

# "Not now" is no breach of a promise about what an answer looks like.
_NOT_NOW = frozenset({408, 409, 429})

# Breaches that readers are told to tolerate, and those that a statement of their own is about.
_TOLERATED = frozenset({
    "chat.no_role", "chat.usage_unrequested", "chat.usage_missing", "chat.done_missing",
    "resp.sequence_gap", "resp.unknown_event", "msg.unknown_event",
})  # fmt: skip

_MESSAGES_EVENTS = frozenset({
    "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta",
    "message_stop", "ping", "error",
})  # fmt: skip


def _says_no(stream: Observation) -> bool:
    """Whether the gateway was only unable, at this moment, to answer."""
    status = stream.record.status
    return status is None or status in _NOT_NOW or status >= 500


def is_sse(protocol: str, case: Case) -> Verdict:
    """200 and `text/event-stream`."""

    def test(stream: Observation) -> Seen | None:
        if _says_no(stream):
            return None
        kind = stream.headers.get("content-type", "no content type")
        right = stream.record.status == 200 and kind.partition(";")[0].strip().lower() == "text/event-stream"
        return Seen(right, f"HTTP {stream.record.status}, Content-Type: {kind}")

    return case.each(("healthy",), test, protocol=protocol)


def official_format(case: Case) -> Verdict:
    """No breach of the protocol's own state machine that a reader is not told to tolerate."""

    def test(stream: Observation) -> Seen | None:
        if not stream.is_stream:
            return None
        if stream.record.outcome == "protocol_error" and stream.record.error is not None:
            return wrong(f"not the protocol: {stream.record.error.message}")
        bad = {
            rule: count
            for rule, count in stream.record.violations.items()
            if rule.startswith(("chat.", "resp.", "msg.")) and rule not in _TOLERATED
        }
        if bad:
            return wrong(", ".join(f"{rule} ×{count}" for rule, count in bad.items()))
        return fine(f"{len(stream.events)} events without a breach") if stream.ended else None

    return case.each(WHOLE, test)


def nothing_inserted(case: Case) -> Verdict:
    """Every block is an event of the protocol or a comment."""

    def test(stream: Observation) -> Seen | None:
        if not stream.is_stream or not stream.blocks:
            return None
        for block in stream.blocks:
            if not block.fields:
                continue
            if not block.whole and stream.record.outcome not in ("completed", "unterminated"):
                continue
            if block.data is None:
                return wrong("a block without data", block.raw, block.at_s)
        for event in stream.events:
            if not _official(stream.protocol, event.type, event.body, event.block.data or b""):
                return wrong(
                    "neither an event of the protocol nor a comment", event.block.raw, event.block.at_s
                )
        return fine(f"{len(stream.events)} events, {len(stream.comments)} comments and nothing else")

    return case.each(WHOLE, test)


def _official(protocol: str, kind: str, body: dict[str, object] | None, data: bytes) -> bool:
    if data.startswith(b"[DONE]"):
        return True
    if body is None:
        return False
    if body.get("error"):
        return True
    if protocol == "chat":
        return "choices" in body or body.get("object") == "chat.completion.chunk"
    return kind in (RESPONSES_EVENTS if protocol == "responses" else _MESSAGES_EVENTS)


def content_unmodified(case: Case) -> Verdict:
    """The same request gets the same text, where the upstream is known to say the same twice."""
    pairs = [
        (first, second)
        for first, second in _pairs(case)
        if first.record.outcome == second.record.outcome == "completed"
    ]
    if not pairs:
        return Verdict("not observed", "no two whole answers to the same request")
    differing = [(a, b) for a, b in pairs if a.text != b.text]
    if differing and not case.provoked:
        return Verdict("not observed", "the answers differ, as those of a model may: only an upstream that "
                       "says the same twice can show it")  # fmt: skip
    if differing:
        first, second = differing[0]
        place = next((i for i, (a, b) in enumerate(zip(first.text, second.text, strict=False)) if a != b),
                     min(len(first.text), len(second.text)))  # fmt: skip
        lines = [
            s.evidence(wrong(f"character {place} on: {s.text[place : place + 40]!r}"))
            for s in (first, second)
        ]
        return Verdict("broken", "the same request got two different texts", tuple(lines))
    lines = [a.evidence(fine(f"{len(a.text)} characters, the same in {b.ids}")) for a, b in pairs]
    return Verdict("kept", "the same request got the same text twice", tuple(lines))


def _pairs(case: Case) -> list[tuple[Observation, Observation]]:
    found = []
    for protocol in case.profile.endpoints:
        same = case.of(("healthy",), protocol)
        if len(same) > 1 and same[0].request_body == same[1].request_body:
            found.append((same[0], same[1]))
    return found


def arrives_in_pieces(case: Case) -> Verdict:
    """At least two pieces of text at different moments."""

    def test(stream: Observation) -> Seen | None:
        if not stream.ended or not stream.pieces:
            return None
        moments = {at_s for at_s, _ in stream.pieces}
        first, last = stream.pieces[0][0], stream.pieces[-1][0]
        what = f"{len(stream.pieces)} pieces of text in {len(moments)} reads over {last - first:.3f} s"
        return Seen(len(moments) >= 2, what, at_s=first)

    return case.each(("healthy",), test, protocol="chat")


def endpoint_answers(case: Case) -> Verdict:
    """POST to the documented path gets 200."""
    path = case.profile.endpoints["chat"].path if "chat" in case.profile.endpoints else ""

    def test(stream: Observation) -> Seen | None:
        if _says_no(stream):
            return None
        parts = urlsplit(stream.url)
        what = f"POST {parts.path} at {parts.hostname}: HTTP {stream.record.status}"
        return Seen(stream.record.status == 200 and parts.path.endswith(path), what)

    return case.each(("healthy",), test, protocol="chat")


def bearer_key_needed(case: Case) -> Verdict:
    """200 with a key, 401 without."""

    def test(stream: Observation) -> Seen | None:
        status = stream.record.status
        if _says_no(stream):
            return None
        expected = 200 if stream.situation == "healthy" else 401
        words = f": {stream.record.error.message}" if stream.record.error else ""
        with_or_without = "with a key" if expected == 200 else "without a key"
        return Seen(status == expected, f"HTTP {status} {with_or_without}{words}", stream.body[:200] or None)

    without = case.each(("no-key",), test, protocol="chat")
    if without.status != "kept":
        return without
    both = case.each(("no-key", "healthy"), test, protocol="chat")
    return both if both.status == "broken" else Verdict("kept", "200 with a key, 401 without", both.evidence)


def documented_body(case: Case) -> Verdict:
    """A body with `model`, `stream`, `stream_options` and `messages` is accepted."""

    def test(stream: Observation) -> Seen | None:
        if _says_no(stream):
            return None
        words = f": {stream.record.error.message}" if stream.record.error else ""
        return Seen(stream.record.status == 200, f"HTTP {stream.record.status}{words}", stream.request_body)

    return case.each(("healthy",), test, protocol="chat")

"""Statements about asking again: nothing can be resumed, everything has to be sent anew."""

from __future__ import annotations

from harness.judge.check.observation import Case, Observation
from harness.judge.check.verdict import Seen, Verdict, fine, wrong


def not_resumable(case: Case) -> Verdict:
    """Events have no ids, and `Last-Event-ID` gets a new answer from its beginning."""
    known = {s.record.response_id for s in case.of(("healthy",)) if s.record.response_id}

    def test(stream: Observation) -> Seen | None:
        for block in stream.blocks:
            if block.values(b"id"):
                return wrong("an event with an id", block.raw, block.at_s)
        if stream.situation != "resume" or stream.record.outcome != "completed":
            return None
        if stream.record.response_id in known:
            return wrong(f"Last-Event-ID: 1 got the answer {stream.record.response_id} once more")
        return fine(f"Last-Event-ID: 1 got a new answer, {stream.record.response_id}; no event has an id")

    return case.each(("healthy", "thinking", "resume"), test)


def resend_whole(case: Case) -> Verdict:
    """The same body, sent again, gets a whole new answer under another id."""
    firsts: dict[str, Observation] = {}

    def test(stream: Observation) -> Seen | None:
        if stream.record.outcome != "completed" or stream.record.response_id is None:
            return None
        first = firsts.setdefault(stream.protocol, stream)
        if first is stream or first.request_body != stream.request_body:
            return None
        if first.record.response_id == stream.record.response_id:
            return wrong(f"two requests, and both answers are {stream.record.response_id}")
        return fine(f"{len(stream.request_body)} bytes sent twice: {first.record.response_id}, "
                    f"then {stream.record.response_id}")  # fmt: skip

    return case.each(("healthy",), test)

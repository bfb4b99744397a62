"""Statements about Responses streams."""

from __future__ import annotations

from harness.judge.check.answers import WHOLE
from harness.judge.check.observation import Case, Observation, inner
from harness.judge.check.verdict import Seen, Verdict, fine, wrong


def two_lines(case: Case) -> Verdict:
    """Every event has one `event:` and one `data:` line."""

    def test(stream: Observation) -> Seen | None:
        if not stream.is_stream or not stream.events:
            return None
        for event in stream.events:
            names = [name for name, _ in event.block.fields]
            done = (event.block.data or b"").startswith(b"[DONE]")
            if not done and (names.count(b"event"), names.count(b"data")) != (1, 1):
                told = f"{names.count(b'event')} event lines and {names.count(b'data')} data lines"
                return wrong(told, event.block.raw, event.block.at_s)
        return fine(f"{len(stream.events)} events, one line of each", stream.events[0].block.raw)

    return case.each(WHOLE, test, protocol="responses")


def type_is_name(case: Case) -> Verdict:
    """`data.type` is the event's name."""

    def test(stream: Observation) -> Seen | None:
        named = [event for event in stream.events if event.block.event is not None]
        for event in named:
            name = (event.block.event or b"").decode("utf-8", "replace")
            if event.type != name:
                return wrong(f"the event is called {name!r}, its data say {event.type!r}",
                             event.block.raw, event.block.at_s)  # fmt: skip
        return fine(f"{len(named)} events, each with the same name twice") if named else None

    return case.each(WHOLE, test, protocol="responses")


def created(case: Case) -> Verdict:
    """`response.created` has an id and `status: in_progress`."""

    def test(stream: Observation) -> Seen | None:
        for event, body in stream.payloads:
            if event.type == "response.created":
                response_id, status = inner(body, "response", "id"), inner(body, "response", "status")
                right = bool(response_id) and status == "in_progress"
                return Seen(
                    right, f"id {response_id!r}, status {status!r}", event.block.raw, event.block.at_s
                )
        return wrong("no response.created") if stream.ended and stream.events else None

    return case.each(WHOLE, test, protocol="responses")


def delta(case: Case) -> Verdict:
    """`response.output_text.delta` has its four fields."""
    fields = ("item_id", "output_index", "content_index", "delta")

    def test(stream: Observation) -> Seen | None:
        deltas = [(e, body) for e, body in stream.payloads if e.type == "response.output_text.delta"]
        for event, body in deltas:
            missing = [name for name in fields if name not in body]
            if missing:
                return wrong(f"a delta without {', '.join(missing)}", event.block.raw, event.block.at_s)
        return (
            fine(f"{len(deltas)} deltas with {', '.join(fields)}", deltas[0][0].block.raw) if deltas else None
        )

    return case.each(WHOLE, test, protocol="responses")


def completed(case: Case) -> Verdict:
    """`response.completed` has the same id, `status: completed`, and counts that add up."""

    def test(stream: Observation) -> Seen | None:
        first = next(
            (inner(body, "response", "id") for e, body in stream.payloads if e.type == "response.created"),
            None,
        )
        for event, body in stream.payloads:
            if event.type == "response.completed":
                fault = _completed_fault(body["response"], first)
                told = (
                    fault
                    or f"id {first!r}, completed, {inner(body, 'response', 'usage', 'total_tokens')} tokens"
                )
                return Seen(not fault, told, event.block.raw, event.block.at_s)
        return None

    return case.each(WHOLE, test, protocol="responses")


def _completed_fault(response: object, first_id: object) -> str:
    if not isinstance(response, dict):
        return "response.completed without a response"
    if first_id is not None and response.get("id") != first_id:
        return f"the id was {first_id!r} and is {response.get('id')!r} at the end"
    if response.get("status") != "completed":
        return f"status {response.get('status')!r}"
    counts = [inner(response, "usage", name) for name in ("input_tokens", "output_tokens", "total_tokens")]
    if not all(isinstance(count, int) for count in counts):
        return f"counts are missing: {response.get('usage')!r}"
    given, made, total = counts
    return "" if given + made == total else f"{given} + {made} is not {total}"


def terminal_last(case: Case) -> Verdict:
    """The terminal event is the last one; a `[DONE]` after it is tolerated and reported."""

    def test(stream: Observation) -> Seen | None:
        if not stream.ended or not stream.events:
            return None
        done = (stream.events[-1].block.data or b"").startswith(b"[DONE]")
        events = stream.events[:-1] if done else stream.events
        last = events[-1] if events else stream.events[-1]
        right = last.type in ("response.completed", "response.incomplete")
        after = ", then [DONE]" if done else ""
        return Seen(
            right, f"the last event is {last.type or 'unnamed'}{after}", last.block.raw, last.block.at_s
        )

    return case.each(WHOLE, test, protocol="responses")

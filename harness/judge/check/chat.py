"""Statements about Chat Completions streams: lines, places, order, counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.judge.check.answers import WHOLE
from harness.judge.check.observation import Case, Observation, Payload, choice_of, inner
from harness.judge.check.verdict import Seen, Verdict, fine, wrong

_DONE = b"[DONE]"
_REASONING = ("reasoning", "reasoning_content", "reasoning_details", "thinking")


def _is_done(event: Payload) -> bool:
    return (event.block.data or b"").startswith(_DONE)


def one_data_line(case: Case) -> Verdict:
    """Each event is one `data:` line with a chunk, and no other line."""

    def test(stream: Observation) -> Seen | None:
        if not stream.is_stream or not stream.events:
            return None
        for event in stream.events:
            block = event.block
            names = [name for name, _ in block.fields]
            if names.count(b"data") != 1:
                return wrong(f"{names.count(b'data')} data lines in one event", block.raw, block.at_s)
            if b"event" in names:
                return wrong("an event line", block.raw, block.at_s)
            if _is_done(event) or (event.body or {}).get("error"):
                continue
            kind = (event.body or {}).get("object")
            if kind != "chat.completion.chunk":
                return wrong(f"object is {kind!r}", block.raw, block.at_s)
        return fine(f"{len(stream.events)} events, one data line each", stream.events[0].block.raw)

    return case.each(WHOLE, test, protocol="chat")


def text(case: Case) -> Verdict:
    """`choices[0].delta.content`, put together, is the answer."""

    def test(stream: Observation) -> Seen | None:
        if not stream.ended or not stream.events or stream.record.finish not in (None, "stop", "length"):
            return None
        what = f"{len(stream.text)} characters in {len(stream.pieces)} pieces: {stream.text[:40]!r}"
        if stream.text:
            return fine(what)
        block = stream.events[min(1, len(stream.events) - 1)].block
        return wrong("no text in choices[0].delta.content", block.raw, block.at_s)

    return case.each(WHOLE, test, protocol="chat")


def done_last(case: Case) -> Verdict:
    """Exactly one `data: [DONE]`, and it is the last event."""

    def test(stream: Observation) -> Seen | None:
        if not stream.ended or not stream.events:
            return None
        count = sum(map(_is_done, stream.events))
        last = stream.events[-1].block
        if count == 1 and _is_done(stream.events[-1]):
            return fine("one [DONE], at the end", last.raw, last.at_s)
        return wrong(f"{count} [DONE], and the last event is another one" if count else "no [DONE]",
                     last.raw, last.at_s)  # fmt: skip

    return case.each(WHOLE, test, protocol="chat")


def done_closes(case: Case) -> Verdict:
    """Nothing comes after `[DONE]`, and the body ends."""

    def test(stream: Observation) -> Seen | None:
        places = [n for n, block in enumerate(stream.blocks) if (block.data or b"").startswith(_DONE)]
        if not stream.is_stream or not places:
            return None
        done = stream.blocks[places[0]]
        if rest := stream.blocks[places[0] + 1 :]:
            return wrong("more after [DONE]", rest[0].raw, rest[0].at_s)
        if any(stall.class_ == "post_terminal_hang" for stall in stream.record.soft_stalls):
            return wrong(f"the body did not end within {case.profile.limits.close.fail_s:g} s of [DONE]",
                         at_s=done.at_s)  # fmt: skip
        return fine(f"the end {max(0.0, stream.record.end_s - done.at_s):.3f} s after [DONE]", at_s=done.at_s)

    return case.each(WHOLE, test, protocol="chat")


def order(case: Case) -> Verdict:
    """Text, a chunk with `finish_reason` and an empty delta, the counts with `choices: []`, `[DONE]`."""

    def test(stream: Observation) -> Seen | None:
        if not stream.ended or stream.situation == "no-usage" or not stream.payloads:
            return None
        kinds = [(event, _kind(body)) for event, body in stream.payloads]
        usages = [n for n, (_, kind) in enumerate(kinds) if kind == "usage"]
        finishes = [n for n, (_, kind) in enumerate(kinds) if kind.startswith("finish")]
        if not usages or not finishes:
            return None  # other statements are about those
        if usages != [len(kinds) - 1] or finishes != [len(kinds) - 2]:
            shown = " → ".join(kind for _, kind in kinds[-4:])
            block = kinds[min(usages[0], len(kinds) - 1)][0].block
            return wrong(f"the last chunks are {shown}", block.raw, block.at_s)
        finish, body = stream.payloads[finishes[0]]
        if inner(choice_of(body), "delta"):
            return wrong(
                "the chunk with finish_reason still has a delta", finish.block.raw, finish.block.at_s
            )
        wrong_sum = _sum_fault(stream.payloads[-1][1]["usage"])
        if wrong_sum:
            return wrong(wrong_sum, stream.payloads[-1][0].block.raw, stream.payloads[-1][0].block.at_s)
        return fine("finish_reason, counts, [DONE]", stream.payloads[-1][0].block.raw)

    return case.each(WHOLE, test, protocol="chat")


def _kind(body: Mapping[str, Any]) -> str:
    if body.get("usage") and not body.get("choices"):
        return "usage"
    reason = choice_of(body).get("finish_reason")
    return f"finish {reason}" if reason else "delta" if body.get("choices") else "other"


def _sum_fault(usage: Mapping[str, Any]) -> str:
    parts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens", "total_tokens")]
    if not all(isinstance(part, int) for part in parts):
        return f"counts are missing: {dict(usage)}"
    prompt, completion, total = (int(part or 0) for part in parts)
    return "" if prompt + completion == total else f"{prompt} + {completion} is not {total}"


def constant_id(case: Case) -> Verdict:
    """One `id` and one `model` over the whole stream."""
    return _ids(case, prefix="")


def ids(case: Case) -> Verdict:
    """As `constant_id`, and the id begins with `chatcmpl-`, the model is the one that was asked for."""
    return _ids(case, prefix="chatcmpl-")


def _ids(case: Case, prefix: str) -> Verdict:
    def test(stream: Observation) -> Seen | None:
        chunks = [(event, body) for event, body in stream.payloads if "choices" in body]
        if not stream.is_stream or not chunks:
            return None
        first = chunks[0][1]
        for event, body in chunks:
            for name in ("id", "model"):
                if body.get(name) != first.get(name):
                    return wrong(f"{name} changes from {first.get(name)!r} to {body.get(name)!r}",
                                 event.block.raw, event.block.at_s)  # fmt: skip
        if not str(first.get("id", "")).startswith(prefix):
            return wrong(f"the id does not begin with {prefix!r}", chunks[0][0].block.raw)
        if prefix and first.get("model") != stream.record.model:
            return wrong(
                f"asked for {stream.record.model!r}, got {first.get('model')!r}", chunks[0][0].block.raw
            )
        created = "" if "created" in first else ", no `created`"
        return fine(f"id {first.get('id')!r}, model {first.get('model')!r} in {len(chunks)} chunks{created}")

    return case.each(WHOLE, test, protocol="chat")


def role_first(case: Case) -> Verdict:
    """The first chunk has `role: assistant` and empty content."""

    def test(stream: Observation) -> Seen | None:
        if not stream.is_stream or not stream.payloads or stream.payloads[0][1].get("error"):
            return None
        event, body = stream.payloads[0]
        delta = choice_of(body).get("delta")
        return Seen(delta == {"role": "assistant", "content": ""}, f"the first delta is {delta!r}",
                    event.block.raw, event.block.at_s)  # fmt: skip

    return case.each(WHOLE, test, protocol="chat")


def finish_before_usage(case: Case) -> Verdict:
    """The last JSON chunk but the counts carries `finish_reason`, with an empty delta."""

    def test(stream: Observation) -> Seen | None:
        if not stream.ended or not stream.payloads:
            return None
        kinds = [_kind(body) for _, body in stream.payloads]
        place = len(kinds) - (2 if "usage" in kinds else 1)
        event, body = stream.payloads[max(place, 0)]
        right = kinds[place].startswith("finish") and not inner(choice_of(body), "delta")
        return Seen(right, f"the last chunks are {' → '.join(kinds[-3:])}", event.block.raw, event.block.at_s)

    return case.each(WHOLE, test, protocol="chat")


def usage_when_asked(case: Case) -> Verdict:
    """One chunk of counts if they were asked for, none if not."""

    def test(stream: Observation) -> Seen | None:
        if stream.record.outcome not in ("completed", "unterminated"):
            return None
        count = sum(_kind(body) == "usage" for _, body in stream.payloads)
        asked = stream.situation != "no-usage"
        return Seen(count == asked, f"counts {'asked for' if asked else 'not asked for'}, and {count} came")

    return case.each(WHOLE, test, protocol="chat")


def usage_adds_up(case: Case) -> Verdict:
    """The counts are complete, add up, and reasoning is part of the completion."""

    def test(stream: Observation) -> Seen | None:
        found = [(event, body["usage"]) for event, body in stream.payloads if _kind(body) == "usage"]
        if not found:
            return None
        event, usage = found[-1]
        reasoning = inner(usage, "completion_tokens_details", "reasoning_tokens")
        fault = _sum_fault(usage)
        if not fault and not isinstance(reasoning, int):
            fault = "no completion_tokens_details.reasoning_tokens"
        if not fault and reasoning > usage["completion_tokens"]:
            fault = f"{reasoning} reasoning tokens in {usage['completion_tokens']} of completion"
        told = (
            f"{usage.get('prompt_tokens')} + {usage.get('completion_tokens')} = {usage.get('total_tokens')}, "
        )
        return Seen(
            not fault, fault or f"{told}{reasoning} of them reasoning", event.block.raw, event.block.at_s
        )

    return case.each(WHOLE, test, protocol="chat")


def reasoning_not_sent(case: Case) -> Verdict:
    """No delta carries reasoning, although tokens of it are counted."""

    def test(stream: Observation) -> Seen | None:
        for event, body in stream.payloads:
            delta = inner(choice_of(body), "delta")
            sent = [name for name in _REASONING if isinstance(delta, dict) and delta.get(name)]
            if sent:
                return wrong(f"a delta with {', '.join(sent)}", event.block.raw, event.block.at_s)
        counted = stream.record.tokens.reasoning
        return fine(f"{counted} reasoning tokens counted, none sent") if counted else None

    return case.each(WHOLE, test, protocol="chat", missing="no stream counted reasoning tokens")

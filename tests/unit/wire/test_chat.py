"""Chat Completions: which channel each chunk has, every violation once, and everything that is tolerated."""

from typing import Any

import pytest

from harness.wire.signals import VISIBLE, Usage
from tests.unit.wire.frames import DONE, GOOD_CHAT, HI, ROLE, STOP, chunk, data, play, usage


def chunks(*choices: Any, **fields: Any) -> bytes:
    return data({"id": "c1", "choices": list(choices), **fields})


def call(name: str | None = None, arguments: str = "") -> list[dict[str, Any]]:
    return [{"index": 0, "id": "t1", "type": "function", "function": {"name": name, "arguments": arguments}}]


def test_a_good_stream_has_no_violation() -> None:
    channels, grammar = play("chat", GOOD_CHAT, usage_requested=True)
    facts = grammar.facts

    assert ["lifecycle", "content", "lifecycle", "usage", "terminal"] == channels
    assert {} == facts.violations
    assert ("c1", "stop", True, True, True) == (
        facts.response_id, facts.finish, facts.finished, facts.terminal, facts.has_output
    )  # fmt: skip
    assert Usage(3, 2, None, None) == facts.usage


# frame after the role chunk -> channel, does a person see it
CHANNELS: list[tuple[str, bytes, str, bool]] = [
    ("text", chunk("Hi"), "content", True),
    ("empty text", chunk(""), "lifecycle", False),
    ("null text", chunk(None), "lifecycle", False),
    ("whitespace", chunk(" \n\t"), "content", False),
    ("no-break and ideographic space", chunk("\u00a0\u3000"), "content", False),
    ("zero-width", chunk("\u200b\u200c\u200d\ufeff\u2060"), "keepalive", False),
    ("zero-width with a role", chunk("\u200b", role="assistant"), "keepalive", False),
    ("zero-width and space", chunk("\u200b "), "content", False),
    ("zero-width before a letter", chunk("\ufeffa"), "content", True),
    ("letters beyond ASCII", chunk("é"), "content", True),
    ("an ideograph", chunk("漢"), "content", True),
    ("an emoji", chunk("🙂"), "content", True),
    ("half an emoji", b'data: {"choices":[{"delta":{"content":"\\ud83d"}}]}\n\n', "content", True),
    ("DeepSeek, SGLang, LiteLLM reasoning", chunk(reasoning_content="Hm"), "reasoning", True),
    ("vLLM, OpenRouter reasoning", chunk(reasoning="Hm"), "reasoning", True),
    (
        "reasoning details",
        chunk(reasoning_details=[{"type": "reasoning.text", "text": "Hm"}]),
        "reasoning",
        True,
    ),
    ("a summary", chunk(reasoning_details=[{"summary": "Hm"}]), "reasoning", True),
    ("encrypted reasoning", chunk(reasoning_details=[{"data": "gAAA"}]), "reasoning", True),
    (
        "empty reasoning",
        chunk("", reasoning_content="", reasoning=None, reasoning_details=[]),
        "lifecycle",
        False,
    ),
    ("reasoning beside empty text", chunk("", reasoning_content="Hm"), "reasoning", True),
    ("text beside reasoning", chunk("Hi", reasoning="Hm"), "content", True),
    ("text beside zero-width reasoning", chunk("Hi", reasoning="\u200b"), "content", True),
    ("a call's name", chunk(tool_calls=call("f")), "tool", True),
    ("a call's arguments", chunk(tool_calls=call(None, '{"a"')), "tool", True),
    ("a call's whitespace", chunk(tool_calls=call(None, " ")), "tool", True),
    ("two calls", chunk(tool_calls=call("f") + call("g")), "tool", True),
    ("an empty call", chunk(tool_calls=call()), "lifecycle", False),
    ("calls that are none", chunk(tool_calls=[None, {}, {"function": None}]), "lifecycle", False),
    ("a custom tool", chunk(tool_calls=[{"type": "custom", "custom": {"name": "f"}}]), "tool", True),
    ("a custom tool's input", chunk(tool_calls=[{"custom": {"input": "x"}}]), "tool", True),
    ("deprecated function call", chunk(function_call={"arguments": "{"}), "tool", True),
    ("refusal", chunk(refusal="No"), "refusal", True),
    ("empty refusal", chunk(refusal=""), "lifecycle", False),
    ("audio", chunk(audio={"id": "a", "data": "AAAA"}), "media", True),
    ("a transcript", chunk(audio={"transcript": "Hi"}), "media", True),
    ("audio's end", chunk(audio={"expires_at": 1}), "lifecycle", False),
    ("images", chunk(images=[{"image_url": {"url": "data:x"}}]), "media", True),
    ("parts of text", chunk([{"type": "text", "text": "Hi"}]), "content", True),
    (
        "parts of thought",
        chunk([{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}]),
        "reasoning",
        True,
    ),
    ("text that is no text", chunk(5), "lifecycle", False),
    (
        "log probabilities alone",
        chunks({"delta": {}, "logprobs": {"content": [{"token": "a"}]}}),
        "aux",
        False,
    ),
    ("moderation", data({"id": "c1", "choices": [], "moderation": {"flagged": False}}), "aux", False),
    ("a prompt filter", data({"choices": [], "prompt_filter_results": []}), "lifecycle", False),
    ("null choices", data({"id": "c1", "choices": None}), "lifecycle", False),
    ("null delta", chunks({"index": 0, "delta": None}), "lifecycle", False),
    ("no delta", chunks({"index": 0}), "lifecycle", False),
    (
        "a whole message",
        chunks({"index": 0, "message": {"role": "assistant", "content": "Hi"}}),
        "content",
        True,
    ),
    ("a choice that is none", chunks(None), "lifecycle", False),
    ("an index as float", chunks({"index": 0.0, "delta": {"content": "Hi"}}), "content", True),
    ("a null index", chunks({"index": None, "delta": {"content": "Hi"}}), "content", True),
    ("text with usage", chunks({"delta": {"content": "Hi"}}, usage={"prompt_tokens": 1}), "content", True),
    ("empty usage", data({"choices": [], "usage": {}}), "lifecycle", False),
    ("null usage", chunks({"delta": {"content": "Hi"}}, usage=None), "content", True),
    ("null error", chunks({"delta": {"content": "Hi"}}, error=None), "content", True),
    ("empty error", chunks({"delta": {"content": "Hi"}}, error={}), "content", True),
    (
        "of two choices one is alive",
        chunks(
            {"index": 0, "delta": {"content": "\u200b"}},
            {"index": 1, "delta": {"role": "assistant", "content": "Hi"}},
        ),
        "content",
        True,
    ),
    ("a ping by name", data({}, "ping"), "keepalive", False),
    ("a ping without JSON", data("1712", "ping"), "keepalive", False),
    ("a ping with empty data", data("", "ping"), "keepalive", False),
    ("a ping without data", b"event: ping\n\n", "keepalive", False),
    ("keepalive by name", data({}, "keepalive"), "keepalive", False),
    ("a ping by type", data({"type": "ping"}), "keepalive", False),
    ("an unknown event", data({"x": 1}, "metrics"), "lifecycle", False),
    ("an unknown event without JSON", data("hello", "metrics"), "lifecycle", False),
    ("an empty event", data(""), "lifecycle", False),
    ("blank data", b"data:   \n\n", "lifecycle", False),
    ("an empty object", data({}), "lifecycle", False),
    ("raw control characters", b'data: {"choices":[{"delta":{"content":"a\tb"}}]}\n\n', "content", True),
    ("malformed UTF-8", b'data: {"choices":[{"delta":{"content":"\xff"}}]}\n\n', "content", True),
    (
        "NaN",
        b'data: {"choices":[{"delta":{"content":"a"},"logprobs":{"x":-Infinity,"y":NaN}}]}\n\n',
        "content",
        True,
    ),
    (
        "a number of 30 digits",
        b'data: {"created":123456789012345678901234567890,"choices":[]}\n\n',
        "lifecycle",
        False,
    ),
    (
        "data over several lines",
        b'data: {"choices":\ndata: [{"delta":{"content":"a"}}]}\n\n',
        "content",
        True,
    ),
    ("a named chunk", data({"choices": [{"delta": {"content": "a"}}]}, "chunk"), "content", True),
]


@pytest.mark.parametrize(
    ("frame", "channel", "visible"), [pytest.param(*rest, id=n) for n, *rest in CHANNELS]
)
def test_channel_of(frame: bytes, channel: str, visible: bool) -> None:
    channels, grammar = play("chat", ROLE + frame)

    assert ["lifecycle", channel] == channels
    assert (channel in ("content", "reasoning", "tool", "refusal", "media")) == grammar.facts.has_output
    assert grammar.facts.broken is None
    assert visible == _visible(frame)


def _visible(frame: bytes) -> bool:
    from harness.wire import grammar_for
    from harness.wire.sse import Event, SseParser

    grammar = grammar_for("chat")
    return any(
        grammar.event(item.type, item.raw) & VISIBLE
        for item in SseParser().feed(frame)
        if isinstance(item, Event)
    )


BROKEN = [
    ("cut JSON", b'data: {"choi\n\n'),
    ("two objects", b"data: {}{}\n\n"),
    ("a list", b"data: []\n\n"),
    ("null", b"data: null\n\n"),
    ("a number", b"data: 5\n\n"),
    ("text", b"data: hello\n\n"),
    ("the terminator in lower case", b"data: [done]\n\n"),
    ("nesting without end", b"data: " + b"[" * 100_000 + b"\n\n"),
    ("a number of 5000 digits", b'data: {"n":' + b"9" * 5000 + b"}\n\n"),
]


@pytest.mark.parametrize("frame", [pytest.param(f, id=n) for n, f in BROKEN])
def test_what_is_no_json_object_is_not_the_protocol(frame: bytes) -> None:
    channels, grammar = play("chat", frame)

    assert ["broken"] == channels
    assert grammar.facts.broken is not None
    assert 110 > len(grammar.facts.broken)


N = "\n\n"
# violation -> a stream with it, usage requested or not; nothing else may be violated but what is named
VIOLATIONS: list[tuple[str, bytes, bool, dict[str, int]]] = [
    ("no role", HI + STOP + DONE, False, {"chat.no_role": 1}),
    (
        "no role in the second choice",
        ROLE + HI + chunk("Ho", index=1) + STOP + chunk(finish="stop", index=1) + DONE,
        False,
        {"chat.no_role": 1},
    ),
    ("the terminator alone", DONE, False, {"chat.empty_stream": 1}),
    ("delta after finish", ROLE + HI + STOP + HI + DONE, False, {"chat.delta_after_finish": 1}),
    ("empty delta after finish", ROLE + HI + STOP + chunk("") + STOP + DONE, False, {}),
    ("audio's end after finish", ROLE + HI + STOP + chunk(audio={"expires_at": 1}) + DONE, False, {}),
    ("usage before finish", ROLE + HI + usage() + STOP + DONE, True, {"chat.usage_before_finish": 1}),
    ("no finish", ROLE + HI + DONE, False, {"chat.done_without_finish": 1}),
    (
        "one of two finished",
        ROLE + chunk("Ho", index=1, role="assistant") + STOP + DONE,
        False,
        {"chat.done_without_finish": 1},
    ),
    ("usage twice", ROLE + HI + STOP + usage() + usage() + DONE, True, {"chat.usage_twice": 1}),
    ("usage missing", ROLE + HI + STOP + DONE, True, {"chat.usage_missing": 1}),
    ("usage unrequested", ROLE + HI + STOP + usage() + DONE, False, {"chat.usage_unrequested": 1}),
    ("a chunk after the end", GOOD_CHAT + HI, True, {"chat.after_done": 1}),
    ("the end twice", GOOD_CHAT + DONE, True, {"chat.after_done": 1}),
    ("a ping after the end", GOOD_CHAT + data({}, "ping"), True, {"chat.after_done": 1}),
    ("an error after the end", GOOD_CHAT + data({"error": {"message": "x"}}), True, {"chat.after_done": 1}),
    ("a comment after the end", GOOD_CHAT + b": ok\n\n", True, {}),
    ("done missing", ROLE + HI + STOP, False, {"chat.done_missing": 1}),
    (
        "another id",
        ROLE + data({"id": "c2", "choices": [{"delta": {"content": "Hi"}}]}) + STOP + DONE,
        False,
        {"chat.id_changed": 2},
    ),
    ("an empty id first", data({"id": "", "choices": []}) + ROLE + HI + STOP + DONE, False, {}),
    ("wrong total", ROLE + HI + STOP + usage(total_tokens=7) + DONE, True, {"chat.usage_total": 1}),
    ("empty finish", ROLE + chunk("Hi", finish="") + STOP + DONE, False, {"chat.finish_empty": 1}),
    ("no choices", ROLE + HI + data({"id": "c1"}) + STOP + DONE, False, {"chat.no_choices": 1}),
    (
        "a choice that is none",
        ROLE + HI + chunks(7) + STOP + DONE,
        False,
        {"chat.bad_choice": 1},
    ),
    ("a named event", ROLE + data({"x": 1}, "metrics") + HI + STOP + DONE, False, {"chat.named_event": 1}),
    (
        "a named event without JSON",
        ROLE + data("x", "metrics") + HI + STOP + DONE,
        False,
        {"chat.unknown_event": 1},
    ),
    ("empty data", ROLE + HI + data("") + STOP + DONE, False, {"sse.empty_event_hazard": 1}),
    (
        "an event torn in two",
        ROLE + HI + b"event: x\n: ka\n\n" + STOP + DONE,
        False,
        {"sse.empty_event_hazard": 1, "sse.split_by_comment": 1},
    ),
    (
        "usage with every chunk",
        chunks(
            {"delta": {"role": "assistant", "content": "Hi"}},
            usage={"prompt_tokens": 3, "completion_tokens": 1},
        )
        + chunks({"delta": {}, "finish_reason": "stop"}, usage={"prompt_tokens": 3, "completion_tokens": 2})
        + DONE,
        True,
        {},
    ),
    (
        "pings of all shapes",
        ROLE
        + data({"type": "ping"}, "ping")
        + data({}, "ping")
        + data("x", "keepalive")
        + data({"type": "ping"})
        + HI
        + STOP
        + DONE,
        False,
        {},
    ),
]


@pytest.mark.parametrize(
    ("body", "requested", "violations"), [pytest.param(*rest, id=n) for n, *rest in VIOLATIONS]
)
def test_violations_of(body: bytes, requested: bool, violations: dict[str, int]) -> None:
    _, grammar = play("chat", body, usage_requested=requested)

    assert violations == grammar.facts.violations


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("tool_calls", "tool"),
        ("function_call", "tool"),
        ("content_filter", "filter"),
        ("eos", "stop"),
        ("something_new", "other"),
    ],
)
def test_finish_reason(reason: str, finish: str) -> None:
    _, grammar = play("chat", ROLE + HI + chunk(finish=reason) + DONE)

    assert (finish, True) == (grammar.facts.finish, grammar.facts.finished)


def test_a_refusal_stops_as_a_refusal_but_its_empty_field_does_not() -> None:
    _, refused = play("chat", ROLE + chunk(refusal="No") + STOP + DONE)
    _, answered = play("chat", chunk("", role="assistant", refusal=None) + chunk("Hi", refusal="") + STOP)

    assert ("refusal", "stop") == (refused.facts.finish, answered.facts.finish)


def test_the_first_choice_names_the_finish_and_the_last_one_ends_it() -> None:
    both = ROLE + chunk("Ho", index=1, role="assistant")
    _, half = play("chat", both + chunk(finish="length", index=1))
    _, whole = play("chat", both + chunk(finish="length", index=1) + STOP)

    assert False is half.facts.finished
    assert (True, "stop") == (whole.facts.finished, whole.facts.finish)


def test_later_usage_overwrites_and_keeps_what_it_does_not_say() -> None:
    first = usage(
        9, 1, completion_tokens_details={"reasoning_tokens": 4}, prompt_tokens_details={"cached_tokens": 8}
    )
    _, grammar = play(
        "chat", ROLE + HI + STOP + first + data({"choices": [], "usage": {"completion_tokens": 2}})
    )

    assert Usage(9, 2, 4, 8) == grammar.facts.usage


def test_a_hostile_server_cannot_grow_the_choices_without_end() -> None:
    body = b"".join(chunk("x", index=i, role="assistant", finish="stop") for i in range(1000))
    _, grammar = play("chat", body)

    assert {"chat.too_many_choices": 1000 - 128, "chat.done_missing": 1} == grammar.facts.violations

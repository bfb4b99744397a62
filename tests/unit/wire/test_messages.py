"""Messages: which channel each event has, every violation once, and everything that is tolerated."""

from typing import Any

import pytest

from harness.wire.messages import EVENTS, NEXT
from harness.wire.signals import Usage
from tests.unit.wire.frames import (
    BLOCK_STOP,
    DONE,
    GOOD_MESSAGES,
    MESSAGE_STOP,
    PING,
    START,
    block,
    data,
    delta,
    message_delta,
    msg,
    play,
)

END = message_delta() + MESSAGE_STOP
OPEN = START + block()


def thinking(value: str) -> bytes:
    return delta(value, "thinking_delta", "thinking")


def arguments(value: str) -> bytes:
    return delta(value, "input_json_delta", "partial_json")


def test_a_good_stream_has_no_violation() -> None:
    channels, grammar = play("messages", GOOD_MESSAGES)
    facts = grammar.facts

    assert ["lifecycle", "aux", "keepalive", "content", "aux", "usage", "terminal"] == channels
    assert {} == facts.violations
    assert ("m1", "stop", True, True) == (facts.response_id, facts.finish, facts.terminal, facts.has_output)
    assert Usage(3, 2, None, None) == facts.usage


def test_the_machine_has_an_answer_for_every_event_in_every_state() -> None:
    assert {(state, event) for state, _ in NEXT for event in EVENTS} == set(NEXT)


CHANNELS: list[tuple[str, bytes, bytes, str]] = [
    ("text", OPEN, delta("Hi"), "content"),
    ("empty text", OPEN, delta(""), "lifecycle"),
    ("null text", OPEN, delta(None), "lifecycle"),
    ("whitespace", OPEN, delta("\n"), "content"),
    ("zero-width", OPEN, delta("\u200b"), "keepalive"),
    ("thinking", START + block("thinking", thinking=""), thinking("Hm"), "reasoning"),
    ("empty thinking", START + block("thinking"), thinking(""), "lifecycle"),
    ("a signature", START + block("thinking"), delta("x", "signature_delta", "signature"), "aux"),
    ("citations", OPEN, delta({}, "citations_delta", "citation"), "aux"),
    ("the first, empty arguments", START + block("tool_use", name="f", input={}), arguments(""), "lifecycle"),
    ("arguments", START + block("tool_use", name="f", input={}), arguments('{"a"'), "tool"),
    ("a block's start", START, block(), "aux"),
    ("a block that starts with text", START, block(text="Hi"), "content"),
    ("a block that starts with whitespace", START, block(text=" "), "content"),
    ("a block that starts with zero-width", START, block(text="\u200b"), "keepalive"),
    ("a block that starts with thoughts", START, block("thinking", thinking="Hm"), "reasoning"),
    ("a tool's start", START, block("tool_use", name="f", input={}), "aux"),
    ("a tool with all its arguments", START, block("tool_use", name="f", input={"a": 1}), "tool"),
    ("a result that comes whole", START, block("web_search_tool_result", content=[]), "aux"),
    ("a block's stop", OPEN, BLOCK_STOP, "aux"),
    ("a ping", START, PING, "keepalive"),
    ("a ping with an empty object", START, data({}, "ping"), "keepalive"),
    ("a ping without data", START, b"event: ping\n\n", "keepalive"),
    ("a ping with empty data", START, data("", "ping"), "keepalive"),
    ("a ping without a name", START, data({"type": "ping"}), "keepalive"),
    ("a keepalive by name", START, data({"type": "ping"}, "keepalive"), "keepalive"),
    ("the final counts", OPEN, message_delta(), "usage"),
    ("an unknown event", START, msg("news"), "lifecycle"),
    ("an unknown delta", OPEN, delta("x", "new_delta"), "aux"),
    ("a delta that is none", OPEN, msg("content_block_delta", index=0, delta=None), "aux"),
    (
        "text without a name",
        OPEN,
        data({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}}),
        "content",
    ),
    (
        "text without a type",
        OPEN,
        data({"index": 0, "delta": {"type": "text_delta", "text": "Hi"}}, "content_block_delta"),
        "content",
    ),
]


@pytest.mark.parametrize(("before", "frame", "channel"), [pytest.param(*rest, id=n) for n, *rest in CHANNELS])
def test_channel_of(before: bytes, frame: bytes, channel: str) -> None:
    channels, _ = play("messages", before + frame)

    assert channel == channels[-1]
    assert play("messages", before)[0] == channels[:-1]


VIOLATIONS: list[tuple[str, bytes, dict[str, int]]] = [
    ("no message start", block() + delta() + BLOCK_STOP + END, {"msg.no_message_start": 1}),
    ("delta first", delta() + END, {"msg.no_message_start": 1}),
    ("stop first", MESSAGE_STOP, {"msg.no_message_start": 1}),
    ("a ping and a comment first", PING + b": ok\n\n" + GOOD_MESSAGES, {}),
    ("message start twice", START + GOOD_MESSAGES, {"msg.message_start_twice": 1}),
    (
        "a gap in the indexes",
        START + block(index=1) + delta(index=1) + msg("content_block_stop", index=1) + END,
        {"msg.bad_index": 1},
    ),
    (
        "an index again",
        OPEN + delta() + BLOCK_STOP + block() + delta() + BLOCK_STOP + END,
        {"msg.bad_index": 1},
    ),
    (
        "two blocks in order",
        OPEN
        + delta()
        + BLOCK_STOP
        + block(index=1)
        + delta(index=1)
        + msg("content_block_stop", index=1)
        + END,
        {},
    ),
    ("the abbreviated dialect", START + delta() + delta() + END, {"msg.no_block_start": 2}),
    ("a stop without its start", START + BLOCK_STOP + END, {"msg.no_block_start": 1}),
    ("a delta of another block", OPEN + delta(index=1) + BLOCK_STOP + END, {"msg.interleaved": 1}),
    (
        "a stop of another block",
        OPEN + delta() + msg("content_block_stop", index=1) + END,
        {"msg.interleaved": 1},
    ),
    (
        "a block inside a block",
        OPEN + delta() + block(index=1) + delta(index=1) + msg("content_block_stop", index=1) + END,
        {"msg.interleaved": 1},
    ),
    ("thoughts in a text block", OPEN + thinking("Hm") + BLOCK_STOP + END, {"msg.delta_kind": 1}),
    (
        "a delta in a block that comes whole",
        START + block("redacted_thinking", data="x") + delta() + BLOCK_STOP + END,
        {"msg.delta_kind": 1},
    ),
    (
        "a block after the final delta",
        OPEN
        + delta()
        + BLOCK_STOP
        + message_delta()
        + block(index=1)
        + delta(index=1)
        + msg("content_block_stop", index=1)
        + END,
        {"msg.block_after_delta": 1},
    ),
    (
        "a delta after the final delta",
        OPEN + delta() + BLOCK_STOP + message_delta() + delta() + MESSAGE_STOP,
        {"msg.block_after_delta": 1},
    ),
    ("two final deltas", OPEN + delta() + BLOCK_STOP + message_delta() + END, {}),
    ("a block open at the end", OPEN + delta() + END, {"msg.block_open_at_end": 1}),
    ("after the end", GOOD_MESSAGES + delta(), {"msg.after_stop": 1}),
    ("stop twice", GOOD_MESSAGES + MESSAGE_STOP, {"msg.after_stop": 1}),
    ("a ping after the end", GOOD_MESSAGES + PING, {"msg.after_stop": 1}),
    ("a terminator after the end", GOOD_MESSAGES + DONE, {}),
    ("a comment after the end", GOOD_MESSAGES + b": ok\n\n", {}),
    (
        "a terminator before the end",
        OPEN + delta() + BLOCK_STOP + message_delta() + DONE,
        {"msg.unexpected_done": 1, "msg.stop_missing": 1},
    ),
    ("stop missing", OPEN + delta() + BLOCK_STOP + message_delta(), {"msg.stop_missing": 1}),
    ("cut", OPEN + delta(), {}),
    ("cut after a final delta without reason", OPEN + delta() + BLOCK_STOP + message_delta(None), {}),
    ("no final delta", OPEN + delta() + BLOCK_STOP + MESSAGE_STOP, {"msg.stop_without_reason": 1}),
    (
        "no reason",
        OPEN + delta() + BLOCK_STOP + message_delta(None) + MESSAGE_STOP,
        {"msg.stop_without_reason": 1},
    ),
    ("an unknown event", START + msg("news") + GOOD_MESSAGES[len(START) :], {"msg.unknown_event": 1}),
    (
        "an unknown event without JSON",
        START + data("x", "news") + GOOD_MESSAGES[len(START) :],
        {"msg.unknown_event": 1},
    ),
    ("an unknown delta", OPEN + delta("x", "new_delta") + BLOCK_STOP + END, {"msg.unknown_delta": 1}),
    (
        "no event name",
        START + block() + delta() + BLOCK_STOP + message_delta() + data({"type": "message_stop"}),
        {"msg.no_event_name": 1},
    ),
    ("no type", OPEN + delta() + BLOCK_STOP + message_delta() + data({}, "message_stop"), {"msg.no_type": 1}),
    (
        "two names",
        OPEN + delta() + BLOCK_STOP + message_delta() + data({"type": "message_stop"}, "stop"),
        {"msg.type_mismatch": 1},
    ),
    (
        "an event torn in two",
        OPEN
        + delta()
        + BLOCK_STOP
        + message_delta()
        + b'event: message_stop\n: ka\n\ndata: {"type":"message_stop"}\n\n',
        {"sse.empty_event_hazard": 1, "sse.split_by_comment": 1, "msg.no_event_name": 1},
    ),
    (
        "thinking that is not shown",
        START
        + block("thinking", thinking="")
        + PING
        + PING
        + delta("x", "signature_delta", "signature")
        + BLOCK_STOP
        + END,
        {},
    ),
    (
        "a tool of the server's",
        START
        + block("server_tool_use", name="s", input={})
        + arguments("{}")
        + BLOCK_STOP
        + block("web_search_tool_result", 1, content=[])
        + msg("content_block_stop", index=1)
        + END,
        {},
    ),
]


@pytest.mark.parametrize(("body", "violations"), [pytest.param(*rest, id=n) for n, *rest in VIOLATIONS])
def test_violations_of(body: bytes, violations: dict[str, int]) -> None:
    _, grammar = play("messages", body)

    assert violations == grammar.facts.violations


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool"),
        ("refusal", "refusal"),
        ("pause_turn", "pause"),
        ("compaction", "other"),
        ("something_new", "other"),
    ],
)
def test_stop_reason(reason: str, finish: str) -> None:
    _, grammar = play("messages", OPEN + delta() + BLOCK_STOP + message_delta(reason) + MESSAGE_STOP)

    assert (finish, True) == (grammar.facts.finish, grammar.facts.finished)


@pytest.mark.parametrize(
    ("start", "final", "expected"),
    [
        # Counts of the final delta are cumulative and final; the placeholder of the start counts nothing.
        ({"input_tokens": 3, "output_tokens": 8}, {"output_tokens": 44}, Usage(3, 44, None, None)),
        # Translating gateways put the true input count only there.
        (
            {"input_tokens": 0, "output_tokens": 0},
            {"input_tokens": 9, "output_tokens": 4},
            Usage(9, 4, None, None),
        ),
        (
            {"input_tokens": 3, "cache_read_input_tokens": 2},
            {"output_tokens": 4, "output_tokens_details": {"thinking_tokens": 1}},
            Usage(3, 4, 1, 2),
        ),
        ({"input_tokens": 3}, {}, Usage(3, None, None, None)),
        (None, {"output_tokens": 4}, Usage(None, 4, None, None)),
        (None, None, None),
    ],
)
def test_usage(start: Any, final: Any, expected: Usage | None) -> None:
    body = msg("message_start", message={"id": "m1", "usage": start}) + msg(
        "message_delta", delta={}, usage=final
    )
    _, grammar = play("messages", body)

    assert expected == grammar.facts.usage


@pytest.mark.parametrize(
    ("body", "has_output"),
    [
        (OPEN + delta(""), False),
        (OPEN + delta("\u200b"), False),
        (OPEN + delta(" "), True),
        (START + block("tool_use", name="f", input={}), True),  # a call without arguments
        (START + block("thinking") + delta("x", "signature_delta", "signature"), False),
        (START + PING, False),
    ],
)
def test_what_counts_as_output(body: bytes, has_output: bool) -> None:
    _, grammar = play("messages", body)

    assert has_output == grammar.facts.has_output

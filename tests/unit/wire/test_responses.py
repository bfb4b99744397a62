"""Responses: which channel each event has, every violation once, and everything that is tolerated."""

from typing import Any

import pytest

from harness.wire.responses import EVENTS
from harness.wire.signals import Usage
from tests.unit.wire.frames import (
    CLOSED,
    COMPLETED,
    CREATED,
    DONE,
    GOOD_RESPONSES,
    ITEM,
    ITEM_DONE,
    OPENED,
    PART,
    PART_DONE,
    USAGE,
    data,
    play,
    resp,
    response,
    text,
)


def tool_item(kind: str = "function_call") -> bytes:
    return resp("output_item.added", output_index=0, item={"type": kind})


def test_a_good_stream_has_no_violation() -> None:
    channels, grammar = play("responses", GOOD_RESPONSES)
    facts = grammar.facts

    assert ["lifecycle"] * 3 + ["content", "aux", "aux", "terminal"] == channels
    assert {} == facts.violations
    assert ("r1", "stop", True, True) == (facts.response_id, facts.finish, facts.terminal, facts.has_output)
    assert Usage(3, 2, None, None) == facts.usage


PLACE = {"output_index": 0, "content_index": 0, "item_id": "i1"}

CHANNELS: list[tuple[str, bytes, str]] = [
    ("text", text("Hi"), "content"),
    ("empty text", text(""), "lifecycle"),
    ("null text", text(None), "lifecycle"),
    ("whitespace", text(" "), "content"),
    (
        "a relay's fake sign of life",
        resp("output_text.delta", item_id="SSE-Keep-Alive", delta="\u200b"),
        "keepalive",
    ),
    ("refusal", resp("refusal.delta", delta="No", **PLACE), "refusal"),
    ("reasoning", resp("reasoning_text.delta", delta="Hm", **PLACE), "reasoning"),
    (
        "summary",
        resp("reasoning_summary_text.delta", output_index=0, summary_index=0, delta="Hm"),
        "reasoning",
    ),
    ("function arguments", resp("function_call_arguments.delta", output_index=0, delta="{"), "tool"),
    (
        "empty function arguments",
        resp("function_call_arguments.delta", output_index=0, delta=""),
        "lifecycle",
    ),
    ("custom tool", resp("custom_tool_call_input.delta", output_index=0, delta="x"), "tool"),
    ("MCP arguments", resp("mcp_call_arguments.delta", output_index=0, delta="{"), "tool"),
    ("code", resp("code_interpreter_call_code.delta", output_index=0, delta="1"), "tool"),
    ("shell", resp("shell_call_command.added", output_index=0, command_index=0, command="ls"), "tool"),
    ("more shell", resp("shell_call_command.delta", output_index=0, command_index=0, delta=" -l"), "tool"),
    ("audio", resp("audio.delta", delta="AAAA"), "media"),
    ("transcript", resp("audio.transcript.delta", delta="Hi"), "media"),
    ("image", resp("image_generation_call.partial_image", output_index=0, partial_image_b64="AA"), "media"),
    ("annotation", resp("output_text.annotation.added", **PLACE), "aux"),
    ("search status", resp("web_search_call.searching", output_index=0), "aux"),
    ("MCP status", resp("mcp_call.failed", output_index=0), "aux"),
    ("compaction", resp("compaction.compacting", output_index=0), "aux"),
    ("summary part", resp("reasoning_summary_part.added", output_index=0, summary_index=0), "aux"),
    ("shell output", resp("shell_call_output_content.delta", output_index=0, delta={}), "aux"),
    ("queued", resp("queued", response=response("queued")), "lifecycle"),
    ("in progress", resp("in_progress", response=response("in_progress")), "lifecycle"),
    ("another item", resp("output_item.added", output_index=1, item={"type": "reasoning"}), "lifecycle"),
    ("a ping", data({"type": "ping"}, "ping"), "keepalive"),
    ("a ping of another type", data({"type": "keepalive"}, "ping"), "keepalive"),
    ("a ping without type", data({}, "heartbeat"), "keepalive"),
    ("a ping without name", data({"type": "ping"}), "keepalive"),
    ("a ping without data", b"event: ping\n\n", "keepalive"),
    ("an unknown event", resp("something.new", delta="Hi"), "lifecycle"),
    ("an unknown event without JSON", data("x", "news"), "lifecycle"),
    ("text without a name", data({"type": "response.output_text.delta", "delta": "Hi", **PLACE}), "content"),
    ("text without a type", data({"delta": "Hi", **PLACE}, "response.output_text.delta"), "content"),
    (
        "text under a wrong name",
        data({"type": "response.output_text.delta", "delta": "Hi", **PLACE}, "delta"),
        "content",
    ),
    (
        "an unknown type under a good name",
        data({"type": "x", "delta": "Hi", **PLACE}, "response.output_text.delta"),
        "content",
    ),
    ("a terminator too early", DONE, "lifecycle"),
]


@pytest.mark.parametrize(("frame", "channel"), [pytest.param(*rest, id=n) for n, *rest in CHANNELS])
def test_channel_of(frame: bytes, channel: str) -> None:
    channels, grammar = play("responses", OPENED + frame)

    assert ["lifecycle"] * 3 + [channel] == channels
    assert (channel in ("content", "reasoning", "tool", "refusal", "media")) == grammar.facts.has_output


def test_every_event_of_the_catalogue_is_known() -> None:
    """55 of the official union, the alias, and `error`; none may be taken for an unknown one."""
    assert 59 <= len(EVENTS)
    for name in EVENTS:
        _, grammar = play("responses", OPENED + data({"type": name}, name))
        assert "resp.unknown_event" not in grammar.facts.violations, name


def numbered(*numbers: Any) -> bytes:
    return b"".join(resp("in_progress", response=response(), sequence_number=n) for n in numbers)


ABBREVIATED = text("Hi") + text("!") + COMPLETED

VIOLATIONS: list[tuple[str, bytes, dict[str, int]]] = [
    ("nothing created", ABBREVIATED, {"resp.no_created": 1, "resp.no_item": 1, "resp.no_part": 1}),
    (
        "in progress first",
        resp("in_progress") + OPENED + text("Hi") + CLOSED + COMPLETED,
        {"resp.no_created": 1},
    ),
    ("an item first", ITEM + PART + text("Hi") + CLOSED + COMPLETED, {"resp.no_created": 1}),
    ("a status first", resp("web_search_call.searching") + GOOD_RESPONSES, {"resp.no_created": 1}),
    ("completed first", COMPLETED, {"resp.no_created": 1}),
    (
        "queued instead",
        resp("queued", response=response("queued")) + ITEM + PART + text("Hi") + CLOSED + COMPLETED,
        {},
    ),
    ("queued, then created", resp("queued") + GOOD_RESPONSES, {}),
    ("created twice", CREATED + GOOD_RESPONSES, {"resp.created_twice": 1}),
    (
        "created twice without an id",
        resp("created") + resp("created") + GOOD_RESPONSES,
        {"resp.created_twice": 2},
    ),
    ("failed first", resp("failed", response={"error": {"code": "server_error"}}), {}),
    (
        "another id",
        OPENED + text("Hi") + CLOSED + resp("completed", response={"id": "r2"}),
        {"resp.id_changed": 1},
    ),
    ("an item open at the end", OPENED + text("Hi") + PART_DONE + COMPLETED, {"resp.item_open_at_end": 1}),
    (
        "an item open at an incomplete end",
        OPENED + text("Hi") + resp("incomplete", response=response("incomplete")),
        {},
    ),
    (
        "a part open at its item's end",
        OPENED + text("Hi") + ITEM_DONE + COMPLETED,
        {"resp.part_open_at_item_end": 1},
    ),
    ("a delta without its part", CREATED + ITEM + text("Hi") + ITEM_DONE + COMPLETED, {"resp.no_part": 1}),
    (
        "text and refusal without their part",
        CREATED + text("Hi") + resp("refusal.delta", delta="No", **PLACE) + text("!") + COMPLETED,
        {"resp.no_item": 1, "resp.no_part": 1},
    ),
    (
        "arguments without their item",
        CREATED + resp("function_call_arguments.delta", output_index=0, delta="{") + COMPLETED,
        {"resp.no_item": 1},
    ),
    (
        "overlapping items",
        CREATED
        + ITEM
        + PART
        + resp("output_item.added", output_index=1, item={})
        + resp("content_part.added", output_index=1, content_index=0)
        + text("a", 1)
        + text("b", 0)
        + CLOSED
        + resp("content_part.done", output_index=1, content_index=0)
        + resp("output_item.done", output_index=1)
        + COMPLETED,
        {},
    ),
    ("after the end", GOOD_RESPONSES + text("Hi"), {"resp.after_terminal": 1}),
    ("completed twice", GOOD_RESPONSES + COMPLETED, {"resp.after_terminal": 1}),
    ("a terminator after the end", GOOD_RESPONSES + DONE, {}),
    ("a comment after the end", GOOD_RESPONSES + b": ok\n\n", {}),
    (
        "a terminator before the end",
        OPENED + text("Hi") + CLOSED + DONE + COMPLETED,
        {"resp.unexpected_done": 1},
    ),
    ("numbers in order", CREATED + numbered(1, 2, 3), {}),
    ("a gap in the numbers", CREATED + numbered(1, 3), {"resp.sequence_gap": 1}),
    ("a number again", CREATED + numbered(1, 1), {"resp.sequence_not_increasing": 1}),
    ("numbers that start again", CREATED + numbered(5, 0), {"resp.sequence_not_increasing": 1}),
    ("a number that is none", CREATED + numbered("x"), {"resp.sequence_not_increasing": 1}),
    (
        "no event name",
        OPENED + data({"type": "response.output_text.delta", "delta": "Hi", **PLACE}) + CLOSED + COMPLETED,
        {"resp.no_event_name": 1},
    ),
    (
        "no type",
        OPENED + data({"delta": "Hi", **PLACE}, "response.output_text.delta") + CLOSED + COMPLETED,
        {"resp.no_type": 1},
    ),
    (
        "two names",
        OPENED
        + data({"type": "response.output_text.delta", "delta": "Hi", **PLACE}, "x")
        + CLOSED
        + COMPLETED,
        {"resp.type_mismatch": 1},
    ),
    ("an unknown event", OPENED + text("Hi") + CLOSED + resp("news") + COMPLETED, {"resp.unknown_event": 1}),
    (
        "the old alias",
        OPENED + text("Hi") + CLOSED + resp("done", response=response()),
        {"resp.done_alias": 1},
    ),
    (
        "a lost delta",
        OPENED + text("Hi") + resp("output_text.done", text="Hi!", **PLACE) + CLOSED + COMPLETED,
        {"resp.text_mismatch": 1},
    ),
    (
        "an echo that fits",
        OPENED
        + text("Hé")
        + text("🙂")
        + resp("output_text.done", text="Hé🙂", **PLACE)
        + CLOSED
        + COMPLETED,
        {},
    ),
    (
        "an echo of arguments that fits",
        CREATED
        + tool_item()
        + resp("function_call_arguments.delta", output_index=0, delta='{"a":')
        + resp("function_call_arguments.delta", output_index=0, delta="1}")
        + resp("function_call_arguments.done", output_index=0, arguments='{"a":1}')
        + ITEM_DONE
        + COMPLETED,
        {},
    ),
    (
        "wrong total",
        OPENED
        + text("Hi")
        + CLOSED
        + resp("completed", response=response(usage={**USAGE, "total_tokens": 9})),
        {"resp.usage_total": 1},
    ),
    (
        "a fake sign of life",
        resp("output_text.delta", item_id="SSE-Keep-Alive", delta="\u200b") + GOOD_RESPONSES,
        {},
    ),
    (
        "an event torn in two",
        GOOD_RESPONSES[: -len(COMPLETED)]
        + b"event: response.completed\n: ka\n\n"
        + COMPLETED.split(b"\n", 1)[1],
        {"sse.empty_event_hazard": 1, "sse.split_by_comment": 1, "resp.no_event_name": 1},
    ),
]


@pytest.mark.parametrize(("body", "violations"), [pytest.param(*rest, id=n) for n, *rest in VIOLATIONS])
def test_violations_of(body: bytes, violations: dict[str, int]) -> None:
    _, grammar = play("responses", body)

    assert violations == grammar.facts.violations


def incomplete(reason: Any) -> bytes:
    return resp("incomplete", response=response("incomplete", incomplete_details={"reason": reason}))


SPOKEN = OPENED + text("Hi")
FINISHES: list[tuple[str, bytes, str | None]] = [
    ("completed", SPOKEN + COMPLETED, "stop"),
    ("token limit", SPOKEN + incomplete("max_output_tokens"), "length"),
    ("filter", SPOKEN + incomplete("content_filter"), "filter"),
    ("another reason", SPOKEN + incomplete("steered"), "other"),
    ("a reason that is none", SPOKEN + incomplete({}), "other"),
    ("no details", SPOKEN + resp("incomplete"), "other"),
    ("refusal", CREATED + ITEM + PART + resp("refusal.delta", delta="No", **PLACE) + COMPLETED, "refusal"),
    ("function call", CREATED + tool_item() + COMPLETED, "tool"),
    ("custom tool", CREATED + tool_item("custom_tool_call") + COMPLETED, "tool"),
    (
        "arguments without an item",
        resp("function_call_arguments.delta", output_index=0, delta="{") + COMPLETED,
        "tool",
    ),
    (
        "a call in the final output alone",
        CREATED + resp("completed", response=response(output=[{"type": "function_call"}])),
        "tool",
    ),
    # The server runs these itself: the client has nothing to do, the answer has stopped.
    (
        "a tool of the server's",
        CREATED
        + tool_item("mcp_call")
        + resp("mcp_call_arguments.delta", output_index=0, delta="{")
        + text("Hi")
        + COMPLETED,
        "stop",
    ),
    ("cancelled", SPOKEN + resp("done", response=response("cancelled")), "other"),
    (
        "incomplete under the old alias",
        SPOKEN
        + resp("done", response=response("incomplete", incomplete_details={"reason": "content_filter"})),
        "filter",
    ),
    ("cut", SPOKEN, None),
]


@pytest.mark.parametrize(("body", "finish"), [pytest.param(*rest, id=n) for n, *rest in FINISHES])
def test_finish_of(body: bytes, finish: str | None) -> None:
    _, grammar = play("responses", body)

    assert (finish, finish is not None) == (grammar.facts.finish, grammar.facts.terminal)


@pytest.mark.parametrize(
    ("output", "has_output"),
    [
        ([], False),
        ([{"type": "message", "content": [{"type": "output_text", "text": "Hi"}]}], True),
        ([{"type": "message", "content": [{"type": "refusal", "refusal": "No"}]}], True),
        ([{"type": "message", "content": [{"type": "output_text", "text": ""}]}], False),
        ([{"type": "reasoning", "summary": []}], False),
        ([None, {"type": ["x"], "content": 5}], False),
        ("x", False),
    ],
)
def test_an_answer_that_comes_only_in_the_end_is_output(output: Any, has_output: bool) -> None:
    _, grammar = play("responses", CREATED + resp("completed", response=response(output=output)))

    assert has_output == grammar.facts.has_output


def test_usage_details() -> None:
    counts = {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 8}, "output_tokens": 7,
              "output_tokens_details": {"reasoning_tokens": 6}, "total_tokens": 16}  # fmt: skip
    _, grammar = play("responses", SPOKEN + CLOSED + resp("completed", response=response(usage=counts)))

    assert Usage(9, 7, 6, 8) == grammar.facts.usage
    assert {} == grammar.facts.violations


def test_a_hostile_server_cannot_grow_what_is_kept_without_end() -> None:
    body = b"".join(resp("output_item.added", output_index=n, item={}) + text("x", n) for n in range(11_000))
    _, grammar = play("responses", CREATED + body)

    assert 10_000 >= max(len(getattr(grammar, name)) for name in ("_opened", "_open", "_lengths"))

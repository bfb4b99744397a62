import json

import pytest

from harness.sim.faults import FAULTS
from harness.sim.plan import LAST_BODY
from harness.sim.words import said


def events(plan):
    """Return (event name, data) of each event in the bytes of *plan*; data parsed unless it is `[DONE]`."""
    text = b"".join(data for _, kind, data in plan if kind <= LAST_BODY).decode()
    found = []
    for block in text.split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        data = fields["data"]
        found.append((fields.get("event"), data if data == "[DONE]" else json.loads(data)))
    return found


def test_official_chat_has_role_text_finish_usage_and_done(make_script):
    *chunks, last = [data for name, data in events(FAULTS["ok"].plan(make_script("chat", count=3)))]

    assert "[DONE]" == last
    assert {"role": "assistant", "content": ""} == chunks[0]["choices"][0]["delta"]
    assert said(0, 3) == "".join(c["choices"][0]["delta"]["content"] for c in chunks[1:4])
    assert ({}, "stop") == (chunks[4]["choices"][0]["delta"], chunks[4]["choices"][0]["finish_reason"])
    assert [] == chunks[5]["choices"]
    assert (7, 3, 10) == tuple(
        chunks[5]["usage"][k] for k in ("prompt_tokens", "completion_tokens", "total_tokens")
    )
    assert 6 == len(chunks)
    assert {"chatcmpl-0001"} == {c["id"] for c in chunks}
    assert {1_700_000_000} == {c["created"] for c in chunks}
    assert [None] * 5 == [c["usage"] for c in chunks[:5]]


def test_chat_without_include_usage_has_no_usage_at_all(make_script):
    chunks = events(FAULTS["ok"].plan(make_script("chat", usage=False)))

    assert not any("usage" in data for _, data in chunks[:-1])
    assert 6 + 3 == len(chunks)


def test_official_responses_are_numbered_nested_and_consistent(make_script):
    seen = events(FAULTS["ok"].plan(make_script("responses", count=2)))

    assert [
        "response.created", "response.in_progress", "response.output_item.added",
        "response.content_part.added", "response.output_text.delta", "response.output_text.delta",
        "response.output_text.done", "response.content_part.done", "response.output_item.done",
        "response.completed",
    ] == [name for name, _ in seen]  # fmt: skip
    assert list(range(10)) == [data["sequence_number"] for _, data in seen]
    assert all(name == data["type"] for name, data in seen)
    final = seen[-1][1]["response"]
    assert said(0, 2) == final["output"][0]["content"][0]["text"] == seen[6][1]["text"]
    assert (7, 2, 9) == tuple(final["usage"][k] for k in ("input_tokens", "output_tokens", "total_tokens"))


def test_official_messages_open_and_close_their_block(make_script):
    seen = events(FAULTS["ok"].plan(make_script("messages", count=2)))

    assert [
        "message_start", "content_block_start", "content_block_delta", "content_block_delta",
        "content_block_stop", "message_delta", "message_stop",
    ] == [name for name, _ in seen]  # fmt: skip
    assert all(name == data["type"] for name, data in seen)
    assert "end_turn" == seen[5][1]["delta"]["stop_reason"]
    assert 2 == seen[5][1]["usage"]["output_tokens"]


ID = {"chat": "chatcmpl-0001", "responses": "resp_0001", "messages": "msg_0001"}


def test_abbreviated_hopbase_looks_like_its_document(make_script):
    def told(protocol):
        return events(FAULTS["ok"].plan(make_script(protocol, "hopbase", 1, "abbreviated")))

    assert [
        {"id": ID["chat"], "object": "chat.completion.chunk", "model": "m", "choices": [
            {"index": 0, "delta": {"role": "assistant", "content": "The "}, "finish_reason": None}]},
        {"id": ID["chat"], "object": "chat.completion.chunk", "model": "m", "choices": [
            {"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ] == [data for _, data in told("chat")[:2]]  # fmt: skip
    responses = told("responses")
    assert ["response.created", "response.output_text.delta", "response.completed"] == [
        n for n, _ in responses
    ]
    assert {"type", "item_id", "output_index", "content_index", "delta"} == set(responses[1][1])
    assert {"id": ID["responses"], "status": "in_progress"} == responses[0][1]["response"]
    messages = told("messages")
    assert ["message_start", "content_block_delta", "message_delta", "message_stop"] == [
        n for n, _ in messages
    ]
    assert {"id", "role", "model", "content", "usage"} == set(messages[0][1]["message"])
    assert {"stop_reason": "end_turn"} == messages[2][1]["delta"]


def test_abbreviated_sabiuco_begins_with_an_empty_chunk_and_has_its_own_ids(make_script):
    seen = events(FAULTS["ok"].plan(make_script("chat", "sabiuco", 1, "abbreviated")))

    assert {"role": "assistant", "content": ""} == seen[0][1]["choices"][0]["delta"]
    assert {"content": "The "} == seen[1][1]["choices"][0]["delta"]
    assert "chatcmpl-hx0001" == seen[0][1]["id"]
    assert "created" not in seen[0][1]


@pytest.mark.parametrize(
    ("gateway", "protocol", "event", "expected"),
    [
        ("hopbase", "chat", None, {"error": {"message": "Response stream interrupted, please retry",
                                             "type": "server_error", "code": "upstream_error"}}),
        ("hopbase", "messages", "error", {"type": "error", "error": {
            "type": "api_error", "message": "Response stream interrupted, please retry"}}),
        ("sabiuco", "chat", None, {"error": {"message": "La respuesta se ha cortado. Inténtalo de nuevo.",
                                             "type": "api_error", "code": "stream_interrupted"}}),
        ("generic", "messages", "error", {"type": "error", "error": {
            "type": "overloaded_error", "message": "Overloaded"}}),
    ],
)  # fmt: skip
def test_each_gateway_has_its_own_error_event(make_script, gateway, protocol, event, expected):
    last = events(FAULTS["error-mid"].plan(make_script(protocol, gateway)))[-1]

    assert (event, expected) == last


def test_a_failed_response_is_a_whole_response_event(make_script):
    name, data = events(FAULTS["error-mid"].plan(make_script("responses", "hopbase")))[-1]

    assert "response.failed" == name == data["type"]
    assert ("failed", "server_error") == (data["response"]["status"], data["response"]["error"]["code"])
    assert "resp_0001" == data["response"]["id"]


def test_openai_only_errors_and_done_everywhere_change_the_other_protocols(make_script):
    error = events(FAULTS["error-mid"].plan(make_script("messages", spelling="openai-only-errors")))[-1]
    done = events(FAULTS["ok"].plan(make_script("responses", spelling="done-everywhere")))[-1]

    assert (None, {"type", "message"}) == (error[0], set(error[1]["error"]))
    assert (None, "[DONE]") == done


@pytest.mark.parametrize("count", [1, 2, 3, 9])
@pytest.mark.parametrize("protocol", ["chat", "responses", "messages"])
def test_the_arguments_of_a_tool_call_are_json_however_they_are_cut(make_script, protocol, count):
    seen = [data for _, data in events(FAULTS["tool-call"].plan(make_script(protocol, count=count)))]
    fragments = []
    for data in seen:
        if protocol == "chat" and data != "[DONE]" and data["choices"]:
            calls = data["choices"][0]["delta"].get("tool_calls", [])
            fragments += [call["function"]["arguments"] for call in calls]
        elif protocol == "responses" and data["type"].endswith("arguments.delta"):
            fragments.append(data["delta"])
        elif protocol == "messages" and data["type"] == "content_block_delta":
            fragments.append(data["delta"]["partial_json"])

    assert json.loads("".join(fragments))["query"].endswith("tides")
    assert count == len([f for f in fragments if f])


def test_the_token_limit_is_told_as_each_protocol_does(make_script):
    ends = [
        events(FAULTS["ok"].plan(make_script(p, finish="length"))) for p in ("chat", "responses", "messages")
    ]

    assert "length" == ends[0][-3][1]["choices"][0]["finish_reason"]
    assert ("response.incomplete", "max_output_tokens") == (
        ends[1][-1][0], ends[1][-1][1]["response"]["incomplete_details"]["reason"])  # fmt: skip
    assert "max_tokens" == ends[2][-2][1]["delta"]["stop_reason"]


def test_the_blocks_of_a_message_are_counted_from_nought(make_script):
    seen = events(FAULTS["reasoning"].plan(make_script("messages", count=4)))
    places = [(name, data["index"]) for name, data in seen if "index" in data]

    assert [
        ("content_block_start", 0), *[("content_block_delta", 0)] * 3, ("content_block_stop", 0),
        ("content_block_start", 1), *[("content_block_delta", 1)] * 2, ("content_block_stop", 1),
    ] == places  # fmt: skip

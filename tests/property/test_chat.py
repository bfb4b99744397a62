"""The quick way through a plain chunk says what the general way says."""

import json

from hypothesis import given
from hypothesis import strategies as st

from harness.wire.chat import MOST_MISSES, ChatGrammar
from harness.wire.signals import Facts
from harness.wire.sse import Event, SseParser
from tests.unit.wire.frames import DONE, HI, ROLE, STOP, chunk, data, usage

TEXTS = st.sampled_from(["Hi", "", " ", "\u200b", "\u200bx", "\u2028", "é", "好", None, 7, ["x"], {"a": 1}])
INDEXES = st.sampled_from([0, 1, 0.0, True, "0", None, -1])
RAW = st.sampled_from([
    ROLE, HI, STOP, DONE, usage(), chunk("x", finish="error"), chunk("x", finish=""),
    chunk("x", role="user"), data("{"),
    chunk(refusal="no"), chunk("x", tool_calls=None), data({"error": {"message": "m"}}), data("[1]"),
    data({"id": "c2", "choices": [{"index": 0, "delta": {"content": "x"}}]}), data({"choices": []}), data(""),
    data({"id": "c1", "choices": [{"index": 0, "delta": {"content": "x"}, "error": {"message": "m"}}]}),
    data({"id": "c1", "choices": [{"index": 0, "delta": {"content": "x"}, "logprobs": {"content": []}}]}),
    data({"id": "c1", "choices": [{"index": 0, "delta": {"content": "x"}, "message": {"content": "y"}}]}),
    data({"id": "c1", "choices": [{"delta": {"content": "x"}}, {"index": 1, "delta": {"content": "y"}}]}),
    data({"id": "c1", "choices": [{"index": 0, "delta": {"content": "x"}}], "usage": {"x": 3}}),
    data({"id": "c1", "choices": [{"index": 0, "delta": {"content": "x"}}], "error": "bad"}),
    data({"id": "c1", "choices": [{"index": 0, "delta": {"content": "x"}}], "type": "ping"}),
    data({"id": "c1", "choices": [{"index": 0, "delta": {"content": "x"}}]}, "ping"),
    b'data: {"id":"c1","choices":[{"index":0,"delta":{"content":"a","content":"\\u200b"}}]}\n\n',
    b'data: {"id":"c1","choices":[{"index":0,"delta":{"content":"\xff"}}]}\n\n',
    b'data: {"id":"c1","model":"\xff","choices":[{"index":0,"delta":{"content":"x"}}]}\n\n',
    b'data: {"id":"c1","choices":[{"index":0,"delta":{"content":"x"}}]} trailing\n\n',
])  # fmt: skip
MADE = st.builds(lambda text, index: chunk(text, index=index), TEXTS, INDEXES)


def facts_of(body: bytes, *, quick: bool) -> tuple[list[int], Facts]:
    """The signals of all events of *body*, and what the grammar knows at the end."""
    grammar = ChatGrammar(usage_requested=True)
    if not quick:
        grammar._misses = MOST_MISSES
    events = [item for item in SseParser().feed(body) if isinstance(item, Event)]
    return [grammar.event(event.type, event.raw) for event in events], grammar.facts


@given(st.lists(st.one_of(RAW, MADE), max_size=12))
def test_the_quick_way_says_what_the_general_one_does(frames: list[bytes]) -> None:
    body = ROLE + HI + b"".join(frames)

    assert facts_of(body, quick=False) == facts_of(body, quick=True)


def test_a_stream_without_plain_chunks_soon_stops_trying() -> None:
    grammar = ChatGrammar()
    thought = json.dumps(
        {"id": "c1", "choices": [{"index": 0, "delta": {"reasoning_content": "hm"}}]}
    ).encode()
    for _ in range(3 * MOST_MISSES):
        grammar.event("message", thought)

    assert grammar._misses == MOST_MISSES

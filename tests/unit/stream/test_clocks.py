"""When each clock stops: offsets from the moment before the request was written."""

import pytest

from harness.stream.record import Progress
from tests.unit.stream.play import Play
from tests.unit.wire.frames import (
    BLOCK_STOP,
    CREATED,
    DONE,
    HI,
    ITEM,
    MESSAGE_STOP,
    PART,
    PING,
    ROLE,
    START,
    STOP,
    block,
    chunk,
    data,
    delta,
    message_delta,
    resp,
    text,
    usage,
)

Firsts = tuple[float | None, float | None, float | None, float | None, float | None, float | None]
THOUGHT = chunk(reasoning_content="Hm")
CALL = chunk(tool_calls=[{"index": 0, "function": {"name": "f", "arguments": ""}}])
THINKING = delta("Hm", "thinking_delta", "thinking")
ARGUMENTS = delta("{", "input_json_delta", "partial_json")

# frames at 1, 2, 3 … s -> first event, token, content, reasoning, tool, last token
FIRSTS: list[tuple[str, str, list[bytes], Firsts]] = [
    ("text", "chat", [ROLE, HI, HI], (1, 2, 2, None, None, 3)),
    ("a comment is no event", "chat", [b": ok\n\n", ROLE, HI], (2, 3, 3, None, None, 3)),
    ("an empty block is none", "chat", [b"event: x\n\n", ROLE, HI], (2, 3, 3, None, None, 3)),
    ("a ping is an event", "chat", [data({}, "ping"), HI], (1, 2, 2, None, None, 2)),
    ("half an event is none", "chat", [ROLE[:20], ROLE[20:], HI], (2, 3, 3, None, None, 3)),
    ("role and text in one chunk", "chat", [chunk("Hi", role="assistant")], (1, 1, 1, None, None, 1)),
    ("reasoning is the first token", "chat", [ROLE, THOUGHT, HI], (1, 2, 3, 2, None, 3)),
    ("a call is the first token", "chat", [ROLE, CALL, HI], (1, 2, 3, None, 2, 3)),
    ("a refusal is content", "chat", [ROLE, chunk(refusal="No")], (1, 2, 2, None, None, 2)),
    (
        "audio is a token and no content",
        "chat",
        [ROLE, chunk(audio={"data": "AA"})],
        (1, 2, None, None, None, 2),
    ),
    ("whitespace waits for a character", "chat", [ROLE, chunk("\n\n"), HI], (1, 3, 3, None, None, 3)),
    ("whitespace after thoughts waits too", "chat", [THOUGHT, chunk("\n\n"), HI], (1, 1, 3, 1, None, 3)),
    ("whitespace of thoughts", "chat", [chunk(reasoning=" "), THOUGHT], (1, 2, None, 1, None, 2)),
    ("zero-width is nothing", "chat", [ROLE, chunk("\u200b"), HI], (1, 3, 3, None, None, 3)),
    ("zero-width at the end is no last token", "chat", [ROLE, HI, chunk("\u200b")], (1, 2, 2, None, None, 2)),
    ("usage and finish are no tokens", "chat", [ROLE, HI, STOP, usage(), DONE], (1, 2, 2, None, None, 2)),
    (
        "log probabilities are none",
        "chat",
        [data({"choices": [{"delta": {}, "logprobs": {"x": 1}}]}), HI],
        (1, 2, 2, None, None, 2),
    ),
    ("nothing but lifecycle", "chat", [ROLE, chunk("")], (1, None, None, None, None, None)),
    ("Responses text", "responses", [CREATED, ITEM, PART, text(""), text("Hi")], (1, 5, 5, None, None, 5)),
    (
        "Responses summary",
        "responses",
        [CREATED, resp("reasoning_summary_text.delta", delta="Hm"), text("Hi")],
        (1, 2, 3, 2, None, 3),
    ),
    (
        "Responses arguments",
        "responses",
        [CREATED, resp("function_call_arguments.delta", delta="{")],
        (1, 2, None, None, 2, 2),
    ),
    (
        "Responses refusal",
        "responses",
        [CREATED, resp("refusal.delta", delta="No")],
        (1, 2, 2, None, None, 2),
    ),
    (
        "Responses status is none",
        "responses",
        [CREATED, resp("web_search_call.searching"), text("Hi")],
        (1, 3, 3, None, None, 3),
    ),
    (
        "Responses echo is none",
        "responses",
        [CREATED, resp("output_text.done", text="Hi")],
        (1, None, None, None, None, None),
    ),
    ("Messages text", "messages", [START, block(), PING, delta("Hi"), BLOCK_STOP], (1, 4, 4, None, None, 4)),
    ("Messages block with text", "messages", [START, block(text="Hi"), delta("!")], (1, 2, 2, None, None, 3)),
    (
        "Messages thinking",
        "messages",
        [START, block("thinking"), THINKING, BLOCK_STOP, block(index=1), delta(index=1)],
        (1, 3, 6, 3, None, 6),
    ),
    (
        "Messages arguments",
        "messages",
        [START, block("tool_use", input={}), delta("", "input_json_delta", "partial_json"), ARGUMENTS],
        (1, 4, None, None, 4, 4),
    ),
    (
        "Messages signature is none",
        "messages",
        [START, block("thinking"), delta("x", "signature_delta", "signature")],
        (1, None, None, None, None, None),
    ),
    (
        "Messages end is none",
        "messages",
        [START, block(), delta(), message_delta(), MESSAGE_STOP],
        (1, 3, 3, None, None, 3),
    ),
]


@pytest.mark.parametrize(("protocol", "frames", "firsts"), [pytest.param(*rest, id=n) for n, *rest in FIRSTS])
def test_firsts_of(protocol: str, frames: list[bytes], firsts: Firsts) -> None:
    play = Play(protocol).head(0.5)
    for at, frame in enumerate(frames, 1):
        play.read(float(at), frame)
    record = play.end(len(frames) + 4.0)

    assert firsts == (
        record.first_event_s, record.first_token_s, record.first_content_s, record.first_reasoning_s,
        record.first_tool_s, record.last_token_s,
    )  # fmt: skip
    assert (0.5, 1.0, float(len(frames)), len(frames) + 4.0) == (
        record.headers_s, record.first_byte_s, record.last_byte_s, record.end_s
    )  # fmt: skip


def test_a_moment_is_that_of_the_read_that_completed_the_event() -> None:
    record = Play().head(0.5).read(1.0, HI[:-1]).read(2.0, HI[-1:]).end(3.0)

    assert (1.0, 2.0, 2.0, 2) == (
        record.first_byte_s,
        record.first_event_s,
        record.first_token_s,
        record.reads,
    )


def test_the_terminal_has_its_moment_and_so_has_the_silence_after_it() -> None:
    record = Play().head(0.5).read(1.0, ROLE + HI + STOP).read(2.0, DONE).end(2.5)

    assert (2.0, 2.0, 2.5, 0.5) == (record.terminal_s, record.last_byte_s, record.end_s, record.silence_end_s)
    assert None is Play().head(0.5).read(1.0, ROLE + HI).end(2.5).terminal_s


def test_of_the_connection_there_are_durations_and_where_it_goes() -> None:
    play = Play(connect=False)
    play.session.connected(5000.2, connect_s=0.03, tls_s=0.05, peer="[2001:db8::1]:443", reused=False)
    play.session.sent(5000.25)
    record = play.end(1.0, "cut")

    assert (0.03, 0.05, "[2001:db8::1]:443", False) == (
        record.connect_s, record.tls_s, record.peer, record.reused_connection
    )  # fmt: skip


def test_without_a_connection_offsets_count_from_the_start() -> None:
    record = Play(connect=False).end(2.75, "connect_error")

    assert (3.0, None) == (record.end_s, record.headers_s)


def test_gaps_are_between_output_only() -> None:
    """Comments, pings, empty deltas and usage in between end no gap."""
    play = Play().head(0.5).read(1.0, ROLE + HI).read(2.0, b": ok\n\n").read(3.0, chunk("")).read(4.0, HI)
    record = play.read(4.5, chunk("\u200b")).read(5.0, HI).read(5.1, HI).end(6.0)

    assert Progress(4, 1.0, 2.96, 3.0, 1.0) == record.progress


def test_silence_is_between_bytes_of_any_kind() -> None:
    play = Play().head(0.5).read(10.0, ROLE).read(11.0, b": ok\n\n").read(15.0, HI[:9]).read(17.0, HI[9:])
    record = play.end(20.0)

    assert (4.0, 11.0, 3.0) == (record.silence_max_s, record.silence_max_at_s, record.silence_end_s)


def test_the_silence_that_the_end_ends_counts() -> None:
    record = Play().head(0.5).read(1.0, ROLE).read(2.0, HI).end(12.0)

    assert (10.0, 2.0, 10.0) == (record.silence_max_s, record.silence_max_at_s, record.silence_end_s)


def test_gaps_are_handed_over_in_slices_and_none_is_lost() -> None:
    slices: list[list[float]] = []
    play = Play(on_gaps=lambda gaps: slices.append(list(gaps))).head(0.5)
    for step in range(601):
        play.session.feed(HI, 5001.0 + step / 64)
    play.end(20.0)

    assert [257, 256, 87] == [len(part) for part in slices]
    assert {1 / 64} == {gap for part in slices for gap in part}


def test_bytes_are_handed_over_as_they_come() -> None:
    seen: list[bytes] = []
    Play(on_bytes=seen.append).head(0.5).read(1.0, ROLE).read(2.0, HI[:9]).end(3.0)

    assert [ROLE, HI[:9]] == seen


def test_the_timeline_has_times_and_kinds_and_no_text() -> None:
    play = (
        Play().head(0.5).read(1.0, b": ok\n\n" + ROLE).read(2.0, HI + chunk("\u200b")).read(3.0, STOP + DONE)
    )
    play.end(4.0)

    assert {
        "t": [1.0, 1.0, 2.0, 2.0, 3.0, 3.0],
        "kind": ["comment", "lifecycle", "content", "keepalive", "lifecycle", "terminal"],
        "dropped": 0,
    } == play.session.timeline()


def test_a_long_timeline_keeps_its_beginning_and_its_end() -> None:
    play = Play().head(0.5)
    for step in range(9000):
        play.session.feed(HI, 5000.75 + step / 64)
    kept = play.session.timeline()

    assert 9000 == len(kept["t"]) + kept["dropped"]
    assert (0.5, round(0.5 + 8999 / 64, 6)) == (kept["t"][0], kept["t"][-1])
    assert 1024 <= len(kept["t"]) <= 4096

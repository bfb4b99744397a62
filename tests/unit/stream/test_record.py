"""The record's JSON is a contract: order, names, types, rounding, escapes."""

import json
from typing import Any

import msgspec
import pytest

from harness.stream import RequestSummary, Retry, assemble
from harness.stream.assemble import escape, quantile
from harness.stream.record import Attempt, from_json, to_json
from tests.unit.stream.play import EPOCH, IDENTITY, T0, Play
from tests.unit.wire.frames import DONE, HI, ROLE, START, STOP, block, data, delta, message_delta, usage

GOLDEN = (
    '{"schema":"harness.attempt/1","run":"r1","request":"q1","attempt":1,"final":true,"protocol":"chat",'
    '"gateway":"generic","simulated":false,"scenario":"default","model":"m","worker":"local","phase":"measure",'
    '"scheduled_at":1700000000.0,"sent_at":1700000000.0,"clock":"user","lag_max_s":0.0025,"uncertain_max_s":null,'
    '"uncertain_events":0,"reused_connection":false,"status":200,"peer":"192.0.2.1:80",'
    '"server_request_id":"req_1","response_id":"c1","connect_s":0.25,"tls_s":null,"headers_s":0.5,'
    '"first_byte_s":1.0,"first_event_s":1.0,"first_token_s":2.0,"first_content_s":2.0,"first_reasoning_s":null,'
    '"first_tool_s":null,"last_token_s":5.0,"last_byte_s":5.5,"terminal_s":5.5,"end_s":5.625,"events":7,'
    '"bytes":924,"reads":6,'
    '"tokens":{"input":3,"output":2,"reasoning":1,"cached":null,"source":"usage"},'
    '"progress":{"count":3,"gap_p50_s":1.5,"gap_p99_s":1.99,"gap_max_s":2.0,"gap_max_at_s":3.0},'
    '"keepalive":{"comments":1,"pings":0,"first_s":4.0,"gap_min_s":null,"gap_mean_s":null,"gap_max_s":null,'
    '"late":0,"violations":0,"text":"ok"},'
    '"silence_max_s":1.0,"silence_max_at_s":1.0,"silence_end_s":0.125,"outcome":"completed","finish":"stop",'
    '"stall":null,'
    '"soft_stalls":[{"class":"slow_progress","phase":"mid_stream","limit_s":1.5,"began_s":3.0,"ended_s":5.0,'
    '"fatal":false}],'
    '"error":null,"violations":{"chat.usage_unrequested":1},'
    '"retry":{"decision":"none","reason":null,"delay_s":null},'
    '"request_summary":{"attempts":1,"outcome":"completed","retry_outcome":"not_needed","first_token_s":2.5,'
    '"first_content_s":2.5,"end_s":6.125,"wasted_tokens":0,"wasted_source":null}}'
)


def golden() -> Attempt:
    limits = Play().session.limits.with_override("progress.warn", 1.5)
    play = Play(limits=limits).head(0.5, x_request_id="req_1")
    play.session.lag(0.0025)
    counts = usage(completion_tokens_details={"reasoning_tokens": 1})
    play.read(1.0, ROLE).read(2.0, HI).read(3.0, HI).read(4.0, b": ok\n\n").read(5.0, HI)
    play.read(5.5, STOP + counts + DONE).end(5.625)
    summary = RequestSummary(1, "completed", "not_needed", 2.5, 2.5, 6.125, 0, None)
    return assemble(play.session, IDENTITY, EPOCH - T0, retry=Retry("none"), final=True, summary=summary)


def test_the_golden_line() -> None:
    assert GOLDEN == to_json(golden()).decode()


def test_a_record_survives_the_round_trip() -> None:
    assert golden() == from_json(to_json(golden()))
    assert golden() == from_json(GOLDEN.encode())


def test_only_the_final_line_has_a_summary() -> None:
    record = Play().head().read(1.0, ROLE).end(2.0)

    assert "request_summary" not in json.loads(to_json(record))
    assert record == from_json(to_json(record))


def test_the_shape_of_stall_and_error() -> None:
    stalled = json.loads(to_json(Play().head(1.0).read(2.0, HI).wait(999.0).record()))
    failed = json.loads(to_json(Play().head(0.5, 429).read(1.0, b'{"error":"Slow"}').end(1.5)))

    assert [
        ("class", "dead_silence_mid"), ("phase", "mid_stream"), ("limit_s", 60.0), ("began_s", 2.0),
        ("ended_s", 62.0), ("fatal", True),
    ] == list(stalled["stall"].items())  # fmt: skip
    assert [
        ("layer", "http"), ("type", None), ("code", None), ("message", "Slow"), ("retryable", True),
        ("shape", "http.flat"),
    ] == list(failed["error"].items())  # fmt: skip


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{}", "missing required field"),
        (b"not json", "malformed"),
        (GOLDEN.encode().replace(b"attempt/1", b"attempt/2"), "schema 'harness.attempt/2', expected"),
        (
            GOLDEN.encode().replace(b'"outcome":"completed","finish"', b'"outcome":"fine","finish"'),
            "Invalid enum value",
        ),
        (GOLDEN.encode()[:-20], "truncated"),
        (b"\xff", "malformed"),
    ],
)
def test_a_line_that_is_no_record_is_named(line: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        from_json(line)

    assert not isinstance(caught.value, msgspec.DecodeError)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "chars", "expected"),
    [
        ("plain", 200, "plain"),
        ("é漢🙂", 200, "é漢🙂"),
        ("a\x00b\x1b[31m\n\t\x7f", 200, "a\\x00b\\x1b[31m\\n\\t\\x7f"),
        ("\u2028\u202e", 200, "\\u2028\\u202e"),  # a line separator, and one that turns text around
        ("\ud83d", 200, "\\ud83d"),  # half an emoji
        ("x" * 300, 200, "x" * 200),
        ("\n" * 300, 200, "\\n" * 100),
        ("", 200, ""),
    ],
)
def test_escape(text: str, chars: int, expected: str) -> None:
    assert expected == escape(text, chars)


def test_what_a_server_says_is_cut_and_escaped_wherever_it_goes() -> None:
    evil = "\x1b]0;owned\x07" + "x" * 1000
    error = {"error": {"message": evil, "type": evil, "code": evil}}
    chat = data({"id": evil, "choices": [{"delta": {"content": "Hi"}}]})
    record = Play().head(0.5, x_request_id=evil).read(1.0, chat + data(error)).end(2.0)
    assert record.error is not None

    for text in (record.error.type, record.error.code, record.response_id, record.server_request_id):
        assert text == "\\x1b]0;owned\\x07" + "x" * 84
    assert record.error.message == "\\x1b]0;owned\\x07" + "x" * 184


def test_half_an_emoji_can_be_written() -> None:
    body = b'data: {"id":"\\ud83d","error":{"message":"\\ud83d","type":"\\udc00"}}\n\n'
    record = from_json(to_json(Play().head().read(1.0, body).end(2.0)))

    assert record.error is not None
    assert ("\\ud83d", "\\udc00") == (record.error.message, record.error.type)


def test_times_are_rounded_to_the_microsecond() -> None:
    record = Play().head(0.123456789).read(1.00000049, HI).read(1.1, HI).end(1.2)

    assert (0.123457, 1.0, 0.1) == (record.headers_s, record.first_byte_s, record.progress.gap_max_s)


@pytest.mark.parametrize(
    ("protocol", "body", "expected"),
    [
        ("chat", ROLE + HI + HI, (None, 2, None, None, "events")),
        ("chat", ROLE + HI + STOP + usage(9, 5), (9, 5, None, None, "usage")),
        (
            "chat",
            ROLE + HI + data({"choices": [], "usage": {"prompt_tokens": 9}}),
            (9, 1, None, None, "events"),
        ),
        ("chat", b"", (None, 0, None, None, "events")),
        # The placeholder of message_start counts nothing.
        ("messages", START + block() + delta() + delta(), (3, 2, None, None, "events")),
        ("messages", START + block() + delta() + message_delta(), (3, 2, None, None, "usage")),
    ],
)
def test_tokens(protocol: str, body: bytes, expected: tuple[Any, ...]) -> None:
    tokens = Play(protocol).head().read(1.0, body).end(2.0).tokens

    assert expected == (tokens.input, tokens.output, tokens.reasoning, tokens.cached, tokens.source)


def test_quantile_interpolates_between_the_two_nearest() -> None:
    assert (1.0, 1.5, 2.0, 1.99) == tuple(quantile([1.0, 2.0], q) for q in (0.0, 0.5, 1.0, 0.99))
    assert 7.0 == quantile([7.0], 0.99)


def test_an_attempt_before_its_end_has_no_record() -> None:
    with pytest.raises(AssertionError):
        Play().record()

"""Every way in which an attempt can end, each with its one outcome; nothing changes it afterwards."""

from typing import Any

import pytest

from harness.gateways import Profile, load
from harness.stream.outcome import OUTCOMES, EndReason
from tests.unit.stream.play import T0, Play
from tests.unit.wire.frames import (
    COMPLETED,
    CREATED,
    DONE,
    GOOD_CHAT,
    GOOD_MESSAGES,
    GOOD_RESPONSES,
    HI,
    MESSAGE_STOP,
    OPENED,
    ROLE,
    START,
    STOP,
    block,
    chunk,
    data,
    delta,
    message_delta,
    resp,
    response,
    text,
    usage,
)

SAID = {"chat": ROLE + HI, "responses": OPENED + text("Hi"), "messages": START + block() + delta()}
GOOD = {"chat": GOOD_CHAT, "responses": GOOD_RESPONSES, "messages": GOOD_MESSAGES}
ERROR = data({"error": {"type": "server_error", "message": "Oops"}})

# name, protocol, body, how the connection ends -> outcome, finish
ENDS: list[tuple[str, str, bytes, EndReason, str, str | None]] = [
    *((f"good {p}", p, body, "eof", "completed", "stop") for p, body in GOOD.items()),
    *((f"good {p}, then cut", p, body, "cut", "completed", "stop") for p, body in GOOD.items()),
    *((f"good {p}, then our own close", p, body, "closed", "completed", "stop") for p, body in GOOD.items()),
    *((f"good {p}, then the run ends", p, body, "aborted", "completed", "stop") for p, body in GOOD.items()),
    *((f"nothing in {p}", p, b"", "eof", "truncated", None) for p in GOOD),
    *((f"comments alone in {p}", p, b": ok\n\n" * 3, "eof", "truncated", None) for p in GOOD),
    *((f"cleanly cut {p}", p, body, "eof", "truncated", None) for p, body in SAID.items()),
    *((f"broken {p}", p, body, "cut", "cut", None) for p, body in SAID.items()),
    *((f"bad HTTP in {p}", p, body, "bad_http", "protocol_error", None) for p, body in SAID.items()),
    *(
        (f"bad JSON in {p}", p, body + b"data: {\n\n", "eof", "protocol_error", None)
        for p, body in SAID.items()
    ),
    *((f"an error in {p}", p, body + ERROR, "eof", "error_event", None) for p, body in SAID.items()),
    *(
        (f"an error in {p}, then a terminator", p, body + ERROR + DONE, "eof", "error_event", None)
        for p, body in SAID.items()
    ),
    *(
        (f"an error in {p}, then message_stop", p, body + ERROR + MESSAGE_STOP, "eof", "error_event", None)
        for p, body in SAID.items()
    ),
    *(
        (f"an error in {p}, then cut", p, body + ERROR, "cut", "error_event", None)
        for p, body in SAID.items()
    ),
    *((f"an error first in {p}", p, ERROR, "eof", "error_event", None) for p in SAID),
    *((f"{p} left by its user", p, body, "abandoned", "abandoned", None) for p, body in SAID.items()),
    *((f"{p} when the run ends", p, body, "aborted", "aborted", None) for p, body in SAID.items()),
    *((f"HTML as {p}", p, b"<html>\n\n<p>data: x</p>\n</html>", "eof", "truncated", None) for p in SAID),
    *((f"a JSON error as {p}", p, b'{"error":{"message":"x"}}', "eof", "truncated", None) for p in SAID),
    # Chat.
    ("no terminator", "chat", ROLE + HI + STOP, "eof", "unterminated", "stop"),
    (
        "a terminator without its blank line",
        "chat",
        ROLE + HI + STOP + b"data: [DONE]\n",
        "eof",
        "unterminated",
        "stop",
    ),
    ("no terminator, with usage", "chat", ROLE + HI + STOP + usage(), "eof", "unterminated", "stop"),
    ("no terminator, broken", "chat", ROLE + HI + STOP, "cut", "cut", None),
    (
        "one of two choices finished",
        "chat",
        ROLE + HI + chunk("Ho", index=1) + STOP,
        "eof",
        "truncated",
        None,
    ),
    (
        "one of two choices finished, then done",
        "chat",
        ROLE + HI + chunk("Ho", index=1) + STOP + DONE,
        "eof",
        "truncated",
        None,
    ),
    ("done without finish", "chat", ROLE + HI + DONE, "eof", "truncated", None),
    ("done alone", "chat", DONE, "eof", "empty", None),
    ("role and done", "chat", ROLE + DONE, "eof", "empty", None),
    ("finished without output", "chat", ROLE + STOP + DONE, "eof", "empty", "stop"),
    ("zero-width output alone", "chat", ROLE + chunk("\u200b") + STOP + DONE, "eof", "empty", "stop"),
    ("whitespace is output", "chat", ROLE + chunk(" ") + STOP + DONE, "eof", "completed", "stop"),
    (
        "reasoning is output",
        "chat",
        ROLE + chunk(reasoning="Hm") + chunk(finish="length") + DONE,
        "eof",
        "completed",
        "length",
    ),
    ("a refusal is output", "chat", ROLE + chunk(refusal="No") + STOP + DONE, "eof", "completed", "refusal"),
    ("filtered", "chat", ROLE + HI + chunk(finish="content_filter") + DONE, "eof", "completed", "filter"),
    (
        "a call",
        "chat",
        chunk(role="assistant", tool_calls=[{"index": 0, "function": {"name": "f"}}])
        + chunk(finish="tool_calls")
        + DONE,
        "eof",
        "completed",
        "tool",
    ),
    (
        "finish and text in one chunk",
        "chat",
        chunk("Hi", role="assistant", finish="stop") + DONE,
        "eof",
        "completed",
        "stop",
    ),
    ("an error after the finish", "chat", ROLE + HI + STOP + ERROR, "eof", "error_event", None),
    ("an error after the end", "chat", GOOD_CHAT + ERROR, "eof", "completed", "stop"),
    ("an error chunk", "chat", ROLE + HI + chunk("", finish="error"), "eof", "error_event", None),
    (
        "empty finish reasons",
        "chat",
        chunk("Hi", role="assistant", finish="") + chunk("", finish="stop") + DONE,
        "eof",
        "completed",
        "stop",
    ),
    ("an error as a field name", "chat", ROLE + HI + b'error: {"code":500}\n\n', "eof", "truncated", None),
    ("half an event", "chat", ROLE + HI + HI[:40], "eof", "truncated", None),
    ("half an event, broken", "chat", ROLE + HI + HI[:40], "cut", "cut", None),
    (
        "an event torn inside its JSON",
        "chat",
        ROLE + b'data: {"choices":\n: ka\n\ndata: []}\n\n',
        "eof",
        "protocol_error",
        None,
    ),
    ("empty data", "chat", ROLE + HI + b"data:\n\n" + STOP + DONE, "eof", "completed", "stop"),
    # Responses.
    (
        "incomplete",
        "responses",
        SAID["responses"]
        + resp(
            "incomplete", response=response("incomplete", incomplete_details={"reason": "max_output_tokens"})
        ),
        "eof",
        "completed",
        "length",
    ),
    (
        "failed",
        "responses",
        SAID["responses"] + resp("failed", response=response("failed", error={"code": "x"})),
        "eof",
        "error_event",
        None,
    ),
    ("completed without output", "responses", CREATED + COMPLETED, "eof", "empty", "stop"),
    ("completed with a terminator", "responses", GOOD_RESPONSES + DONE, "eof", "completed", "stop"),
    ("a terminator instead", "responses", SAID["responses"] + DONE, "eof", "truncated", None),
    # Messages.
    ("no message_stop", "messages", SAID["messages"] + message_delta(), "eof", "unterminated", "stop"),
    ("no stop reason", "messages", SAID["messages"] + message_delta(None), "eof", "truncated", None),
    ("message_stop alone", "messages", MESSAGE_STOP, "eof", "empty", "other"),
    ("no final delta", "messages", SAID["messages"] + MESSAGE_STOP, "eof", "completed", "other"),
    (
        "refusal",
        "messages",
        SAID["messages"] + message_delta("refusal") + MESSAGE_STOP,
        "eof",
        "completed",
        "refusal",
    ),
    (
        "pause",
        "messages",
        SAID["messages"] + message_delta("pause_turn") + MESSAGE_STOP,
        "eof",
        "completed",
        "pause",
    ),
    (
        "an error that closes its block first",
        "messages",
        SAID["messages"] + ERROR + MESSAGE_STOP,
        "eof",
        "error_event",
        None,
    ),
]


@pytest.mark.parametrize(
    ("protocol", "body", "reason", "outcome", "finish"), [pytest.param(*rest, id=n) for n, *rest in ENDS]
)
def test_end_of_a_stream(
    protocol: str, body: bytes, reason: EndReason, outcome: str, finish: str | None
) -> None:
    whole = Play(protocol).head().read(1.0, body).end(1.1, reason)

    assert (outcome, finish) == (whole.outcome, whole.finish)
    for size in (1, 7, 61):  # the outcome does not depend on how the bytes are cut
        play = Play(protocol).head()
        for at in range(0, len(body), size):
            play.read(1.0 + at / 1e6, body[at : at + size])
        cut = play.end(1.1, reason)
        assert (outcome, finish, whole.violations) == (cut.outcome, cut.finish, cut.violations), size
        assert whole.progress.count == cut.progress.count
        assert whole.error == cut.error


class TestBeforeTheStream:
    """What ends an attempt before any event."""

    def test_no_connection(self) -> None:
        record = Play(connect=False).end(0.0, "connect_error", "192.0.2.1:80: Connection refused")

        assert ("connect_error", None) == (record.outcome, record.status)
        assert record.error is not None
        assert ("transport", "connect_error", None, "192.0.2.1:80: Connection refused", True) == (
            record.error.layer, record.error.type, record.error.code, record.error.message,
            record.error.retryable,
        )  # fmt: skip

    @pytest.mark.parametrize("reason", ["no_response", "cut", "eof"])
    def test_closed_before_the_headers(self, reason: EndReason) -> None:
        record = Play().end(0.3, reason, "closed before any answer")

        assert "no_response" == record.outcome
        assert record.error is not None
        assert ("transport", "no_response", True) == (
            record.error.layer, record.error.type, record.error.retryable
        )  # fmt: skip

    def test_garbage_instead_of_http(self) -> None:
        record = Play().end(0.3, "bad_http", "Invalid HTTP version")

        assert record.error is not None
        assert ("protocol_error", "bad_http", "transport.bad_http") == (
            record.outcome, record.error.type, record.error.shape
        )  # fmt: skip

    def test_cut_between_headers_and_body(self) -> None:
        assert "cut" == Play().head().end(1.0, "cut").outcome

    @pytest.mark.parametrize("status", [301, 400, 401, 404, 429, 500, 503, 529])
    def test_another_status_is_an_http_error_whatever_its_type(self, status: int) -> None:
        body = b'{"error":{"message":"No","type":"t","code":"c"}}'
        play = Play().head(0.5, status, "text/event-stream", retry_after="7", x_request_id="req_9")
        record = play.read(0.6, body[:10]).read(0.7, body[10:]).end(0.8)

        assert ("http_error", status, "req_9") == (record.outcome, record.status, record.server_request_id)
        assert record.error is not None
        assert ("http", "t", "c", "No") == (
            record.error.layer, record.error.type, record.error.code, record.error.message
        )  # fmt: skip
        assert "7" == play.session.response_headers["retry-after"]
        assert (len(body), 2, 0) == (record.bytes, record.reads, record.events)
        assert (0.6, 0.7, None, None) == (
            record.first_byte_s, record.last_byte_s, record.first_event_s, record.first_token_s
        )  # fmt: skip

    @pytest.mark.parametrize("reason", ["cut", "aborted", "closed", "bad_http"])
    def test_an_http_error_stays_one_however_its_body_ends(self, reason: EndReason) -> None:
        record = Play().head(0.5, 502, "text/html").read(0.6, b"<title>Bad").end(0.8, reason)

        assert "http_error" == record.outcome
        assert {} == record.violations

    @pytest.mark.parametrize(
        ("kind", "is_stream"),
        [
            ("text/event-stream", True),
            ("text/event-stream;", True),
            ("text/event-stream; charset=windows-1252", True),
            ("Text/Event-Stream", True),
            (" text/event-stream ", True),
            ("x bogus", False),
            ("text/x-bogus", False),
            ("application/json", False),
            ("text/event-streams", False),
            ("application/x-ndjson", False),
            ("", False),
        ],
    )
    def test_only_an_event_stream_is_one(self, kind: str, is_stream: bool) -> None:
        record = Play(usage_requested=True).head(kind=kind).read(1.0, GOOD_CHAT).end(1.1)

        assert ("completed" if is_stream else "not_a_stream") == record.outcome
        assert ({} if is_stream else {"http.bad_content_type": 1}) == record.violations

    @pytest.mark.parametrize(
        ("body", "message"),
        [
            (b'{"error":{"message":"Model not loaded","type":"server_error"}}', "Model not loaded"),
            (b"<!DOCTYPE html><title>Welcome</title>", "Welcome"),
            (b"", ""),
        ],
    )
    def test_200_without_a_stream(self, body: bytes, message: str) -> None:
        record = Play().head(kind="application/json").read(1.0, body).end(1.1)

        assert record.error is not None
        assert ("not_a_stream", 200, "http", message) == (
            record.outcome, record.status, record.error.layer, record.error.message
        )  # fmt: skip

    def test_of_an_endless_error_body_64_kib_are_read(self) -> None:
        play = Play().head(0.5, 500, "text/plain")
        for step in range(64):
            assert 0.0 != play.session.deadline()
            play.session.feed(b"x" * 1024, 5001.0 + step / 1000)

        assert 0.0 == play.session.deadline()
        assert play.session.expire(5002.0)
        play.session.feed(b"x" * 1024, 5002.0)
        assert 64 * 1024 == len(play.session.body)
        assert "http_error" == play.end(2.0, "closed").outcome

    def test_a_body_of_an_error_that_does_not_end_is_closed_and_no_stall(self) -> None:
        record = Play().head(0.5, 500).read(0.6, b"half").wait(60.0).record()

        assert ("http_error", 5.5, None, []) == (
            record.outcome, record.end_s, record.stall, record.soft_stalls
        )  # fmt: skip


def optional() -> Profile:
    from dataclasses import replace

    return replace(load("generic"), terminator="optional")


@pytest.mark.parametrize(
    ("protocol", "body", "outcome", "violations"),
    [
        ("chat", ROLE + HI + STOP, "completed", {"chat.done_missing": 1}),
        ("messages", SAID["messages"] + message_delta(), "completed",
         {"msg.block_open_at_end": 1, "msg.stop_missing": 1}),
        ("chat", ROLE + STOP, "empty", {"chat.done_missing": 1}),
        ("chat", ROLE + HI, "truncated", {}),
        ("responses", CREATED, "truncated", {}),
    ],
)  # fmt: skip
def test_where_the_terminator_is_optional(protocol: str, body: bytes, outcome: str, violations: Any) -> None:
    record = Play(protocol, optional()).head().read(1.0, body).end(1.1)

    assert (outcome, violations) == (record.outcome, record.violations)


class TestSettled:
    """Once the stream has decided, nothing changes it."""

    def test_what_follows_in_the_same_read_or_later_is_a_violation(self) -> None:
        together = Play(usage_requested=True).head().read(1.0, GOOD_CHAT + HI + HI).end(1.1)
        later = Play(usage_requested=True).head().read(1.0, GOOD_CHAT).read(1.05, HI + HI).end(1.1)

        assert {"chat.after_done": 2} == together.violations == later.violations
        assert ("completed", 1, 7) == (later.outcome, later.progress.count, later.events)

    @pytest.mark.parametrize("reason", ["cut", "bad_http"])
    @pytest.mark.parametrize("body", [GOOD_CHAT, ROLE + DONE, ROLE + HI + DONE, ERROR])
    def test_a_connection_that_breaks_afterwards_is_a_violation(self, body: bytes, reason: EndReason) -> None:
        record = Play().head().read(1.0, body).end(1.1, reason)

        assert 1 == record.violations["http.cut_after_end"]

    def test_a_connection_that_stays_open_is_closed_and_a_soft_stall(self) -> None:
        play = Play(usage_requested=True).head().read(1.0, GOOD_CHAT).wait(100.0)
        record = play.record()

        assert ("completed", 6.0, 1.0, None) == (
            record.outcome, record.end_s, record.terminal_s, record.stall
        )  # fmt: skip
        assert [("post_terminal_hang", "after_terminal", 1.0, 6.0)] == play.soft

    def test_comments_do_not_keep_it_open(self) -> None:
        play = Play().head().read(1.0, GOOD_CHAT).every(1.0, b": ok\n\n", begin=2.0, end=20.0)

        assert [6.0] == play.fired
        assert ("completed", 5) == (play.record().outcome, play.record().keepalive.comments)

    def test_comments_after_the_end_are_counted_and_not_judged(self) -> None:
        play = Play(gateway="hopbase").head().read(1.0, GOOD_CHAT).read(4.0, b": late\n\n")
        record = play.end(4.5)

        found = record.keepalive
        assert (1, "late", 4.0, None) == (found.comments, found.text, found.first_s, found.gap_max_s)

    def test_an_error_frame_settles_it_too(self) -> None:
        play = Play().head().read(1.0, SAID["chat"] + ERROR).wait(100.0)

        assert ("error_event", 6.0) == (play.record().outcome, play.record().end_s)
        assert ["post_terminal_hang"] == [soft[0] for soft in play.soft]

    def test_bytes_that_are_no_protocol_close_it_at_once_and_nothing_more_is_taken(self) -> None:
        play = Play().head().read(1.0, SAID["chat"] + b"data: {\n\n" + HI + GOOD_CHAT)

        assert 0.0 == play.session.deadline()
        assert play.session.expire(5001.5)
        play.session.feed(GOOD_CHAT, T0 + 1.2)
        record = play.end(1.3, "closed")
        assert ("protocol_error", 1, 2) == (record.outcome, record.progress.count, record.reads)
        assert record.error is not None
        assert ("stream", "bad_data", "data is not a JSON object: {") == (
            record.error.layer, record.error.type, record.error.message
        )  # fmt: skip

    def test_an_event_over_the_limit_closes_it_at_once(self) -> None:
        play = Play().head().read(1.0, ROLE)
        for step in range(20):
            play.read(2.0 + step / 100, b"data: " + b"x" * 2**20 + b"\n")
        record = play.record()

        assert record.error is not None
        assert ("protocol_error", "event_too_large", 2.15, 17) == (
            record.outcome, record.error.type, record.end_s, record.reads
        )  # fmt: skip

    def test_the_end_comes_once(self) -> None:
        play = Play().head().read(1.0, SAID["chat"])
        first = play.end(1.5, "cut", "reset")
        play.session.end("eof", 9000.0)
        play.session.feed(GOOD_CHAT, 9001.0)

        assert first == play.record()
        assert "cut" == first.outcome
        assert None is play.session.deadline()
        assert play.session.expire(9999.0)


def test_an_event_that_was_lost_because_its_blank_line_is_missing_is_named() -> None:
    record = Play().head().read(1.0, ROLE + HI + STOP + b"data: [DONE]\n").end(1.1)

    assert {"chat.done_missing": 1, "sse.unfinished_event": 1} == record.violations


def test_a_comment_that_tears_an_event_is_named_and_one_that_does_not_is_not() -> None:
    torn = b'data: {"choices":\n: ka\n\ndata: []}\n\n'
    fine = b'data: {"choices":\n: ka\ndata: []}\n\n'

    assert {"sse.split_by_comment": 1} == Play().head().read(1.0, torn).end(1.1).violations
    assert {} == Play().head().read(1.0, fine + ROLE + HI).read(1.05, b"data: {\n\n").end(1.1).violations


def test_an_error_written_as_a_field_name_is_named() -> None:
    record = Play().head().read(1.0, ROLE + HI + b'error: {"code":500}\n\n').end(1.1)

    assert {"sse.error_field": 1} == record.violations


def test_this_file_knows_every_outcome() -> None:
    """`stalled` has a file of its own."""
    here = {outcome for *_, outcome, _ in ENDS}

    assert set(OUTCOMES) == here | {"stalled", "http_error", "not_a_stream", "connect_error", "no_response"}

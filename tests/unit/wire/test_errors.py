"""Every shape in which gateways say that something went wrong, inside a stream and as an HTTP answer."""

import json
from typing import Any

import pytest

from harness.wire.errors import from_http, retryable
from harness.wire.signals import ErrorFacts
from tests.unit.wire.frames import (
    CREATED,
    DONE,
    GOOD_CHAT,
    HI,
    MESSAGE_STOP,
    ROLE,
    START,
    data,
    msg,
    play,
    resp,
)

INTERRUPTED = "Response stream interrupted, please retry"
CUT = "La respuesta se ha cortado. Inténtalo de nuevo."


def error(**fields: Any) -> dict[str, Any]:
    return {"error": fields}


def openai(type_: str | None, code: Any, message: str | None = "x") -> dict[str, Any]:
    return error(message=message, type=type_, param=None, code=code)


# name, protocol, frame, what may follow without a violation, (type, code, message, retryable, shape)
IN_STREAM: list[tuple[str, str, bytes, bytes, tuple[str | None, str | None, str, bool, str]]] = [
    # The three protocols' own vendors.
    (
        "OpenAI chat",
        "chat",
        data(openai("server_error", None, "The server had an error")),
        b"",
        ("server_error", None, "The server had an error", True, "data.error"),
    ),
    (
        "OpenAI failed run",
        "responses",
        resp(
            "failed",
            response={
                "id": "r1",
                "status": "failed",
                "error": {"code": "rate_limit_exceeded", "message": "Slow down"},
            },
        ),
        b"",
        (None, "rate_limit_exceeded", "Slow down", True, "response.failed"),
    ),
    (
        "OpenAI flat error event",
        "responses",
        data(
            {"type": "error", "code": "server_error", "message": "Oops", "param": None, "sequence_number": 3},
            "error",
        ),
        b"",
        (None, "server_error", "Oops", True, "event.error_flat"),
    ),
    (
        "OpenAI nested error event",
        "responses",
        data(
            {
                "type": "error",
                "sequence_number": 3,
                "error": {
                    "type": "invalid_request_error",
                    "code": "context_length_exceeded",
                    "message": "Too long",
                    "param": "input",
                },
            },
            "error",
        ),
        b"",
        ("invalid_request_error", "context_length_exceeded", "Too long", False, "event.error"),
    ),
    (
        "Anthropic",
        "messages",
        data({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "error"),
        b"",
        ("overloaded_error", None, "Overloaded", True, "event.error"),
    ),
    (
        "Anthropic with a code",
        "messages",
        data(
            {
                "type": "error",
                "error": {"type": "api_error", "message": "x", "details": {"error_code": "e7"}},
                "request_id": "req_1",
            },
            "error",
        ),
        b"",
        ("api_error", "e7", "x", True, "event.error"),
    ),
    # The two gateways that this project knows best.
    (
        "HopBase chat",
        "chat",
        data(openai("server_error", "upstream_error", INTERRUPTED)),
        b"",
        ("server_error", "upstream_error", INTERRUPTED, True, "data.error"),
    ),
    (
        "HopBase synthetic failure",
        "responses",
        resp(
            "failed",
            sequence_number=0,
            response={
                "id": "resp_hopbase_error",
                "status": "failed",
                "usage": None,
                "error": {"code": "invalid_prompt", "message": "No"},
            },
        ),
        b"",
        (None, "invalid_prompt", "No", False, "response.failed"),
    ),
    (
        "HopBase data-only in Responses",
        "responses",
        data(openai("server_error", "upstream_error", INTERRUPTED)),
        b"",
        ("server_error", "upstream_error", INTERRUPTED, True, "data.error"),
    ),
    (
        "HopBase messages",
        "messages",
        data({"type": "error", "error": {"type": "api_error", "message": INTERRUPTED}}, "error"),
        b"",
        ("api_error", None, INTERRUPTED, True, "event.error"),
    ),
    (
        "Sabiuco",
        "chat",
        data(openai("api_error", "stream_interrupted", CUT)),
        b"",
        ("api_error", "stream_interrupted", CUT, True, "data.error"),
    ),
    # Routers and engines.
    (
        "OpenRouter",
        "chat",
        data(
            {
                "id": "c1",
                "provider": "p",
                "error": {"code": 502, "message": "Provider gone"},
                "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}],
            }
        ),
        b"",
        (None, "502", "Provider gone", True, "chunk.error"),
    ),
    (
        "OpenRouter with a word",
        "chat",
        data(
            {
                "error": {"code": "server_error", "message": "x"},
                "choices": [{"delta": {}, "finish_reason": "error"}],
            }
        ),
        b"",
        (None, "server_error", "x", True, "chunk.error"),
    ),
    (
        "OpenRouter inside the choice",
        "chat",
        data(
            {
                "id": "c1",
                "choices": [
                    {
                        "delta": {"content": ""},
                        "finish_reason": "error",
                        "error": {"code": 400, "message": "Bad"},
                    }
                ],
            }
        ),
        b"",
        (None, "400", "Bad", False, "chunk.choice_error"),
    ),
    (
        "a finish reason that is the whole error",
        "chat",
        data({"id": "c1", "choices": [{"delta": {}, "finish_reason": "error"}]}),
        DONE,
        ("error", None, "finish_reason is error", True, "chunk.finish_error"),
    ),
    (
        "LiteLLM chat",
        "chat",
        data(openai("RateLimitError", "429", "Slow")),
        DONE,
        ("RateLimitError", "429", "Slow", True, "data.error"),
    ),
    (
        "LiteLLM chat, a bad request",
        "chat",
        data(openai("BadRequestError", "400")),
        DONE,
        ("BadRequestError", "400", "x", False, "data.error"),
    ),
    (
        "LiteLLM chat, context",
        "chat",
        data(openai("ContextWindowExceededError", "500")),
        DONE,
        ("ContextWindowExceededError", "500", "x", False, "data.error"),
    ),
    (
        "LiteLLM Responses",
        "responses",
        data(
            {
                "type": "error",
                "code": "500",
                "message": "x",
                "param": None,
                "error": {"type": "server_error", "code": "500", "message": "x", "param": None},
            },
            "error",
        ),
        b"",
        ("server_error", "500", "x", True, "event.error"),
    ),
    (
        "vLLM chat",
        "chat",
        data(openai("InternalServerError", 500)),
        DONE,
        ("InternalServerError", "500", "x", True, "data.error"),
    ),
    (
        "vLLM chat, not found",
        "chat",
        data(openai("NotFoundError", 404)),
        DONE,
        ("NotFoundError", "404", "x", False, "data.error"),
    ),
    (
        "vLLM in Responses",
        "responses",
        data(openai("InternalServerError", 500)),
        b"",
        ("InternalServerError", "500", "x", True, "data.error"),
    ),
    (
        "SGLang chat",
        "chat",
        data(error(object="error", message="x", type="InternalServerError", param=None, code=500)),
        DONE,
        ("InternalServerError", "500", "x", True, "data.error"),
    ),
    (
        "SGLang messages",
        "messages",
        data({"type": "error", "error": {"type": "api_error", "message": "x"}}, "error"),
        MESSAGE_STOP,
        ("api_error", None, "x", True, "event.error"),
    ),
    (
        "llama.cpp chat",
        "chat",
        data(error(code=503, message="Loading model", type="unavailable_error")),
        b"",
        ("unavailable_error", "503", "Loading model", True, "data.error"),
    ),
    (
        "llama.cpp context",
        "chat",
        data(error(code=400, message="x", type="exceed_context_size_error")),
        b"",
        ("exceed_context_size_error", "400", "x", False, "data.error"),
    ),
    (
        "llama.cpp messages",
        "messages",
        data({"code": 500, "message": "x", "type": "server_error"}, "error"),
        b"",
        ("server_error", "500", "x", True, "event.error_flat"),
    ),
    (
        "FastChat",
        "chat",
        data({"object": "error", "message": "x", "code": 50001}),
        b"",
        (None, "50001", "x", True, "data.object_error"),
    ),
    (
        "FastChat with empty choices",
        "chat",
        data({"object": "error", "message": "x", "code": 400, "choices": []}),
        DONE,
        (None, "400", "x", False, "data.object_error"),
    ),
    (
        "FastChat's worker",
        "chat",
        data({"text": "NETWORK ERROR", "error_code": 50001}),
        DONE,
        (None, "50001", "NETWORK ERROR", True, "data.error_code"),
    ),
    (
        "an error object in Responses",
        "responses",
        data({"object": "error", "message": "x", "code": 500}),
        b"",
        (None, "500", "x", True, "data.object_error"),
    ),
    (
        "an error object in Messages",
        "messages",
        data({"object": "error", "message": "x", "code": 500}),
        b"",
        (None, "500", "x", True, "data.object_error"),
    ),
    # Without the name, without the envelope, without anything.
    (
        "data-only in Messages",
        "messages",
        data(openai("api_error", None)),
        b"",
        ("api_error", None, "x", True, "data.error"),
    ),
    (
        "Anthropic without a name",
        "messages",
        data({"type": "error", "error": {"type": "overloaded_error", "message": "x"}}),
        b"",
        ("overloaded_error", None, "x", True, "data.error"),
    ),
    (
        "Anthropic in chat",
        "chat",
        data({"type": "error", "error": {"type": "overloaded_error", "message": "x"}}, "error"),
        b"",
        ("overloaded_error", None, "x", True, "event.error"),
    ),
    (
        "flat without a name",
        "responses",
        data({"type": "error", "code": "server_error", "message": "x"}),
        b"",
        (None, "server_error", "x", True, "data.error_flat"),
    ),
    (
        "flat in chat",
        "chat",
        data({"type": "error", "code": "server_error", "message": "x"}),
        b"",
        (None, "server_error", "x", True, "data.error_flat"),
    ),
    (
        "flat in Messages",
        "messages",
        data({"type": "error", "message": "x"}),
        b"",
        (None, None, "x", True, "data.error_flat"),
    ),
    (
        "code and message alone",
        "chat",
        data({"code": "DataInspectionFailed", "message": "x", "request_id": "q"}),
        b"",
        (None, "DataInspectionFailed", "x", True, "data.error_flat"),
    ),
    (
        "a status and a message alone",
        "responses",
        data({"status": 503, "message": "x"}),
        b"",
        (None, None, "x", True, "data.error_flat"),
    ),
    (
        "failed in a completed event",
        "responses",
        resp("completed", response={"status": "failed", "error": {"code": "server_error", "message": "x"}}),
        b"",
        (None, "server_error", "x", True, "response.completed"),
    ),
    (
        "failed without words",
        "responses",
        resp("failed", response=None),
        b"",
        (None, None, "", True, "response.failed"),
    ),
    (
        "failed without an event name",
        "responses",
        data({"type": "response.failed", "response": {"error": {"code": "server_error", "message": "x"}}}),
        b"",
        (None, "server_error", "x", True, "response.failed"),
    ),
    (
        "text",
        "chat",
        data(error(message="x", type=None, code=None) | {"error": "upstream gone"}),
        b"",
        (None, None, "upstream gone", True, "data.error"),
    ),
    (
        "a word and a message",
        "chat",
        data({"error": "invalid_token", "message": "x"}),
        b"",
        (None, "invalid_token", "x", False, "data.error"),
    ),
    (
        "wrapped twice",
        "chat",
        data(error(error={"type": "server_error", "message": "x"})),
        b"",
        ("server_error", None, "x", True, "data.error"),
    ),
    (
        "an event of plain text",
        "messages",
        data("upstream connect error", "error"),
        b"",
        (None, None, "upstream connect error", True, "event.error_text"),
    ),
    (
        "an event of JSON text",
        "messages",
        data('"gone"', "error"),
        b"",
        (None, None, "gone", True, "event.error_text"),
    ),
    ("an event of nothing", "chat", data("", "error"), b"", (None, None, "", True, "event.error_empty")),
    (
        "an event of an empty object",
        "responses",
        data({}, "error"),
        b"",
        (None, None, "", True, "event.error_flat"),
    ),
    (
        "an event with an empty error",
        "messages",
        data({"type": "error", "error": {}}, "error"),
        b"",
        (None, None, "", True, "event.error"),
    ),
    (
        "a null message",
        "chat",
        data(openai("server_error", None, None)),
        b"",
        ("server_error", None, "", True, "data.error"),
    ),
    ("a number", "chat", data({"error": 500}), b"", (None, None, "", True, "data.error_flat")),
    # A human is needed.
    (
        "quota",
        "chat",
        data(openai("insufficient_quota", "insufficient_quota")),
        b"",
        ("insufficient_quota", "insufficient_quota", "x", False, "data.error"),
    ),
    (
        "billing",
        "messages",
        data({"type": "error", "error": {"type": "billing_error", "message": "x"}}, "error"),
        b"",
        ("billing_error", None, "x", False, "event.error"),
    ),
    (
        "content policy",
        "chat",
        data(openai("invalid_request_error", "content_policy_violation")),
        b"",
        ("invalid_request_error", "content_policy_violation", "x", False, "data.error"),
    ),
]


@pytest.mark.parametrize(
    ("protocol", "frame", "after", "expected"), [pytest.param(*rest, id=n) for n, *rest in IN_STREAM]
)
def test_in_stream(
    protocol: str, frame: bytes, after: bytes, expected: tuple[str | None, str | None, str, bool, str]
) -> None:
    before = {"chat": ROLE + HI, "responses": CREATED, "messages": START}[protocol]
    channels, grammar = play(protocol, before + frame + after)
    type_, code, message, again, shape = expected

    assert ErrorFacts("stream", type_, code, message, again, shape) == grammar.facts.error
    assert "error" == channels[-2 if after else -1]
    assert not [rule for rule in grammar.facts.violations if "after" in rule]


@pytest.mark.parametrize(("protocol", "before"), [("chat", b""), ("responses", b""), ("messages", b"")])
def test_an_error_first_is_legal(protocol: str, before: bytes) -> None:
    _, grammar = play(
        protocol, data({"type": "error", "error": {"type": "api_error", "message": "x"}}, "error")
    )

    assert {} == grammar.facts.violations
    assert grammar.facts.error is not None


@pytest.mark.parametrize(
    ("protocol", "after", "rule"),
    [
        ("chat", HI, "chat.after_done"),
        ("responses", resp("completed", response={}), "resp.after_terminal"),
        ("messages", msg("ping"), "msg.after_stop"),
    ],
)
def test_what_follows_an_error_is_a_violation(protocol: str, after: bytes, rule: str) -> None:
    _, grammar = play(protocol, data(openai("server_error", None)) + after)

    assert {rule: 1} == grammar.facts.violations


@pytest.mark.parametrize(
    "frame",
    [
        data({"type": "progress", "status": "running", "message": "Searching"}),
        data({"code": 0, "message": "ok"}),
        data({"code": 200, "message": "ok"}),
        data({"message": "hello"}),
        data({"code": "E1", "message": "x"}, "notice"),  # a name of its own: unknown, not broken
    ],
)
def test_a_message_alone_is_no_error(frame: bytes) -> None:
    for protocol in ("chat", "responses", "messages"):
        _, grammar = play(protocol, frame)
        assert grammar.facts.error is None, protocol


@pytest.mark.parametrize(
    "end",
    [
        DONE,
        MESSAGE_STOP,
        data({}, "message_stop"),
        data({"type": "message_stop"}),
    ],
)
@pytest.mark.parametrize("protocol", ["chat", "responses", "messages"])
def test_the_ends_that_gateways_add_after_an_error_are_none(protocol: str, end: bytes) -> None:
    channels, grammar = play(protocol, data(openai("server_error", None)) + end)

    assert (["error", "terminal"], {}) == (channels, grammar.facts.violations)


def test_an_error_after_the_end_changes_nothing() -> None:
    _, grammar = play("chat", GOOD_CHAT + data(openai("server_error", None)), usage_requested=True)

    assert grammar.facts.error is None


def test_a_huge_message_is_not_kept() -> None:
    _, grammar = play("chat", data(openai("server_error", None, "x" * 1_000_000)))
    assert grammar.facts.error is not None

    assert 4096 == len(grammar.facts.error.message)


ANTHROPIC = {"type": "error", "error": {"type": "rate_limit_error", "message": "x"}, "request_id": "req_1"}

# name, status, content type, body, (type, code, message, retryable, shape)
HTTP: list[tuple[str, int, str, Any, tuple[str | None, str | None, str, bool, str]]] = [
    (
        "OpenAI",
        401,
        "application/json",
        openai("invalid_request_error", "invalid_api_key", "Bad key"),
        ("invalid_request_error", "invalid_api_key", "Bad key", False, "http.openai"),
    ),
    (
        "OpenAI rate limit",
        429,
        "application/json",
        openai("tokens", "rate_limit_exceeded"),
        ("tokens", "rate_limit_exceeded", "x", True, "http.openai"),
    ),
    (
        "OpenAI quota",
        429,
        "application/json",
        openai("insufficient_quota", "insufficient_quota"),
        ("insufficient_quota", "insufficient_quota", "x", False, "http.openai"),
    ),
    (
        "Anthropic",
        429,
        "application/json",
        ANTHROPIC,
        ("rate_limit_error", None, "x", True, "http.anthropic"),
    ),
    (
        "Anthropic billing",
        402,
        "application/json",
        {"type": "error", "error": {"type": "billing_error", "message": "x"}},
        ("billing_error", None, "x", False, "http.anthropic"),
    ),
    (
        "OpenRouter",
        402,
        "application/json",
        error(code=402, message="Insufficient credits", metadata={}),
        (None, "402", "Insufficient credits", False, "http.openrouter"),
    ),
    ("LiteLLM", 500, "application/json", openai("None", "500"), ("None", "500", "x", True, "http.openai")),
    (
        "vLLM",
        400,
        "application/json",
        openai("BadRequestError", 400),
        ("BadRequestError", "400", "x", False, "http.openai"),
    ),
    (
        "SGLang",
        400,
        "application/json",
        {"object": "error", "message": "x", "type": "BadRequestError", "param": None, "code": 400},
        ("BadRequestError", "400", "x", False, "http.sglang"),
    ),
    (
        "llama.cpp",
        503,
        "application/json",
        error(code=503, message="Loading model", type="unavailable_error"),
        ("unavailable_error", "503", "Loading model", True, "http.openai"),
    ),
    (
        "HopBase",
        502,
        "application/json",
        error(message="x", type="server_error", code="upstream_error"),
        ("server_error", "upstream_error", "x", True, "http.openai"),
    ),
    (
        "FastAPI",
        404,
        "application/json",
        {"detail": "Not Found"},
        (None, None, "Not Found", False, "http.flat"),
    ),
    (
        "FastAPI validation",
        422,
        "application/json",
        {"detail": [{"loc": ["body"], "msg": "field required"}, {"msg": "y"}]},
        (None, None, "field required; y", False, "http.flat"),
    ),
    (
        "a word",
        401,
        "application/json",
        {"error": "Unauthorized"},
        (None, None, "Unauthorized", False, "http.flat"),
    ),
    (
        "OAuth",
        401,
        "application/json",
        {"error": "invalid_token", "error_description": "Expired"},
        (None, "invalid_token", "Expired", False, "http.flat"),
    ),
    (
        "nginx",
        502,
        "text/html",
        "<html><head><title>502 Bad\n Gateway</title></head></html>",
        (None, None, "502 Bad Gateway", True, "http.html"),
    ),
    (
        "Cloudflare",
        524,
        "text/html; charset=UTF-8",
        "<!DOCTYPE html><TITLE>524: A timeout occurred</TITLE>",
        (None, None, "524: A timeout occurred", True, "http.html"),
    ),
    (
        "HTML without a title",
        503,
        "text/html",
        "  <h1>Sorry</h1>",
        (None, None, "an HTML page", True, "http.html"),
    ),
    (
        "HTML that says it is JSON",
        504,
        "application/json",
        "<html></html>",
        (None, None, "an HTML page", True, "http.html"),
    ),
    ("nothing", 503, "", "", (None, None, "", True, "http.empty")),
    ("blanks", 500, "text/plain", " \n", (None, None, "", True, "http.empty")),
    ("text", 429, "text/plain", "Too many requests\n", (None, None, "Too many requests", True, "http.text")),
    (
        "cut JSON",
        500,
        "application/json",
        '{"error":{"mess',
        (None, None, '{"error":{"mess', True, "http.text"),
    ),
    ("JSON of another kind", 500, "application/json", [1], (None, None, "[1]", True, "http.json")),
    (
        "an event stream",
        429,
        "text/event-stream",
        'data: {"error":{"type":"rate_limit_error","message":"x"}}\n\n',
        ("rate_limit_error", None, "x", True, "http.openai"),
    ),
    (
        "an event stream without its blank line",
        400,
        "application/json",
        'event: error\ndata: {"detail":"x"}',
        (None, None, "x", False, "http.flat"),
    ),
    ("a redirect", 307, "text/html", "", (None, None, "", False, "http.empty")),
    # An HTTP status rules over the words, as in the SDKs; money rules over the status.
    (
        "a bad request that is the server's fault",
        500,
        "application/json",
        openai("invalid_request_error", None),
        ("invalid_request_error", None, "x", True, "http.openai"),
    ),
    (
        "a conflict",
        409,
        "application/json",
        openai("conflict_error", None),
        ("conflict_error", None, "x", True, "http.openai"),
    ),
    (
        "a spend limit",
        429,
        "application/json",
        openai("rate_limit_error", "spend_limit_reached"),
        ("rate_limit_error", "spend_limit_reached", "x", False, "http.openai"),
    ),
    # 2xx that is no stream: worth another try only if it says so.
    (
        "200 with an error",
        200,
        "application/json",
        openai("server_error", "upstream_error"),
        ("server_error", "upstream_error", "x", True, "http.openai"),
    ),
    ("200 with a page", 200, "text/html", "<title>Login</title>", (None, None, "Login", False, "http.html")),
    (
        "200 with an answer",
        200,
        "application/json",
        {"choices": []},
        (None, None, '{"choices": []}', False, "http.json"),
    ),
]


@pytest.mark.parametrize(
    ("status", "kind", "body", "expected"), [pytest.param(*rest, id=n) for n, *rest in HTTP]
)
def test_http(
    status: int, kind: str, body: Any, expected: tuple[str | None, str | None, str, bool, str]
) -> None:
    raw = body if isinstance(body, str) else json.dumps(body)
    type_, code, message, again, shape = expected

    assert ErrorFacts("http", type_, code, message, again, shape) == from_http(status, raw.encode(), kind)


@pytest.mark.parametrize(
    ("status", "again"),
    [
        (400, False),
        (401, False),
        (402, False),
        (403, False),
        (404, False),
        (408, True),
        (409, True),
        (413, False),
        (422, False),
        (425, False),
        (429, True),
        (499, False),
        (500, True),
        (502, True),
        (503, True),
        (504, True),
        (520, True),
        (524, True),
        (529, True),
        (301, False),
    ],
)
def test_retryable_status(status: int, again: bool) -> None:
    assert again == retryable(None, None, status)


@pytest.mark.parametrize(
    ("word", "again"),
    [
        *(
            (word, True)
            for word in (
                "server_error",
                "api_error",
                "overloaded_error",
                "timeout_error",
                "rate_limit_error",
                "rate_limit_exceeded",
                "stream_interrupted",
                "upstream_error",
                "vector_store_timeout",
                "500",
                "529",
                "429",
                "load_balancer_error",
                "something_new",
            )
        ),
        *(
            (word, False)
            for word in (
                "invalid_request_error",
                "invalid_prompt",
                "content_policy_violation",
                "context_length_exceeded",
                "authentication_error",
                "permission_error",
                "not_found_error",
                "request_too_large",
                "billing_error",
                "insufficient_quota",
                "bio_policy",
                "invalid_image",
                "image_file_not_found",
                "400",
                "404",
                "billing_hard_limit_reached",
                "ContentPolicyViolationError",
            )
        ),
    ],
)
def test_retryable_in_a_stream(word: str, again: bool) -> None:
    """Either place may hold the word, and a refusal in one outweighs hope in the other."""
    assert again == retryable(word, None)
    assert again == retryable(None, word)
    assert again == retryable("server_error", word)

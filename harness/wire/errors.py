"""Error objects as gateways really send them: which shape, which type, and whether a retry can help.

Used for frames inside a stream and for the bodies of HTTP errors alike: they are the same objects.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from harness.wire.signals import ErrorFacts
from harness.wire.sse import Event, SseParser

# Anthropic's and OpenAI's documented types, and what relays add to them. A human or another request
# is needed for these; everything else that breaks a stream is worth sending the whole request again.
_NOT_RETRYABLE: Final = frozenset({
    "context_length_exceeded", "exceed_context_size_error",
    "authentication_error", "permission_error", "permission_denied", "not_found_error", "not_supported_error",
    "request_too_large", "model_not_found", "unauthorized", "forbidden", "not_found",
    "badrequesterror", "authenticationerror", "notfounderror", "permissiondeniederror", "invalidrequesterror",
    "unprocessableentityerror", "contextwindowexceedederror", "contentpolicyviolationerror",
    "bio_policy", "misalignment_policy_violation", "data_residency_mismatch",
    "empty_image_file", "failed_to_download_image",
})  # fmt: skip
_NOT_RETRYABLE_PREFIXES: Final = ("invalid_", "unsupported_", "content_policy", "content_filter", "image_")

# Whatever the status says, only a human with a credit card can help.
_MONEY: Final = ("quota", "billing", "spend", "credit", "payment", "insufficient_")

_RETRYABLE: Final = frozenset({
    "server_error", "api_error", "overloaded_error", "timeout_error", "rate_limit_error",
    "rate_limit_exceeded", "stream_interrupted", "upstream_error", "unavailable_error", "internal_error",
    "internalservererror", "service_unavailable",
    "engine_overloaded", "upstream_rate_limit", "conflict_error",
})  # fmt: skip

# More of a message is kept by nobody; a server may send megabytes of it.
KEPT_CHARS: Final = 4096

# What the official SDKs send again by themselves: 408, 409, 429 and every 5xx.
_RETRYABLE_STATUS: Final = frozenset({408, 409, 429})


def retryable_status(status: int) -> bool:
    """Return whether a request that got this HTTP *status* may be sent again."""
    return status in _RETRYABLE_STATUS or status >= 500


def retryable(type_: str | None, code: str | None, status: int | None = None) -> bool:
    """Return whether sending the whole request again can help.

    A quota or billing error needs a human, whatever its status says. Else an HTTP error (*status* is
    given) is judged by its status, as the official SDKs do, and one inside a stream by code and
    type. A stream's error that says nothing of itself broke the stream, and a broken stream is worth
    another try; a 2xx that is no stream says nothing of the kind.
    """
    words = [word.lower() for word in (code, type_) if word is not None]
    if any(money in word for word in words for money in _MONEY):
        return False
    if status is not None and not 200 <= status < 300:
        return retryable_status(status)
    if any(word in _NOT_RETRYABLE or word.startswith(_NOT_RETRYABLE_PREFIXES) for word in words):
        return False
    for word in words:
        if word in _RETRYABLE:
            return True
        if len(word) == 3 and word.isascii() and word.isdigit() and word >= "400":
            return retryable_status(int(word))
    return status is None


def from_object(
    body: dict[str, Any], shape: str, layer: Literal["http", "stream"] = "stream", status: int | None = None
) -> ErrorFacts:
    """Return the facts of an error frame or body, nested (``error: {…}``), flat or a bare string."""
    inner = body.get("error")
    if isinstance(inner, dict):
        nested = inner.get("error")  # some relays wrap the wrapper
        source: dict[str, Any] = nested if isinstance(nested, dict) else inner
    elif isinstance(inner, str) and inner:
        said = body.get("message") or body.get("error_description") or body.get("detail")
        source = {"code": inner, **body, "message": said} if said else {**body, "message": inner}
    else:
        source = body
    type_ = _kind(source.get("type"))
    code = _text(source.get("code")) or _text(source.get("error_code")) or _text(source.get("status_code"))
    if code is None and isinstance(details := source.get("details"), dict):
        code = _text(details.get("error_code"))
    message = _text(source.get("message")) or _detail(source.get("detail")) or _text(body.get("message"))
    if message is None:
        message = _text(source.get("text")) or ""
    if type_ is None and source is not body:
        type_ = _kind(body.get("type"))
    return ErrorFacts(layer, type_, code, message, retryable(type_, code, status), shape)


def from_http(status: int, body: bytes, content_type: str) -> ErrorFacts:
    """Return the facts of an HTTP error (or a 2xx that is no stream) with this *body*, cut or whole."""
    parsed = _json(body)
    if parsed is None:
        parsed = _first_event(body, content_type)
    if isinstance(parsed, dict) and (parsed.get("error") or "message" in parsed or "detail" in parsed):
        return from_object(parsed, _http_shape(parsed), "http", status)
    text = body.decode("utf-8", "replace").strip()
    shape = "http.json" if parsed is not None else "http.text"
    if not text:
        shape = "http.empty"
    elif text[0] == "<" or "html" in content_type.lower():
        shape, text = "http.html", _title(text)
    return ErrorFacts("http", None, None, text, retryable(None, None, status), shape)


def _json(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _first_event(body: bytes, content_type: str) -> Any:
    """Return the object in the first event: some gateways word even a 4xx as an event stream."""
    if "event-stream" not in content_type.lower() and not body.startswith((b"data:", b"event:")):
        return None
    for item in SseParser().feed(body + b"\n\n"):
        if isinstance(item, Event):
            return _json(item.raw)
    return None


def _http_shape(body: dict[str, Any]) -> str:
    error = body.get("error")
    if body.get("type") == "error" and isinstance(error, dict):
        return "http.anthropic"
    if isinstance(error, dict):
        numbered = isinstance(error.get("code"), int) and "type" not in error
        return "http.openrouter" if numbered else "http.openai"
    if body.get("object") == "error":
        return "http.sglang"
    return "http.flat"


def _title(html: str) -> str:
    """Return the title of an HTML page, the only words of it worth a line."""
    low = html.lower()
    start = low.find("<title>")
    end = low.find("</title>", start)
    if start >= 0 and end > start:
        return " ".join(html[start + 7 : end].split())
    return "an HTML page"


def _text(value: Any) -> str | None:
    """Return *value* as the text of a type, code or message; containers and nothing give None."""
    if value is None or value == "" or isinstance(value, bool | dict | list):
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)[:KEPT_CHARS]


def _kind(value: Any) -> str | None:
    """Return *value* as a kind of error; the name of the frame itself is none."""
    kind = _text(value)
    return None if kind == "error" or (kind or "").startswith("response.") else kind


def _detail(value: Any) -> str | None:
    """Return the text of FastAPI's ``detail``, which is a list of objects when validation failed."""
    if isinstance(value, list):
        said = [_text(entry.get("msg")) for entry in value if isinstance(entry, dict)]
        return "; ".join(text for text in said if text) or None
    return _text(value)

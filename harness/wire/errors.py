"""Error objects as gateways really send them: which shape, which type, and whether a retry can help.

Used for frames inside a stream and for the bodies of HTTP errors alike: they are the same objects.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from harness.wire.signals import ErrorFacts

# Anthropic's and OpenAI's documented types, and what relays add to them. A human or another request
# is needed for these; everything else that breaks a stream is worth sending the whole request again.
_NOT_RETRYABLE: Final = frozenset({
    "invalid_request_error", "invalid_prompt", "context_length_exceeded", "exceed_context_size_error",
    "authentication_error", "permission_error", "permission_denied", "not_found_error", "not_supported_error",
    "request_too_large", "billing_error", "insufficient_quota", "invalid_api_key", "model_not_found",
    "badrequesterror", "authenticationerror", "notfounderror", "permissiondeniederror",
    "unprocessableentityerror", "contextwindowexceedederror", "contentpolicyviolationerror",
    "bio_policy", "misalignment_policy_violation", "data_residency_mismatch", "content_filter",
})  # fmt: skip
_NOT_RETRYABLE_PREFIXES: Final = ("content_policy", "invalid_", "billing_", "unsupported_")

_RETRYABLE: Final = frozenset({
    "server_error", "api_error", "overloaded_error", "timeout_error", "rate_limit_error",
    "rate_limit_exceeded", "stream_interrupted", "upstream_error", "unavailable_error", "internal_error",
    "internalservererror", "service_unavailable",
    "engine_overloaded", "upstream_rate_limit", "conflict_error",
})  # fmt: skip

# What the official SDKs send again by themselves: 408, 409, 429 and every 5xx.
_RETRYABLE_STATUS: Final = frozenset({408, 409, 429})


def retryable_status(status: int) -> bool:
    """Return whether a request that got this HTTP *status* may be sent again."""
    return status in _RETRYABLE_STATUS or status >= 500


def retryable(type_: str | None, code: str | None, status: int | None = None) -> bool:
    """Return whether sending the whole request again can help, by type and code, then by status.

    A quota or billing 429 needs a human, whatever its status says. An error that says nothing of
    itself broke the stream, and a broken stream is worth another try.
    """
    for word in (code, type_):
        if word is None:
            continue
        low = word.lower()
        if low in _NOT_RETRYABLE or low.startswith(_NOT_RETRYABLE_PREFIXES):
            return False
    if status is not None and not 200 <= status < 300:
        return retryable_status(status)
    for word in (code, type_):
        if word is None:
            continue
        if word.lower() in _RETRYABLE:
            return True
        if word.isdigit() and 400 <= int(word) < 600:
            return retryable_status(int(word))
    return True


def from_object(
    body: dict[str, Any], shape: str, layer: Literal["http", "stream"] = "stream", status: int | None = None
) -> ErrorFacts:
    """Return the facts of an error frame or body, nested (``error: {…}``), flat or a bare string."""
    inner = body.get("error")
    if isinstance(inner, dict):
        nested = inner.get("error")  # some relays wrap the wrapper
        source: dict[str, Any] = nested if isinstance(nested, dict) else inner
    elif isinstance(inner, str) and inner:
        source = {**body, "message": body.get("message") or inner}
    else:
        source = body
    type_ = _text(source.get("type"))
    if type_ == "error":  # the frame's own name, not a kind of error
        type_ = None
    code = _text(source.get("code"))
    if code is None and isinstance(details := source.get("details"), dict):
        code = _text(details.get("error_code"))
    message = _text(source.get("message")) or _text(source.get("detail")) or _text(body.get("message")) or ""
    if type_ is None and source is not body:
        outer = _text(body.get("type"))
        type_ = None if outer in (None, "error") or outer.startswith("response.") else outer
    return ErrorFacts(layer, type_, code, message, retryable(type_, code, status), shape)


def from_http(status: int, body: bytes, content_type: str) -> ErrorFacts:
    """Return the facts of an HTTP error (or a 2xx that is no stream) with this *body*, cut or whole."""
    try:
        parsed = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        parsed = None
    if isinstance(parsed, dict) and (parsed.get("error") or "message" in parsed or "detail" in parsed):
        return from_object(parsed, _http_shape(parsed), "http", status)
    text = body.decode("utf-8", "replace").strip()
    if not text:
        return ErrorFacts("http", None, str(status), "", retryable(None, None, status), "http.empty")
    if text[:1] == "<" or "html" in content_type:
        return ErrorFacts("http", None, str(status), _title(text), retryable(None, None, status), "http.html")
    shape = "http.json" if parsed is not None else "http.text"
    return ErrorFacts("http", None, str(status), text, retryable(None, None, status), shape)


def _http_shape(body: dict[str, Any]) -> str:
    error = body.get("error")
    if body.get("type") == "error" and isinstance(error, dict):
        return "http.anthropic"
    if isinstance(error, dict):
        return (
            "http.openrouter" if isinstance(error.get("code"), int) and "type" not in error else "http.openai"
        )
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
    return str(value)

"""Errors as each vendor words them: bodies of HTTP errors, and the official in-stream error."""

from __future__ import annotations

from typing import Any

import msgspec

from harness.sim.dialogues import ErrorFacts

_OPENAI_TYPES = {429: "rate_limit_error", 401: "authentication_error", 403: "permission_error"}
_OPENAI_CODES = {401: "invalid_api_key", 404: "not_found", 429: "rate_limit_exceeded"}
_ANTHROPIC_TYPES = {
    401: "authentication_error", 402: "billing_error", 403: "permission_error", 404: "not_found_error",
    413: "request_too_large", 429: "rate_limit_error", 504: "timeout_error", 529: "overloaded_error",
}  # fmt: skip
_VLLM_TYPES = {400: "BadRequestError", 401: "Unauthorized", 404: "NotFoundError", 429: "TooManyRequestsError"}
_LLAMACPP_TYPES = {
    400: "invalid_request_error", 401: "authentication_error", 403: "permission_error",
    404: "not_found_error", 501: "not_supported_error", 503: "unavailable_error",
}  # fmt: skip
_MESSAGES = {
    400: "The request body is not valid.", 401: "Incorrect API key provided.", 402: "Payment required.",
    403: "This key may not use that model.", 404: "Not found.", 405: "Method not allowed.",
    408: "The request took too long to arrive.", 409: "Conflict.", 413: "The request is too large.",
    422: "The request cannot be processed.", 429: "Rate limit reached. Please try again later.",
    502: "All upstream routes failed.", 503: "The service is temporarily unavailable.",
    504: "The upstream took too long.", 529: "Overloaded",
}  # fmt: skip


def official_error(protocol: str) -> ErrorFacts:
    """Return what the protocol's own vendor sends when generation breaks off."""
    if protocol == "messages":
        return ErrorFacts("overloaded_error", "Overloaded")
    return ErrorFacts(
        "server_error", "The server had an error while processing your request.", "server_error"
    )


def http_error(
    gateway: str, protocol: str, status: int, request_id: str,
    message: str = "", code: str | None = None, kind: str | None = None,
) -> bytes:  # fmt: skip
    """Return the body of an HTTP error as *gateway* words it; *code* and *kind* (its type) override."""
    text = message or _MESSAGES.get(status, "The server had an error while processing your request.")
    return msgspec.json.encode(_error_body(gateway, protocol, status, request_id, text, code, kind))


def _error_body(
    gateway: str, protocol: str, status: int, request_id: str, text: str, code: str | None, kind: str | None
) -> dict[str, Any]:
    if protocol == "messages" and gateway not in ("openrouter", "litellm", "vllm", "llamacpp"):
        default = "api_error" if status >= 500 else "invalid_request_error"
        error = {"type": kind or _ANTHROPIC_TYPES.get(status, default), "message": text}
        return {"type": "error", "error": error, "request_id": request_id}
    if gateway == "openrouter":
        return {"error": {"code": status, "message": text}}
    if gateway == "vllm":
        default = _VLLM_TYPES.get(status, "InternalServerError")
        return {"error": {"message": text, "type": kind or default, "param": None, "code": status}}
    if gateway == "llamacpp":
        default = _LLAMACPP_TYPES.get(status, "server_error")
        return {"error": {"code": status, "message": text, "type": kind or default}}
    default = _OPENAI_TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    body: dict[str, Any] = {"message": text, "type": kind or default}
    if gateway == "hopbase":
        return {"error": body | {"code": code or _OPENAI_CODES.get(status, _hopbase_code(status))}}
    if gateway == "litellm":
        return {"error": body | {"param": None, "code": str(status)}}
    return {"error": body | {"param": None, "code": code or _OPENAI_CODES.get(status)}}


def _hopbase_code(status: int) -> str:
    return "upstream_error" if status >= 500 else "invalid_request"

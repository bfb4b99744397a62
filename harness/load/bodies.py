"""The request body of each protocol, out of one conversation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.gateways import Endpoint
from harness.load.prompts import Prompt


def build_body(
    protocol: str,
    endpoint: Endpoint,
    model: str,
    prompt: Prompt,
    *,
    max_tokens: int,
    nonce: str | None = None,
    effort: str = "",
    extra: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the JSON body of a streaming request.

    *nonce* goes in front of the first message that is not shared, where it keeps a prefix cache from
    answering for the model. *effort* is how much a reasoning model shall think. *extra* is merged in
    last: its objects into ours, its other values over ours.
    """
    messages = [dict(message) for message in prompt.messages]
    if nonce is not None:
        _prepend(messages[prompt.shared if prompt.shared < len(messages) else 0], f"[{nonce}] ")
    body = _BUILDERS[protocol](endpoint, model, messages, max_tokens)
    if effort:
        body |= _EFFORTS[protocol](effort)
    return merge(body, extra) if extra else body


def _chat(endpoint: Endpoint, model: str, messages: list[dict[str, Any]], max_tokens: int) -> dict[str, Any]:
    body: dict[str, Any] = {"model": model, "messages": messages, "stream": True}
    if endpoint.ask_usage:
        body["stream_options"] = {"include_usage": True}
    if max_tokens:
        body[endpoint.max_tokens_field] = max_tokens
    return body


def _responses(
    endpoint: Endpoint, model: str, messages: list[dict[str, Any]], max_tokens: int
) -> dict[str, Any]:
    body: dict[str, Any] = {"model": model, "input": messages, "stream": True}
    if max_tokens:
        body["max_output_tokens"] = max_tokens
    return body


def _messages(
    endpoint: Endpoint, model: str, messages: list[dict[str, Any]], max_tokens: int
) -> dict[str, Any]:
    system = [m["content"] for m in messages if m["role"] in ("system", "developer")]
    body: dict[str, Any] = {
        "model": model,
        "messages": [m for m in messages if m["role"] not in ("system", "developer")],
        "max_tokens": max_tokens or REQUIRED_MAX_TOKENS,
        "stream": True,
    }
    if system:
        body["system"] = "\n\n".join(text for text in system if isinstance(text, str))
    return body


# The Messages protocol has no request without a limit.
REQUIRED_MAX_TOKENS = 4096

_BUILDERS = {"chat": _chat, "responses": _responses, "messages": _messages}


_EFFORTS: dict[str, Callable[[str], dict[str, Any]]] = {
    "chat": lambda effort: {"reasoning_effort": effort},
    "responses": lambda effort: {"reasoning": {"effort": effort}},
    "messages": lambda effort: {"output_config": {"effort": effort}},
}


def _prepend(message: dict[str, Any], text: str) -> None:
    content = message["content"]
    if isinstance(content, str):
        message["content"] = text + content
    else:
        message["content"] = [{"type": "text", "text": text}, *content]


def merge(body: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """Return *body* with *extra* in it: objects are merged, all other values replaced."""
    merged = dict(body)
    for key, value in extra.items():
        ours = merged.get(key)
        merged[key] = merge(ours, value) if isinstance(ours, dict) and isinstance(value, dict) else value
    return merged

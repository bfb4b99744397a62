"""What a request asks for, read from its headers and body."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from harness.gateways import DurationError, parse_duration
from harness.sim.pace import Pace

_MARKER = re.compile(rb"\[\[req:([^\[\]\s]+)-(\d+)\]\]")
_PREFLIGHT = "preflight-"
_BY_NAME = "sim-"


class BadRequestError(ValueError):
    """The request cannot be answered; the message is one line for the client."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request for an answer."""

    protocol: str
    model: str
    stream: bool
    include_usage: bool
    pace: Pace
    capped: bool
    """The client's own token limit is below what the answer would have had."""
    prompt_tokens: int
    api_key: str
    fault: str
    """The fault or sequence that the request names, "" if it leaves the choice to the mix."""
    request: str | None
    attempt: int
    preflight: bool
    who: tuple[str, str]
    """The same for all attempts of a request, as far as the client lets it be known."""
    first: bool
    """The client says that this is its first attempt."""
    dialect: str
    """The dialect that the request names, "" for the server's own."""


def read_request(
    protocol: str, path_fault: str, headers: Mapping[str, str], body: bytes, pace: Pace, default_model: str
) -> Asked:
    """Return what is asked. *headers* have lower-case names. Raises `BadRequestError`."""
    try:
        data = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BadRequestError("The body is not valid JSON.") from None
    if not isinstance(data, dict):
        raise BadRequestError("The body is not a JSON object.")
    model = data.get("model", default_model)
    if not isinstance(model, str):
        raise BadRequestError("model: expected text.")
    model = model.replace("\x00", "")
    options = data.get("stream_options")
    api_key = _api_key(headers)
    request, attempt = _identity(headers.get("x-client-request-id"), body)
    wanted, capped = _pace(headers, data, pace)
    return Asked(
        protocol=protocol,
        model=model,
        stream=data.get("stream") is True,
        include_usage=isinstance(options, dict) and options.get("include_usage") is True,
        pace=wanted,
        capped=capped,
        prompt_tokens=max(1, _words(data)),
        api_key=api_key,
        fault=headers.get("x-harness-fault", "") or path_fault or _named(model) or _named(api_key),
        request=request,
        attempt=attempt,
        preflight=headers.get("x-client-request-id", "").startswith(_PREFLIGHT),
        who=(api_key, request if request is not None else f"{hash(body):x}"),
        first=headers.get("x-stainless-retry-count") == "0",
        dialect=headers.get("x-harness-dialect", ""),
    )


def _named(text: str) -> str:
    return text[len(_BY_NAME) :] if text.startswith(_BY_NAME) else ""


def _api_key(headers: Mapping[str, str]) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")


def _identity(client_id: str | None, body: bytes) -> tuple[str | None, int]:
    """Return request and attempt: from the client's header, else from a marker in the prompt."""
    if client_id:
        # The attempt stands after the last dash; request names may hold dashes themselves.
        request, _, attempt = client_id.rpartition("-")
        return (request, int(attempt)) if request and attempt.isdecimal() else (client_id, 1)
    found = _MARKER.search(body)
    return (found[1].decode("utf-8", "replace"), int(found[2])) if found else (None, 1)


def _pace(headers: Mapping[str, str], data: Mapping[str, Any], pace: Pace) -> tuple[Pace, bool]:
    """Return the pace for this request, and whether the client's token limit cuts the answer."""
    first_token_s = _duration(headers, "x-harness-first-token", pace.first_token_s)
    gap_s = _duration(headers, "x-harness-gap", pace.gap_s)
    tokens = pace.tokens
    if text := headers.get("x-harness-tokens"):
        if not text.isdecimal() or int(text) < 1:
            raise BadRequestError(f"X-Harness-Tokens: expected a number of 1 or more, got {text!r}.")
        tokens = int(text)
    limits = [data.get(field) for field in ("max_completion_tokens", "max_output_tokens", "max_tokens")]
    limit = next((n for n in limits if isinstance(n, int) and not isinstance(n, bool) and n >= 1), None)
    if limit is None or limit >= tokens:
        return Pace(first_token_s, gap_s, tokens, pace.jitter), False
    return Pace(first_token_s, gap_s, limit, pace.jitter), True


def _duration(headers: Mapping[str, str], name: str, default: float) -> float:
    text = headers.get(name)
    if text is None:
        return default
    try:
        return parse_duration(text)
    except DurationError as error:
        raise BadRequestError(f"{name}: {error}.") from None


def _words(value: Any) -> int:
    """Count the words in all texts of a prompt: the simulated tokenizer."""
    words, todo = 0, [value.get(key) for key in ("messages", "input", "system", "instructions")]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            words += len(item.split())
        elif isinstance(item, list):
            todo.extend(item)
        elif isinstance(item, dict):
            todo.extend((item.get("content"), item.get("text")))
    return words

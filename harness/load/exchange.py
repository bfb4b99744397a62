"""One HTTP exchange, prepared and performed: what users, the preflight and the probe have in common."""

from __future__ import annotations

import secrets
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any

import msgspec

from harness.gateways import Endpoint
from harness.load.bodies import build_body
from harness.load.prompts import Prompt
from harness.load.settings import Settings
from harness.stream import Session
from harness.transport import HarnessTransport
from harness.wire import grammar_for


@dataclass(frozen=True, slots=True)
class Call:
    """A request that is ready to be written, as often as its attempts need it."""

    protocol: str
    model: str
    request: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    asks_usage: bool

    def headers_of(self, attempt: int) -> list[tuple[str, str]]:
        """Return the headers of attempt number *attempt* (from 1)."""
        return [*self.headers, ("X-Client-Request-Id", f"{self.request}-{attempt}")]


def new_request_id(prefix: str = "") -> str:
    """Return a name for a request that no other request of any node has."""
    return prefix + secrets.token_hex(8)


def prepare(
    settings: Settings,
    protocol: str,
    prompt: Prompt,
    *,
    request: str,
    key: str | None,
    nonce: str | None,
    model: str | None = None,
    max_tokens: int | None = None,
    extra_body: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
) -> Call:
    """Return the call that asks *prompt* over *protocol*. Raises `ValueError` without such an endpoint."""
    url = settings.profile.url_for(settings.base_url, protocol)
    endpoint = settings.profile.endpoints[protocol]
    model = model or settings.models[protocol]
    body = build_body(
        protocol,
        endpoint,
        model,
        prompt,
        max_tokens=settings.max_tokens if max_tokens is None else max_tokens,
        nonce=nonce,
        extra={**settings.extra_body, **(extra_body or {})},
    )
    return Call(
        protocol=protocol,
        model=model,
        request=request,
        url=url,
        headers=tuple(request_headers(settings, endpoint, key, headers or {})),
        body=msgspec.json.encode(body),
        asks_usage=bool(body.get("stream_options", {}).get("include_usage")),
    )


def request_headers(
    settings: Settings, endpoint: Endpoint, key: str | None, extra: dict[str, str]
) -> list[tuple[str, str]]:
    """Return the headers of a request to *endpoint*; later ones replace earlier ones of the same name."""
    chosen: dict[str, tuple[str, str]] = {}
    pairs = [
        ("Content-Type", "application/json"),
        ("Accept", "text/event-stream"),
        ("User-Agent", "harness"),
        *settings.profile.headers.items(),
        *endpoint.headers.items(),
    ]
    if key is not None and endpoint.auth != "none":
        pairs.append(("Authorization", f"Bearer {key}") if endpoint.auth == "bearer" else ("x-api-key", key))
    for name, value in [*pairs, *settings.headers, *extra.items()]:
        chosen[name.lower()] = (name, value)
    return list(chosen.values())


def open_session(
    settings: Settings,
    call: Call,
    *,
    on_gaps: Callable[[array[float]], None] | None = None,
    on_bytes: Callable[[bytes], None] | None = None,
    kind: type[Session] = Session,
) -> Session:
    """Return the session of one attempt of *call*, opened now."""
    return kind(
        grammar_for(call.protocol, usage_requested=call.asks_usage),
        settings.profile.limits_for(call.model),
        monotonic(),
        keepalive=settings.profile.keepalive,
        terminator=settings.profile.terminator,
        on_stall=settings.on_stall,
        on_gaps=on_gaps,
        on_bytes=on_bytes,
    )


def perform(transport: HarnessTransport, call: Call, attempt: int, session: Session) -> None:
    """Write the request and read its answer until *session* has ended. Blocks this greenlet only.

    Whatever interrupts the greenlet ends the session as aborted first, so that no attempt is lost.
    """
    try:
        transport.stream("POST", call.url, call.headers_of(attempt), call.body, session)
    finally:
        session.end("aborted", monotonic())

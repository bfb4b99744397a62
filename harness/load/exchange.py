"""One HTTP exchange, prepared and performed: what users, the preflight and the probe have in common."""

from __future__ import annotations

import secrets
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any

import msgspec

from harness.gateways import Endpoint
from harness.load.bodies import build_body, merge
from harness.load.prompts import Prompt
from harness.load.settings import Settings, UsageError
from harness.stream import Session
from harness.transport import HarnessTransport
from harness.transport.sink import StreamSink
from harness.wire import grammar_for

REQUEST_ID = "X-Client-Request-Id"


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
        return [*self.headers, (REQUEST_ID, f"{self.request}-{attempt}")]


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
    """Return the call that asks *prompt* over *protocol*.

    Raises `UsageError` if the gateway has no such endpoint, no model is known, or *prompt*, a header or
    the body cannot be sent.
    """
    try:
        url = settings.profile.url_for(settings.base_url, protocol)
    except ValueError as error:
        raise UsageError(str(error)) from None
    endpoint = settings.profile.endpoints[protocol]
    model = model or settings.models.get(protocol)
    if model is None:
        raise UsageError(f"no model for {protocol}: pass --model {protocol}=NAME, or model= to stream()")
    body = build_body(
        protocol,
        endpoint,
        model,
        prompt,
        max_tokens=settings.max_tokens if max_tokens is None else max_tokens,
        nonce=nonce,
        effort=settings.reasoning_effort,
        extra=merge(settings.extra_body, extra_body or {}),
    )
    options = body.get("stream_options")
    return Call(
        protocol=protocol,
        model=model,
        request=request,
        url=url,
        headers=tuple(request_headers(settings, endpoint, key, headers or {})),
        body=_encoded(body),
        asks_usage=isinstance(options, dict) and bool(options.get("include_usage")),
    )


def _encoded(body: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(body)
    except (TypeError, ValueError) as error:
        raise UsageError(f"the request body cannot be written as JSON: {error}") from None


def request_headers(
    settings: Settings, endpoint: Endpoint, key: str | None, extra: dict[str, str]
) -> list[tuple[str, str]]:
    """Return the headers of a request to *endpoint*; later ones replace earlier ones of the same name.

    In this order: ours, the profile's, its endpoint's, the key, ``--header``, *extra*. A request id of
    one's own is left out: ours joins records with the server's logs.
    """
    pairs = [
        ("Content-Type", "application/json"),
        ("Accept", "text/event-stream"),
        ("User-Agent", "harness"),
    ]
    for name, value in (*settings.profile.headers.items(), *endpoint.headers.items()):
        if value.startswith("env:") and value not in settings.secrets:
            raise UsageError(f"header {name}: the environment variable {value[4:]} is not set")
        pairs.append((name, settings.secrets.get(value, value)))
    if key is not None and endpoint.auth != "none":
        pairs.append(("Authorization", f"Bearer {key}") if endpoint.auth == "bearer" else ("x-api-key", key))
    chosen = {name.lower(): (name, value) for name, value in (*pairs, *settings.headers, *extra.items())}
    chosen.pop(REQUEST_ID.lower(), None)
    return list(chosen.values())


def open_session(
    settings: Settings,
    call: Call,
    *,
    on_gaps: Callable[[array[float]], None] | None = None,
    on_bytes: Callable[[bytes], None] | None = None,
    on_headers: Callable[[Session], None] | None = None,
    on_event: Callable[[], None] | None = None,
) -> Session:
    """Return the session of one attempt of *call*, opened now.

    *on_headers* hears of the answer's headers when they come, *on_event* of its first event.
    """
    session = (_Watched if on_event is None else _WatchedToTheFirstEvent)(
        grammar_for(call.protocol, usage_requested=call.asks_usage),
        settings.profile.limits_for(call.model),
        monotonic(),
        keepalive=settings.profile.keepalive,
        terminator=settings.profile.terminator,
        on_stall=settings.on_stall,
        on_gaps=on_gaps,
        on_bytes=on_bytes,
    )
    session.on_headers, session.on_event = on_headers, on_event
    session.request = call.request
    return session


class _Watched(Session):
    """A session that tells of its headers."""

    __slots__ = ("on_event", "on_headers")

    on_headers: Callable[[Session], None] | None
    on_event: Callable[[], None] | None

    def headers(self, status: int, headers: Mapping[str, str], t: float) -> None:
        super().headers(status, headers, t)
        if self.on_headers is not None:
            self.on_headers(self)


class _WatchedToTheFirstEvent(_Watched):
    """And of its first event; a class of its own, because it costs a call per read."""

    __slots__ = ()

    def feed(self, data: bytes, t: float, earliest: float | None = None) -> None:
        super().feed(data, t, earliest)
        if self.events and self.on_event is not None:
            on_event, self.on_event = self.on_event, None
            on_event()


def perform(
    transport: HarnessTransport, call: Call, attempt: int, session: Session, sink: StreamSink | None = None
) -> None:
    """Write the request and read its answer until *session* has ended. Blocks this greenlet only.

    The transport pushes into *sink*, if there is one that stands before the session.

    Whatever interrupts the greenlet ends the session as aborted first, so that no attempt is lost.
    """
    try:
        transport.stream("POST", call.url, call.headers_of(attempt), call.body, sink or session)
    finally:
        session.end("aborted", monotonic())

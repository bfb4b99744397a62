"""One request per protocol and model before any load: a wrong key, path or model is one clear line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import gevent

from harness.gateways.durations import format_duration
from harness.load.exchange import new_request_id, open_session, perform, prepare
from harness.load.hiding import hide, hide_in_error, secrets_in
from harness.load.prompts import Prompt
from harness.load.run import SIMULATOR_HEADER
from harness.load.settings import Settings, UsageError
from harness.stream import Session
from harness.stream.assemble import MESSAGE_CHARS, escape
from harness.transport import HarnessTransport

# The preflight asks whether anything answers at all; how fast is the run's question.
PATIENCE_S = 30.0
# Who waits longer without a word thinks that the program hangs.
QUIET_S = 3.0

# 408, 409 and 429 say "not now", not "not so": the run may find out more.
_NOT_NOW = frozenset({408, 409, 429})


def preflight(settings: Settings, tell: Callable[[str], object]) -> Settings:
    """Try every protocol once. Returns the settings, now knowing whether the gateway is a simulated one.

    *tell* takes lines for the user: that it waits, and what was wrong but does not stop the run.

    Raises `UsageError` if the run would only fail: no connection, no answer, no stream, or a status
    that says the request is wrong.
    """
    patient = replace(
        settings, profile=settings.profile.with_limit("total", PATIENCE_S), on_stall="close", max_tokens=16
    )
    for protocol in settings.protocols:
        session = _try(patient, protocol, tell)
        if SIMULATOR_HEADER in session.response_headers:
            settings = replace(settings, simulated=True)
    return settings


def _try(settings: Settings, protocol: str, tell: Callable[[str], object]) -> Session:
    transport = HarnessTransport(settings.transport)
    key = settings.keys[0] if settings.keys else None
    call = prepare(
        settings, protocol, Prompt.of("Say hello."), request=new_request_id("preflight-"), key=key, nonce=None
    )

    def leave() -> None:
        gevent.spawn(transport.abort)

    # It leaves at the first event: nobody needs the answer, and tokens cost money.
    session = open_session(settings, call, on_event=leave)
    name = f"preflight {protocol} ({call.model})"
    patience = format_duration(PATIENCE_S)
    waiting = gevent.spawn_later(QUIET_S, tell, f"{name}: no event yet, waiting up to {patience}")
    try:
        perform(transport, call, 1, session)
    finally:
        waiting.kill(block=False)
        transport.close()
    secrets = secrets_in(call)
    hide_in_error(session, secrets)
    complaint = _complaint(settings, session)
    if complaint:
        complaint = hide(complaint, secrets)
        raise UsageError(f"preflight {protocol} ({call.model}): {complaint}; --no-preflight skips this check")
    if doubt := _doubt(session):
        tell(f"{name}: {hide(doubt, secrets)}; the load starts all the same")
    return session


def _complaint(settings: Settings, session: Session) -> str | None:
    """Return what is wrong and how to mend it; None if the run may start."""
    words = escape(session.error.message, MESSAGE_CHARS) if session.error is not None else ""
    gateway = settings.profile.name
    match session.outcome:
        case "connect_error":
            return f"{words or 'no connection'}: check --host"
        case "stalled" if session.status is None and session.t0 is None:
            return f"no connection to {settings.base_url} within the limit (connect): check --host"
        case "no_response":
            return f"the connection was closed without an answer ({words}): check --host and the port"
        case "protocol_error" if session.status is None:
            return f"the answer is not HTTP ({words}): check --host and the port"
        case "not_a_stream":
            kind = escape(session.response_headers.get("content-type", "no content type"), MESSAGE_CHARS)
            return f"HTTP {session.status}, but {kind} instead of an event stream: check --host and --gateway"
        case "http_error":
            return _status_complaint(session, words, gateway)
    return None


def _doubt(session: Session) -> str | None:
    """Return what went wrong without proving that the run would fail; None if all is well."""
    words = escape(session.error.message, MESSAGE_CHARS) if session.error is not None else ""
    match session.outcome:
        case "abandoned" | "completed":
            return None
        case "stalled":
            stall = session.stalls.hard
            return f"no event within {format_duration(PATIENCE_S if stall is None else stall.limit_s)}"
        case "http_error":
            return f"HTTP {session.status}{f' ({words})' if words else ''}"
        case outcome:
            return f"{outcome}{f' ({words})' if words else ''}"


def _status_complaint(session: Session, words: str, gateway: str) -> str | None:
    status = session.status or 0
    if (
        300 <= status < 400
    ):  # no stream will ever come: redirects are not followed, a key must not follow them
        place = session.response_headers.get("location", "another place")
        return f"HTTP {status}, redirected to {escape(place, MESSAGE_CHARS)!r}: pass that address as --host"
    if not 400 <= status < 500 or status in _NOT_NOW:
        return None
    return f"HTTP {status}{f' ({words})' if words else ''}: {_mend(status, gateway)}"


def _mend(status: int, gateway: str) -> str:
    if status in (401, 403):
        return "check the key (--api-key-env VAR)"
    if status in (404, 405):
        return f"check --host, --model and whether --gateway {gateway} has the right paths"
    return "check --model, --extra-body and --header"

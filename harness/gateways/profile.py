"""What a gateway promises and which limits its streams are held to: data, no behaviour of the wire.

All durations are seconds. A profile is immutable; `Profile.scaled` and `Limits.with_override`
return changed copies, so that a run's limits are one value that can be written into its results.
"""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

Protocol = Literal["chat", "responses", "messages"]
PROTOCOLS: tuple[Protocol, ...] = ("chat", "responses", "messages")

# What identifies an endpoint whatever stands before it.
ENDPOINT_TAILS: dict[str, str] = {
    "chat": "/chat/completions",
    "responses": "/responses",
    "messages": "/messages",
}


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit: `warn_s` records a soft stall, `fail_s` a hard one; None means never."""

    warn_s: float | None = None
    fail_s: float | None = None

    def scaled(self, factor: float) -> Limit:
        """Return the limit with both durations multiplied by *factor*."""
        return Limit(
            None if self.warn_s is None else self.warn_s * factor,
            None if self.fail_s is None else self.fail_s * factor,
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """How long each part of a stream may take. Counted from: see `harness.stream.stall`."""

    connect: Limit = Limit()
    headers: Limit = Limit()
    first_byte: Limit = Limit()
    first_token: Limit = Limit()
    progress: Limit = Limit()
    silence: Limit = Limit()
    close: Limit = Limit()
    total: Limit = Limit()

    def scaled(self, factor: float) -> Limits:
        """Return all limits times *factor*, but `connect`: a TCP handshake does not speed up."""
        changed = {f.name: getattr(self, f.name).scaled(factor) for f in fields(self) if f.name != "connect"}
        return replace(self, **changed)

    def with_override(self, name: str, seconds: float) -> Limits:
        """Return a copy in which ``NAME`` (the hard limit) or ``NAME.warn`` is *seconds*.

        Raises `KeyError` if *name* is no limit.
        """
        limit, _, level = name.partition(".")
        if limit not in LIMIT_NAMES or level not in ("", "warn", "fail"):
            raise KeyError(name)
        now: Limit = getattr(self, limit)
        changed = replace(now, warn_s=seconds) if level == "warn" else replace(now, fail_s=seconds)
        return replace(self, **{limit: changed})

    def as_dict(self) -> dict[str, dict[str, float | None]]:
        """Return the limits as plain data for `run.json`."""
        return {f.name: {"warn_s": getattr(self, f.name).warn_s, "fail_s": getattr(self, f.name).fail_s}
                for f in fields(self)}  # fmt: skip


LIMIT_NAMES: tuple[str, ...] = tuple(f.name for f in fields(Limits))


@dataclass(frozen=True, slots=True)
class Keepalive:
    """The promised sign of life.

    `kind` is ``periodic`` (one each `interval_s` whatever else flows) or ``idle`` (one after
    `interval_s` without a byte). `late_s` and `violation_s` bound the same interval.
    """

    text: str
    interval_s: float
    kind: Literal["periodic", "idle"]
    late_s: float
    violation_s: float

    def scaled(self, factor: float) -> Keepalive:
        """Return the promise with its durations multiplied by *factor*."""
        return replace(
            self,
            interval_s=self.interval_s * factor,
            late_s=self.late_s * factor,
            violation_s=self.violation_s * factor,
        )


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One protocol of a gateway: where it is and how a request to it looks."""

    path: str
    model: str | None = None
    auth: Literal["bearer", "x-api-key", "none"] = "bearer"
    headers: dict[str, str] = field(default_factory=dict)
    max_tokens_field: str = "max_tokens"
    ask_usage: bool = True

    @property
    def prefix(self) -> str:
        """The part of the path before the protocol's own tail: ``/v1``, ``/api/v1``."""
        return _prefix(self.path)


@dataclass(frozen=True, slots=True)
class ErrorShape:
    """What the gateway sends inside a stream when generation breaks off."""

    shape: Literal["data", "response.failed", "event"]
    type: str
    message: str
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """A gateway: its endpoints, promises and limits."""

    name: str
    title: str
    endpoints: dict[str, Endpoint]
    default_protocols: tuple[str, ...]
    limits: Limits
    key_env: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    keepalive: Keepalive | None = None
    terminator: Literal["required", "optional"] = "required"
    errors: dict[str, ErrorShape] = field(default_factory=dict)
    billing: tuple[str, ...] = ()
    model_limits: dict[str, Limits] = field(default_factory=dict)
    promises: tuple[tuple[str, str], ...] = ()  # what its documents say: name of the check -> id there
    time_scale: float = 1.0

    def scaled(self, factor: float) -> Profile:
        """Return the profile with every duration but `connect` multiplied by *factor*."""
        return replace(
            self,
            limits=self.limits.scaled(factor),
            keepalive=None if self.keepalive is None else self.keepalive.scaled(factor),
            model_limits={pattern: limits.scaled(factor) for pattern, limits in self.model_limits.items()},
            time_scale=self.time_scale * factor,
        )

    def limits_for(self, model: str | None) -> Limits:
        """Return the limits of *model*: those of the first matching pattern, else the profile's own."""
        for pattern, limits in self.model_limits.items():
            if model is not None and fnmatch.fnmatchcase(model, pattern):
                return limits
        return self.limits

    def with_limit(self, name: str, seconds: float) -> Profile:
        """Return a copy with one limit overridden for every model (see `Limits.with_override`)."""
        return replace(
            self,
            limits=self.limits.with_override(name, seconds),
            model_limits={p: limits.with_override(name, seconds) for p, limits in self.model_limits.items()},
        )

    def url_for(self, base: str, protocol: str) -> str:
        """Return the URL of *protocol* under *base*.

        A base that ends in (part of) the version prefix does not get it twice, and a whole
        endpoint URL is used as it is. Raises `ValueError` if the profile has no such endpoint
        or *base* is the endpoint of another protocol.
        """
        endpoint = self.endpoints.get(protocol)
        if endpoint is None:
            has = ", ".join(self.endpoints)
            raise ValueError(f"gateway {self.name} has no endpoint for {protocol} (it has: {has})")
        return _url_under(base, protocol, endpoint.path)


@lru_cache(maxsize=64)
def _url_under(base: str, protocol: str, endpoint_path: str) -> str:
    """Return the URL of an endpoint under *base*; a run asks for the same few for ever."""
    parts = urlsplit(base)
    base_path = parts.path.rstrip("/")
    path, _, query = endpoint_path.partition("?")
    prefix = _prefix(path)
    own_tail = path[len(prefix) :]
    if base_path.endswith(own_tail):
        return base
    for other, tail in ENDPOINT_TAILS.items():
        if other != protocol and base_path.endswith(tail):
            raise ValueError(
                f"{base} is the endpoint of {other}, not of {protocol}: give the base URL instead"
            )
    joined = _join(base_path, prefix) + own_tail
    query = "&".join(q for q in (parts.query, query) if q)
    return urlunsplit((parts.scheme, parts.netloc, joined, query, ""))


def _prefix(endpoint_path: str) -> str:
    path = endpoint_path.partition("?")[0]
    for tail in ENDPOINT_TAILS.values():
        if path.endswith(tail):
            return path[: -len(tail)]
    return path.rpartition("/")[0]


def _join(base_path: str, prefix: str) -> str:
    """Append *prefix* to *base_path* without repeating what the base already ends in."""
    have = [s for s in base_path.split("/") if s]
    want = [s for s in prefix.split("/") if s]
    if have and want and have[-1] == want[-1]:
        return base_path
    for shared in range(min(len(have), len(want)), 0, -1):
        if have[-shared:] == want[:shared]:
            want = want[shared:]
            break
    return "/".join(["", *have, *want])

"""Reads a gateway's TOML file into a `Profile`; a wrong file is one line: file, key, what was expected."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from harness.gateways.durations import DurationError, parse_duration
from harness.gateways.profile import (
    LIMIT_NAMES,
    PROTOCOLS,
    Endpoint,
    ErrorShape,
    Keepalive,
    Limit,
    Limits,
    Profile,
)

T = TypeVar("T")


class GatewayFileError(ValueError):
    """A profile cannot be used; the message is one line for the user."""


def names() -> list[str]:
    """Return the names of the profiles that ship with the harness, `generic` last."""
    found = [p.name.removesuffix(".toml") for p in resources.files("harness.gateways").iterdir()
             if p.name.endswith(".toml")]  # fmt: skip
    return sorted(found, key=lambda name: (name == "generic", name))


def load(name_or_path: str) -> Profile:
    """Return the profile called *name_or_path*, or the one in that file.

    Raises `GatewayFileError` if there is none or the file is wrong.
    """
    if name_or_path in names():
        text = resources.files("harness.gateways").joinpath(f"{name_or_path}.toml").read_text("utf-8")
        return parse(text, f"{name_or_path}.toml")
    path = Path(name_or_path)
    if not name_or_path or (path.suffix != ".toml" and not path.exists()):
        near = difflib.get_close_matches(name_or_path, names(), n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise GatewayFileError(
            f"unknown gateway {name_or_path!r}{hint}: use one of {', '.join(names())}, or a .toml file's path"
        )
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise GatewayFileError(f"cannot read gateway file {name_or_path}: {reason}") from None
    return parse(text, name_or_path)


def parse(text: str, source: str) -> Profile:
    """Return the profile in the TOML *text*; *source* names it in errors."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise GatewayFileError(f"{source}: not valid TOML: {error}") from None
    return _profile(_Table(source, "", data))


class _Table:
    """A TOML table that knows its place, so that every complaint names file and key."""

    def __init__(self, source: str, place: str, data: Mapping[str, Any]) -> None:
        self.source, self.place, self.data = source, place, data
        self._known: set[str] = set()

    def fail(self, key: str, expected: str) -> GatewayFileError:
        place = f"{self.place}.{key}" if self.place and key else self.place or key
        return GatewayFileError(f"{self.source}: {place}: expected {expected}")

    def take(
        self, key: str, kind: type[T], expected: str, default: T | None = None, required: bool = False
    ) -> T:
        self._known.add(key)
        if key not in self.data:
            if required:
                raise self.fail(key, f"{expected}, but it is missing")
            return cast(T, default)
        value = self.data[key]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.fail(key, f"{expected}, got {value!r}")
        return value

    def text(self, key: str, default: str | None = None, required: bool = False) -> str | None:
        return self.take(key, str, "text", default, required)

    def choice(self, key: str, choices: tuple[str, ...], default: str | None = None) -> str:
        value = self.take(key, str, f"one of {', '.join(choices)}", default, required=default is None)
        if value not in choices:
            raise self.fail(key, f"one of {', '.join(choices)}, got {value!r}")
        return value

    def duration(self, key: str, required: bool = False) -> float | None:
        value = self.take(key, str, 'a duration with a unit, as in "10s"', None, required)
        if value is None:
            return None
        try:
            seconds = parse_duration(value)
        except DurationError:
            raise self.fail(key, f'a duration with a unit, as in "10s", got {value!r}') from None
        if seconds <= 0:
            raise self.fail(key, f"a duration above zero, got {value!r}")
        return seconds

    def table(self, key: str) -> _Table:
        data = self.take(key, dict, "a table", {})
        return _Table(self.source, f"{self.place}.{key}" if self.place else key, data)

    def strings(self, key: str) -> dict[str, str]:
        table = self.table(key)
        for name, value in table.data.items():
            if not isinstance(value, str):
                raise table.fail(name, f"text, got {value!r}")
        return dict(table.data)

    def string_list(self, key: str, default: list[str]) -> tuple[str, ...]:
        values = self.take(key, list, "a list of text", default)
        if not all(isinstance(v, str) for v in values):
            raise self.fail(key, f"a list of text, got {values!r}")
        return tuple(values)

    def tables(self, allowed: tuple[str, ...] | None, expected: str) -> list[tuple[str, _Table]]:
        """Return all entries as tables; names outside *allowed* are refused."""
        found = []
        for key in self.data:
            if allowed is not None and key not in allowed:
                raise self.fail(key, f"{expected}{_near(key, allowed)}")
            found.append((key, self.table(key)))
        return found

    def done(self) -> None:
        """Refuse keys that nobody asked for: a misspelt limit must not be silently ignored."""
        for key in self.data:
            if key not in self._known:
                raise self.fail(key, f"one of {', '.join(sorted(self._known))}{_near(key, self._known)}")


def _near(word: str, words: Any) -> str:
    near = difflib.get_close_matches(word, list(words), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _profile(top: _Table) -> Profile:
    name = top.text("name", required=True) or ""
    if not name or any(c.isspace() or c in '":,{}' for c in name):
        raise top.fail("name", f"a short name without spaces, got {name!r}")
    endpoints = {
        protocol: _endpoint(table)
        for protocol, table in top.table("endpoints").tables(PROTOCOLS, f"one of {', '.join(PROTOCOLS)}")
    }
    if not endpoints:
        raise top.fail(
            "endpoints", "at least one of [endpoints.chat], [endpoints.responses], [endpoints.messages]"
        )
    defaults = top.string_list("default_protocols", list(endpoints))
    for protocol in defaults:
        if protocol not in endpoints:
            have = ", ".join(endpoints)
            raise top.fail("default_protocols", f"protocols that have an endpoint ({have}), got {protocol!r}")
    limits = _limits(top.table("limits"), Limits())
    models = {}
    for pattern, table in top.table("models").tables(None, ""):
        models[pattern] = _limits(table.table("limits"), limits)
        table.done()
    keepalive = top.table("keepalive")
    auth = top.table("auth")
    key_env = auth.text("key_env")
    auth.done()
    profile = Profile(
        name=name,
        title=top.text("title", name) or name,
        endpoints=endpoints,
        default_protocols=defaults or tuple(endpoints),
        limits=limits,
        key_env=key_env,
        headers=top.strings("headers"),
        keepalive=_keepalive(keepalive) if "keepalive" in top.data else None,
        terminator=cast(
            Literal["required", "optional"], top.choice("terminator", ("required", "optional"), "required")
        ),
        errors={
            p: _error(t) for p, t in top.table("errors").tables(PROTOCOLS, f"one of {', '.join(PROTOCOLS)}")
        },
        billing=top.string_list("billing", []),
        model_limits=models,
        promises=tuple(top.strings("promises").items()),
    )
    top.done()
    return profile


def _endpoint(table: _Table) -> Endpoint:
    path = table.text("path", required=True) or ""
    if not path.startswith("/"):
        raise table.fail("path", f"a path that begins with /, got {path!r}")
    endpoint = Endpoint(
        path=path,
        model=table.text("model"),
        auth=cast(
            Literal["bearer", "x-api-key", "none"],
            table.choice("auth", ("bearer", "x-api-key", "none"), "bearer"),
        ),
        headers=table.strings("headers"),
        max_tokens_field=table.text("max_tokens_field", "max_tokens") or "max_tokens",
        ask_usage=table.take("ask_usage", bool, "true or false", True),
    )
    table.done()
    return endpoint


def _limits(table: _Table, base: Limits) -> Limits:
    changed: dict[str, Limit] = {}
    for name, entry in table.tables(LIMIT_NAMES, f"one of {', '.join(LIMIT_NAMES)}"):
        default: Limit = getattr(base, name)
        warn_s, fail_s = entry.duration("warn"), entry.duration("fail")
        entry.done()
        limit = Limit(
            default.warn_s if warn_s is None else warn_s,
            default.fail_s if fail_s is None else fail_s,
        )
        if limit.warn_s is not None and limit.fail_s is not None and limit.warn_s > limit.fail_s:
            raise entry.fail("warn", f"a duration up to fail ({limit.fail_s:g}s), got {limit.warn_s:g}s")
        changed[name] = limit
    return Limits(**{**{name: getattr(base, name) for name in LIMIT_NAMES}, **changed})


# The bounds that follow from a promised interval, where a file names none:
# late at half an interval more than promised, a violation at twice it, each with a second or two of slack.
_LATE: Callable[[float], float] = lambda interval_s: 1.5 * interval_s + 1.0  # noqa: E731 - a formula reads best so
_VIOLATION: Callable[[float], float] = lambda interval_s: 2.0 * interval_s + 2.0  # noqa: E731


def _keepalive(table: _Table) -> Keepalive:
    interval_s = table.duration("interval", required=True) or 0.0
    tolerance = table.table("tolerance")
    late_s = tolerance.duration("late") or _LATE(interval_s)
    violation_s = tolerance.duration("violation") or _VIOLATION(interval_s)
    tolerance.done()
    if not interval_s <= late_s <= violation_s:
        expected = f"a duration between interval ({interval_s:g}s) and violation ({violation_s:g}s)"
        raise tolerance.fail("late", f"{expected}, got {late_s:g}s")
    keepalive = Keepalive(
        text=table.text("text", required=True) or "",
        interval_s=interval_s,
        kind=cast(Literal["periodic", "idle"], table.choice("kind", ("periodic", "idle"))),
        late_s=late_s,
        violation_s=violation_s,
    )
    table.done()
    return keepalive


def _error(table: _Table) -> ErrorShape:
    shape = ErrorShape(
        shape=cast(
            Literal["data", "response.failed", "event"],
            table.choice("shape", ("data", "response.failed", "event")),
        ),
        type=table.text("type", required=True) or "",
        message=table.text("message", required=True) or "",
        code=table.text("code"),
    )
    table.done()
    return shape

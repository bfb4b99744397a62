"""How the load changes over time: a ramp, steps, a spike, a soak; in users, or in requests per second.

Pure: `Shape.at` says what the load is so many seconds after the start. Closed loads count users; open
arrivals count requests per second, because each of Locust's users then offers one.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harness.gateways import DurationError, parse_duration

_WHOLE = re.compile(r"[0-9]{1,7}")


class ShapeError(ValueError):
    """``--shape`` cannot be read; the message says what was expected."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A load over time, straight lines between corners of ``(seconds, load)``; it ends at the last one.

    Two corners at the same second are a jump: from that second on the later one holds.
    """

    name: str
    corners: tuple[tuple[float, float], ...]

    @property
    def duration_s(self) -> float:
        """How long the shape lasts."""
        return self.corners[-1][0]

    @property
    def peak(self) -> int:
        """The highest load."""
        return round(max(load for _, load in self.corners))

    def at(self, elapsed_s: float) -> int | None:
        """Return the load so many seconds after the start; None when the shape is over."""
        if elapsed_s >= self.duration_s:
            return None
        before = after = self.corners[0]
        for corner in self.corners:
            if corner[0] > elapsed_s:
                after = corner
                break
            before = corner
        if after[0] <= before[0]:
            return round(before[1])
        part = (elapsed_s - before[0]) / (after[0] - before[0])
        return round(before[1] + (after[1] - before[1]) * part)


Parameters = Mapping[str, float]


def _ramp(p: Parameters) -> list[tuple[float, float]]:
    return [(0.0, p["from"]), (p["over"], p["to"]), (p["over"] + p["hold"], p["to"])]


def _steps(p: Parameters) -> list[tuple[float, float]]:
    count = math.ceil(abs(p["to"] - p["from"]) / p["step"]) + 1
    sign = 1.0 if p["to"] >= p["from"] else -1.0
    corners = []
    for number in range(count):
        load = p["from"] + sign * min(number * p["step"], abs(p["to"] - p["from"]))
        corners += [(number * p["each"], load), ((number + 1) * p["each"], load)]
    return corners


def _spike(p: Parameters) -> list[tuple[float, float]]:
    begins, ends = p["after"], p["after"] + p["for"]
    return [
        (0.0, p["base"]), (begins, p["base"]), (begins, p["peak"]), (ends, p["peak"]), (ends, p["base"]),
        (ends + p["rest"], p["base"]),
    ]  # fmt: skip


def _soak(p: Parameters) -> list[tuple[float, float]]:
    return [(0.0, 1.0), (p["ramp"], p["load"]), (p["ramp"] + p["for"], p["load"])]


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of shape: its parameters with their defaults (None: must be given); times are the named ones."""

    loads: Mapping[str, float | None]
    times: Mapping[str, str | None]
    corners: Callable[[Parameters], list[tuple[float, float]]]


KINDS: Mapping[str, _Kind] = {
    "ramp": _Kind({"from": 1, "to": None}, {"over": None, "hold": "0s"}, _ramp),
    "steps": _Kind({"from": None, "to": None, "step": None}, {"each": None}, _steps),
    "spike": _Kind({"base": None, "peak": None}, {"after": None, "for": None, "rest": "60s"}, _spike),
    "soak": _Kind({"load": None}, {"ramp": "30s", "for": None}, _soak),
}

EXAMPLES = (
    "ramp:to=100,over=5m,hold=10m; steps:from=10,to=100,step=10,each=1m; "
    "spike:base=10,peak=100,after=1m,for=10s,rest=2m; soak:load=50,for=1h"
)


def split_shape(text: str) -> tuple[str, dict[str, str]]:
    """Return the kind and the parameters in *text* as they are written. Raises `ShapeError`."""
    kind, _, rest = text.strip().partition(":")
    parameters: dict[str, str] = {}
    for entry in (part.strip() for part in rest.split(",")):
        name, equals, value = (part.strip() for part in entry.partition("="))
        if entry and (not equals or not value):
            raise ShapeError(f"expected NAME=VALUE, got {entry!r}")
        if name in parameters:
            raise ShapeError(f"{name} is given twice")
        if entry:
            parameters[name] = value
    return kind, parameters


def parse_shape(text: str) -> Shape:
    """Return the shape that *text* describes, as in ``ramp:to=100,over=5m``. Raises `ShapeError`."""
    name, given = split_shape(text)
    kind = KINDS.get(name)
    if kind is None:
        near = difflib.get_close_matches(name, [*KINDS, "capacity"], n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ShapeError(f"unknown shape {name!r} ({', '.join(KINDS)}, capacity){hint}")
    known = {**kind.loads, **kind.times}
    if unknown := [parameter for parameter in given if parameter not in known]:
        raise ShapeError(f"{name} has no parameter {unknown[0]!r} (it has: {', '.join(known)})")
    values: dict[str, float] = {}
    for parameter, default in known.items():
        value = given.get(parameter, default)
        if value is None:
            raise ShapeError(f"{name} needs {parameter}=…, as in {_example(name)}")
        is_time = parameter in kind.times
        values[parameter] = _time(parameter, str(value)) if is_time else _load(parameter, str(value))
    shape = Shape(name, tuple(kind.corners(values)))
    if not shape.duration_s:
        raise ShapeError(f"{text!r} lasts no time at all")
    return shape


def _example(name: str) -> str:
    return next(example for example in EXAMPLES.split("; ") if example.startswith(name))


def _time(name: str, text: str) -> float:
    try:
        return parse_duration(text)
    except DurationError as error:
        raise ShapeError(f"{name}: {error}") from None


def _load(name: str, text: str) -> float:
    if not _WHOLE.fullmatch(text) or (name in ("step", "to", "peak", "load") and not int(text)):
        raise ShapeError(f"{name}: expected a whole number above 0, got {text!r}")
    return float(text)

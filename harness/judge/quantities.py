"""Limits and values with their units: ``1.5s``, ``0.1%``, ``100``, ``250/s``, ``1.10x``."""

from __future__ import annotations

import math
import re

from harness.gateways.durations import DurationError, format_duration, parse_duration
from harness.judge.metrics import Kind

_NUMBER = r"(\d+(?:\.\d*)?|\.\d+)"
_PERCENT = re.compile(_NUMBER + r"\s*%")
_RATIO = re.compile(_NUMBER + r"\s*[x×]")
_COUNT = re.compile(r"\d+")
_SPEED = re.compile(_NUMBER + r"\s*(?:(?:tokens?\s*)?/\s*s)?")

_EXAMPLES = {
    "time": 'a duration with a unit, as in "1.5s"',
    "rate": 'a percentage, as in "0.1%"',
    "count": "a number, as in 100",
    "speed": 'tokens per second, as in "250/s"',
}


class QuantityError(ValueError):
    """The value is no such quantity; the message says what was expected."""


def parse_limit(value: object, kind: Kind) -> float:
    """Return *value* of a gate file in seconds, as a share, a count or tokens per second.

    Raises `QuantityError`; a bare number is refused where it could be milliseconds as well as seconds.
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        if kind in ("count", "speed") and value >= 0:
            return float(value)
        raise QuantityError(f"{value!r} is a bare number: write {_EXAMPLES[kind]}")
    if isinstance(value, str):
        text = value.strip()
        if kind == "time":
            try:
                return parse_duration(text)
            except DurationError:
                pass
        elif kind == "rate" and (match := _PERCENT.fullmatch(text)) and float(match[1]) <= 100.0:
            return float(match[1]) / 100.0
        elif kind == "count" and _COUNT.fullmatch(text):
            return float(text)
        elif kind == "speed" and (match := _SPEED.fullmatch(text)):
            return float(match[1])
    raise QuantityError(f"expected {_EXAMPLES[kind]}, got {value!r}")


def parse_ratio(value: object) -> float:
    """Return the ratio that *value* names: ``1.10x`` is 1.1. Raises `QuantityError`."""
    if isinstance(value, str) and (match := _RATIO.fullmatch(value.strip())) and float(match[1]) > 0:
        return float(match[1])
    raise QuantityError(f'expected a ratio to the baseline, as in "1.10x", got {value!r}')


def format_value(value: float, kind: Kind) -> str:
    """Return *value* as people say it; an infinite one never came."""
    if math.isinf(value):
        return "never"
    if kind == "time":
        return format_duration(value)
    if kind == "rate":
        return format_share(value)
    if kind == "count":
        return f"{value:,.0f}"
    return f"{value:,.1f}/s" if value < 100 else f"{value:,.0f}/s"


def format_share(share: float) -> str:
    """Return a share in percent with the digits that matter: ``0.013 %``, ``4.2 %``, ``99.95 %``."""
    percent = 100.0 * share
    edge = min(percent, 100.0 - percent)
    if percent in (0.0, 100.0):
        return f"{percent:.0f} %"
    digits = 1 if edge >= 1.0 else 2 if edge >= 0.1 else 3
    return f"{percent:.{digits}f} %"


def format_ratio(ratio: float) -> str:
    """Return *ratio* as a gate file writes it: ``1.08x``."""
    return "∞" if math.isinf(ratio) else f"{ratio:.2f}x"

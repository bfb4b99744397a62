"""Durations as people write them: a number and a unit, never a bare number.

A bare number is refused on purpose: ``5`` meant as seconds and read as milliseconds
is the most common wrong limit in load tests.
"""

from __future__ import annotations

import re

UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}

_DURATION = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(us|ms|s|m|h)")


class DurationError(ValueError):
    """The text is not a duration; the message says what was expected."""


def parse_duration(text: str) -> float:
    """Return the seconds that *text* names: ``250ms``, ``1.5s``, ``2m``, ``1m30s``.

    Raises `DurationError` for anything else: a bare number, a negative one, an unknown unit.
    """
    compact = text.strip() if isinstance(text, str) else ""
    total, at = 0.0, 0
    while at < len(compact):
        match = _DURATION.match(compact, at)
        if match is None:
            break
        total += float(match[1]) * UNITS_S[match[2]]
        at = match.end()
    if not compact or at != len(compact):
        raise DurationError(
            f"{text!r} is not a duration: write a number and a unit (us ms s m h), as in 1.5s"
        )
    return total


def format_duration(seconds: float) -> str:
    """Return *seconds* with a unit and three significant digits: ``12.3 ms``, ``1.50 s``, ``2m05s``."""
    size = abs(seconds)
    if size >= 120.0:
        minutes, rest = divmod(round(size), 60)
        hours, minutes = divmod(minutes, 60)
        sign = "-" if seconds < 0 else ""
        return f"{sign}{hours}h{minutes:02d}m" if hours else f"{sign}{minutes}m{rest:02d}s"
    if size >= 0.9995:
        return f"{_three_digits(seconds)} s"
    if size >= 0.9995e-3 or size == 0.0:
        return f"{_three_digits(seconds * 1e3)} ms"
    return f"{_three_digits(seconds * 1e6)} µs"


def _three_digits(value: float) -> str:
    size = abs(value)
    if size == 0.0:
        return "0"
    if size >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"

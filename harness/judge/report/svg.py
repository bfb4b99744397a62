"""Charts as SVG text: scales, axes and the few marks that the report draws. Knows nothing of runs.

Sizes are in the units of a 960 wide drawing that the page scales. Colours are CSS classes, so that light and
dark are the style sheet's business. Every piece of text is escaped here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 960
LEFT, RIGHT, TOP, BOTTOM = 62, 16, 14, 38


@dataclass(frozen=True, slots=True)
class Scale:
    """From values to places. Logarithmic if *log*; *low* must be above zero then."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high = self.low, self.high
        value = min(max(value, low), high)
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(value)
        share = 0.5 if high == low else (value - low) / (high - low)
        return self.start + share * (self.end - self.start)

    def ticks(self, count: int = 6) -> list[float]:
        """Return round values inside the scale."""
        # Within a factor of eight powers of ten are too far apart: round steps, placed logarithmically.
        if self.log and self.high / self.low >= 8:
            return log_ticks(self.low, self.high)
        return linear_ticks(self.low, self.high, count)


def linear_ticks(low: float, high: float, count: int) -> list[float]:
    """Return about *count* values of 1, 2 or 5 times a power of ten between *low* and *high*."""
    span = high - low
    if span <= 0:
        return [low]
    raw = span / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = power * next(factor for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Return powers of ten between *low* and *high*, with 2 and 5 between them where there are few."""
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    factors = (1,) if last - first > 4 else (1, 3) if last - first > 2 else (1, 2, 5)
    values = (factor * 10.0**power for power in range(first, last + 1) for factor in factors)
    return [value for value in values if low * 0.999 <= value <= high * 1.001]


class Chart:
    """One drawing with axes; marks are added in the order in which they lie on one another."""

    def __init__(self, height: int, x: tuple[float, float], y: tuple[float, float], *, label: str,
                 x_log: bool = False, y_log: bool = False) -> None:  # fmt: skip
        self.height = height
        self.x = Scale(*x, LEFT, WIDTH - RIGHT, x_log)
        self.y = Scale(*y, height - BOTTOM, TOP, y_log)
        self._label = label
        self._under: list[str] = []
        self._marks: list[str] = []

    def x_axis(self, text: Callable[[float], str], title: str, grid: bool = False) -> None:
        """Draw the axis below, its values in words."""
        floor = self.height - BOTTOM
        for value in self.x.ticks(8):
            place = self.x(value)
            if grid:
                self._under.append(_line(place, TOP, place, floor, "grid"))
            self._under.append(_text(place, floor + 16, text(value), "tick", "middle"))
        self._under.append(_line(LEFT, floor, WIDTH - RIGHT, floor, "axis"))
        self._under.append(_text(WIDTH - RIGHT, self.height - 6, title, "axis-title", "end"))

    def y_axis(self, text: Callable[[float], str], title: str, count: int = 4) -> None:
        """Draw the axis on the left with its grid."""
        for value in self.y.ticks(count):
            place = self.y(value)
            self._under.append(_line(LEFT, place, WIDTH - RIGHT, place, "grid"))
            self._under.append(_text(LEFT - 8, place + 4, text(value), "tick", "end"))
        self._under.append(_text(LEFT, self.height - 6, title, "axis-title", "start"))

    def line(self, points: Iterable[tuple[float, float] | None], css: str, hint: str = "") -> None:
        """Draw a line through *points*; None lifts the pen."""
        path, pen = [], "M"
        for point in points:
            if point is None:
                pen = "M"
                continue
            path.append(f"{pen}{self.x(point[0]):.1f} {self.y(point[1]):.1f}")
            pen = "L"
        if path:
            self._marks.append(_hinted(f'<path class="line {css}" d="{"".join(path)}"', "path", hint))

    def area(self, points: Sequence[tuple[float, float]], css: str) -> None:
        """Fill the area between *points* and the floor."""
        if points:
            floor = self.y(self.y.low)
            inner = "".join(f"L{self.x(x):.1f} {self.y(y):.1f}" for x, y in points)
            first, last = self.x(points[0][0]), self.x(points[-1][0])
            d = f"M{first:.1f} {floor:.1f}{inner}L{last:.1f} {floor:.1f}Z"
            self._marks.append(f'<path class="area {css}" d="{d}"/>')

    def bar(self, x: tuple[float, float], y: tuple[float, float], css: str, hint: str = "") -> None:
        """Draw a bar from x to x and from y to y, with a hair of space at its sides."""
        left, right = self.x(x[0]), self.x(x[1])
        low, high = self.y(y[0]), self.y(y[1])
        width, gap = max(right - left, 0.75), 0.5 if right - left > 3 else 0.0
        shape = f'<rect class="bar {css}" x="{left + gap:.1f}" y="{high:.1f}" width="{width - 2 * gap:.2f}" '
        self._marks.append(_hinted(f'{shape}height="{max(low - high, 0.75):.1f}"', "rect", hint))

    def dot(self, x: float, y: float, css: str, hint: str = "") -> None:
        """Draw a dot."""
        shape = f'<circle class="dot {css}" cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="3"'
        self._marks.append(_hinted(shape, "circle", hint))

    def rule(self, x: float, text: str, css: str = "rule", row: int = 0) -> None:
        """Draw a vertical line with words at its head, in *row* so that neighbours do not overlap."""
        place = self.x(x)
        side = ("end", -5) if place > WIDTH * 0.8 else ("start", 5)
        self._marks.append(_line(place, TOP, place, self.height - BOTTOM, css))
        self._marks.append(_text(place + side[1], TOP + 11 + 14 * row, text, f"{css}-text", side[0]))

    def level(self, y: float, text: str) -> None:
        """Draw a horizontal line with words at its right end."""
        place = self.y(y)
        self._marks.append(_line(LEFT, place, WIDTH - RIGHT, place, "rule"))
        self._marks.append(_text(WIDTH - RIGHT - 4, place - 5, text, "rule-text", "end"))

    def svg(self) -> str:
        """Return the drawing."""
        body = "".join(self._under + self._marks)
        head = f'<svg class="chart" viewBox="0 0 {WIDTH} {self.height}" role="img"'
        return f'{head} aria-label="{escape(self._label)}">{body}</svg>'


def _hinted(shape: str, tag: str, hint: str) -> str:
    return f"{shape}><title>{escape(hint)}</title></{tag}>" if hint else f"{shape}/>"


def _line(x1: float, y1: float, x2: float, y2: float, css: str) -> str:
    return f'<line class="{css}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, words: str, css: str, anchor: str) -> str:
    return f'<text class="{css}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'

"""The report's charts: from a run's picture to drawings. Every number drawn is one that was measured."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from harness.gateways.durations import format_duration
from harness.judge.report.markup import Html, join, legend
from harness.judge.report.picture import STEP_S, Picture, Step
from harness.judge.report.svg import Chart
from harness.judge.sample import Sample
from harness.stream.assemble import quantile
from harness.stream.outcome import OUTCOMES

SERIES = ("s1", "s2", "s3", "s4", "s5", "s6")
# Failures that are told apart by colour; the rarer ones share the last.
_FAILURES = ("f1", "f2", "f3", "f4", "f5", "f6")
# Points of a curve and columns of a time axis: as many as can be told apart on a screen.
_POINTS = 240
_COLUMNS = 120
_BINS = 60
# Where proxies and load balancers are known to cut: their defaults for idle or unanswered connections,
# seconds.
TIMEOUTS = ((15.0, "15 s"), (60.0, "60 s: nginx, AWS ALB"), (100.0, "100 s: Cloudflare"))


def shares_that_got_there(samples: Mapping[str, Sample], what: str) -> Html:
    """Draw for each sample which share had got there by when. A curve that ends below 100 % lost the rest."""
    drawn = [(name, sample) for name, sample in samples.items() if len(sample) and len(sample.known)]
    if not drawn:
        return Html("")
    values = [sample.known for _, sample in drawn]
    low = max(min(known[0] for known in values), 1e-4)
    high = max(known[-1] for known in values)
    low, high = (low * 0.7, high * 1.4) if high / low < 3 else (low, high)
    chart = Chart(250, (low, high), (0.0, 1.0), label=f"share of streams by {what}", x_log=True)
    chart.x_axis(short, f"{what} (logarithmic)", grid=True)
    chart.y_axis(lambda share: f"{100 * share:.0f} %", "share of all streams")
    for css, (name, sample) in zip(_cycle(), drawn, strict=False):
        known, n = sample.known, len(sample)
        places = sorted({round(i * (len(known) - 1) / _POINTS) for i in range(_POINTS + 1)})
        points = [(known[place], (place + 1) / n) for place in places]
        chart.line(
            [(known[0], 0.0), *points, (high, len(known) / n)], css, f"{name}: {len(known):,} of {n:,}"
        )
    entries = [
        (css, f"{name} ({100 * len(sample.known) / len(sample):.1f} % got there)")
        for css, (name, sample) in zip(_cycle(), drawn, strict=False)
    ]
    return join([Html(chart.svg()), legend(entries)])


def over_time(picture: Picture) -> Html:
    """Draw load, first tokens and failures over one time axis."""
    columns, width_s = _columned(picture.steps)
    if not columns:
        return Html("")
    first, last = min(columns), max(columns) + 1
    span = (first * width_s, last * width_s)
    return join([_load(columns, width_s, span), _first_tokens(columns, width_s, span),
                 _failures(columns, width_s, span)])  # fmt: skip


def health(picture: Picture) -> Html:
    """Draw how late the load generator read, over time."""
    columns, width_s = _columned(picture.steps)
    lags = {column: step.lag_max_s for column, step in columns.items()}
    if not lags or not max(lags.values()):
        return Html("")
    span = (min(columns) * width_s, (max(columns) + 1) * width_s)
    chart = Chart(
        150, span, (0.0, max(lags.values()) * 1.1), label="read lag of the load generator over time"
    )
    chart.x_axis(clock, "time since the start")
    chart.y_axis(short, "latest read", 3)
    for column, lag in lags.items():
        hint = f"{clock(column * width_s)}: {format_duration(lag)}"
        chart.bar((column * width_s, (column + 1) * width_s), (0.0, lag), "mute", hint)
    return Html(chart.svg())


def histogram(values: Sequence[float], what: str, css: str, rules: Iterable[tuple[float, str, str]] = (),
              high: float | None = None) -> Html:  # fmt: skip
    """Draw how often each value of *values* (seconds) occurs; *rules* are (place, words, class)."""
    if not values:
        return Html("")
    rules = list(rules)
    top = high or max([*values, *(place for place, _, _ in rules)]) * 1.06 or 1.0
    width = top / _BINS
    counts = Counter(min(_BINS - 1, int(value / width)) for value in values)
    chart = Chart(190, (0.0, top), (0.0, max(counts.values()) * 1.18), label=f"how often which {what}")
    chart.x_axis(short, what)
    chart.y_axis(lambda n: f"{n:,.0f}", "streams", 3)
    for column, count in sorted(counts.items()):
        begins, ends = column * width, (column + 1) * width
        chart.bar((begins, ends), (0.0, count), css, f"{short(begins)} to {short(ends)}: {count:,}")
    for row, (place, words, rule) in enumerate(rules):
        if place <= top:
            chart.rule(place, words, rule, row % 3)
    return Html(chart.svg())


def outcome_bar(outcomes: Mapping[str, int]) -> Html:
    """Draw a bar whose parts are the outcomes' shares."""
    total = sum(outcomes.values())
    if not total:
        return Html("")
    parts, left = [], 0.0
    for name, css in outcome_classes(outcomes):
        share = 1000.0 * outcomes[name] / total
        hint = f"{name}: {outcomes[name]:,} of {total:,}"
        parts.append(f'<rect class="{css}" x="{left:.2f}" y="0" width="{max(share, 0.6):.2f}" height="16">'
                     f"<title>{hint}</title></rect>")  # fmt: skip
        left += share
    shape = (
        '<svg class="chart" viewBox="0 0 1000 16" preserveAspectRatio="none" role="img" style="height:16px"'
    )
    return Html(f'{shape} aria-label="shares of outcomes">{"".join(parts)}</svg>')


def outcome_classes(outcomes: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return the outcomes that occurred with the class of their colour, completed first."""
    failed = sorted(
        (
            name
            for name in OUTCOMES
            if outcomes.get(name) and name not in ("completed", "aborted", "abandoned")
        ),
        key=lambda name: -outcomes[name],
    )
    found = [("completed", "good")] if outcomes.get("completed") else []
    found += [(name, _FAILURES[min(i, len(_FAILURES) - 1)]) for i, name in enumerate(failed)]
    return found + [(name, "mute") for name in ("aborted", "abandoned") if outcomes.get(name)]


def crowd(values: Sequence[float]) -> tuple[float, int] | None:
    """Return around which value most of *values* crowd, and how many do; None if they do not.

    A crowd is at least five, and at least half, within 2 % (or 0.1 s) of each other: a timer, not chance.
    """
    ordered = sorted(values)
    best, at = 0, 0.0
    for i, value in enumerate(ordered):
        width = max(0.02 * value, 0.1 if value > 2.0 else 0.05 * value)
        inside = bisect_left(ordered, value + width, i) - i
        if inside > best:
            best, at = inside, quantile(ordered[i : i + inside], 0.5)
    return (at, best) if best >= 5 and 2 * best >= len(ordered) else None


def _load(columns: Mapping[int, Step], width_s: float, span: tuple[float, float]) -> Html:
    open_now = 0
    points: list[tuple[float, float]] = []
    for column in range(min(columns), max(columns) + 1):
        step = columns.get(column)
        if step is not None:
            open_now += step.started
            points.append(((column + 0.5) * width_s, float(open_now)))
            open_now -= step.ended
        else:
            points.append(((column + 0.5) * width_s, float(open_now)))
    chart = Chart(150, span, (0.0, max(y for _, y in points) * 1.12), label="open streams over time")
    chart.x_axis(clock, "")
    chart.y_axis(lambda n: f"{n:,.0f}", "open streams", 4)
    chart.area(points, "s1")
    chart.line(points, "s1")
    return Html(chart.svg())


def _first_tokens(columns: Mapping[int, Step], width_s: float, span: tuple[float, float]) -> Html:
    middle, tail = [], []
    for column, step in sorted(columns.items()):
        if step.ttft:
            ordered = sorted(step.ttft)
            moment = (column + 0.5) * width_s
            middle.append((moment, quantile(ordered, 0.5)))
            tail.append((moment, quantile(ordered, 0.95)))
    if not middle:
        return Html("")
    chart = Chart(170, span, (0.0, max(y for _, y in tail) * 1.12), label="time to first token over time")
    chart.x_axis(clock, "")
    chart.y_axis(short, "time to first token", 4)
    chart.line(tail, "s2 thin")
    chart.line(middle, "s2")
    for moment, value in middle if len(middle) <= 40 else []:
        chart.dot(moment, value, "s2", f"{clock(moment)}: p50 {format_duration(value)}")
    return join(
        [Html(chart.svg()), legend([("s2", "p50 (line) and p95 (dashes) of the streams that began then")])]
    )


def _failures(columns: Mapping[int, Step], width_s: float, span: tuple[float, float]) -> Html:
    total: Counter[str] = Counter()
    for step in columns.values():
        total.update(step.failed)
    if not total:
        return Html("")
    classes = outcome_classes(total)
    top = max(sum(step.failed.values()) for step in columns.values())
    chart = Chart(150, span, (0.0, top * 1.12), label="failed streams over time")
    chart.x_axis(clock, "time since the start")
    chart.y_axis(lambda n: f"{n:,.0f}", "streams that failed", 3)
    for column, step in columns.items():
        floor = 0
        for name, css in classes:
            if count := step.failed.get(name, 0):
                hint = f"{clock(column * width_s)}: {count:,} {name}"
                chart.bar((column * width_s, (column + 1) * width_s), (floor, floor + count), css, hint)
                floor += count
    return join([Html(chart.svg()), legend([(css, f"{name} ({total[name]:,})") for name, css in classes])])


def _columned(steps: Mapping[int, Step]) -> tuple[dict[int, Step], float]:
    """Return the steps gathered into at most 120 columns of a round width, and that width in seconds."""
    if not steps:
        return {}, STEP_S
    span_s = (max(steps) - min(steps) + 1) * STEP_S
    widths = (0.25, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400)
    width_s = next((w for w in widths if span_s / w <= _COLUMNS), widths[-1])
    factor = round(width_s / STEP_S)
    columns: dict[int, Step] = {}
    for number, step in steps.items():
        column = columns.setdefault(number // factor, Step(ttft=array("d")))
        column.started += step.started
        column.ended += step.ended
        column.ttft.extend(step.ttft)
        column.failed.update(step.failed)
        column.lag_max_s = max(column.lag_max_s, step.lag_max_s)
        column.events += step.events
        column.uncertain += step.uncertain
    return columns, width_s


def short(seconds: float) -> str:
    """Return a time for an axis: no digits that say nothing."""
    if not seconds or math.isinf(seconds):
        return "0" if not seconds else "never"
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if abs(seconds) >= size * 0.9995:
            return f"{seconds / size:.3g} {unit}" if seconds < 1000 else f"{seconds:,.0f} s"
    return "0"


def clock(seconds: float) -> str:
    """Return a moment of the run: ``0:05``, ``12:30``, ``1:02:30``."""
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours}:{minutes:02d}:{left:02d}" if hours else f"{minutes}:{left:02d}"


def _cycle() -> Iterable[str]:
    while True:
        yield from SERIES

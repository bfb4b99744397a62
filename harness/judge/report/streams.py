"""The worst streams, each as a strip of what came when: tokens, signs of life, and the silence between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from harness.gateways.durations import format_duration
from harness.judge.report.charts import short
from harness.judge.report.markup import Html, join, legend, tag
from harness.judge.report.picture import Stream
from harness.judge.report.svg import linear_ticks
from harness.stream.describe import describe, stall_line

_WIDTH, _LEFT, _HEIGHT = 960, 8, 62
# A silence that is drawn: shorter ones are no wider than a mark.
_VISIBLE = 0.012
_KINDS = {
    "content": "token", "comment": "comment", "keepalive": "comment", "error": "trouble", "broken": "trouble",
    "terminal": "good",
}  # fmt: skip
# At most so many marks of a kind per strip: more would lie on one another.
_MARKS = 450


def worst(streams: Sequence[Stream]) -> Html:
    """Return the strips, longest wait first, under one legend."""
    if not streams:
        return Html("")
    entries = [
        ("token", "output"), ("comment", "keepalive"), ("trouble", "error"), ("good", "end mark"),
        ("silence", "waiting for output"),
    ]  # fmt: skip
    return join([legend(entries), *(_strip(stream) for stream in streams)])


def _strip(stream: Stream) -> Html:
    record = stream.record
    stalls = [stall for stall in (record.stall, *record.soft_stalls) if stall is not None]
    longest = max(stalls, key=lambda stall: stall.ended_s - stall.began_s)
    who = f"{record.request} · {record.protocol} · {record.model} · ended as {record.outcome}"
    head = tag("p", tag("b", format_duration(stream.waited_s)), " ", stall_line(longest, record))
    note = describe(record) if record.outcome != "stalled" else ""
    parts = [head, tag("p", f"{who}{': ' if note else ''}{note}", css="who")]
    if stream.timeline is None:
        parts.append(tag("p", "its timeline was not kept", css="who"))
    else:
        parts.append(Html(_drawn(stream)))
        if dropped := stream.timeline.get("dropped"):
            parts.append(tag("p", f"{dropped:,} entries in its middle were not kept", css="who"))
    return tag("div", *parts, css="stream")


def _drawn(stream: Stream) -> str:
    record, timeline = stream.record, stream.timeline or {}
    end_s = max(record.end_s, 1e-6)
    inner = _WIDTH - 2 * _LEFT

    def place(t: float) -> float:
        return _LEFT + inner * min(max(t / end_s, 0.0), 1.0)

    parts = [f'<rect class="track" x="{_LEFT}" y="4" width="{inner}" height="34" rx="2"/>']
    for begins, ends in _waits(timeline, end_s):
        width = place(ends) - place(begins)
        if width >= _VISIBLE * inner:
            said = f"{format_duration(ends - begins)} without output"
            parts.append(
                f'<rect class="silence" x="{place(begins):.1f}" y="4" width="{width:.1f}" height="34">'
                f"<title>{said}</title></rect>"
            )
    for css, moments in _marks(timeline).items():
        low, high = (24, 38) if css == "comment" else (4, 38) if css in ("trouble", "good") else (4, 24)
        width = 2.5 if css in ("trouble", "good") else 1.4
        d = "".join(f"M{place(t):.1f} {low}V{high}" for t in moments)
        parts.append(f'<path class="{css}" d="{d}" style="fill:none;stroke-width:{width}"/>')
    for value in linear_ticks(0.0, end_s, 8):
        anchor = "start" if value == 0 else "end" if place(value) > _WIDTH - 30 else "middle"
        spot = f'x="{place(value):.1f}" y="54" text-anchor="{anchor}"'
        parts.append(f'<text class="tick" {spot}>{short(value)}</text>')
    label = escape(f"timeline of stream {record.request}")
    head = f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}">'
    return f"{head}{''.join(parts)}</svg>"


def _waits(timeline: dict[str, Any], end_s: float) -> Iterator[tuple[float, float]]:
    """Yield the times without output, the last one included."""
    before = 0.0
    for t, kind in zip(timeline.get("t", []), timeline.get("kind", []), strict=False):
        if kind in ("content", "error", "terminal"):
            yield before, t
            before = t
    yield before, end_s


def _marks(timeline: dict[str, Any]) -> dict[str, list[float]]:
    """Return the moments of each kind of mark, thinned where there are too many to see."""
    found: dict[str, list[float]] = {}
    for t, kind in zip(timeline.get("t", []), timeline.get("kind", []), strict=False):
        if css := _KINDS.get(str(kind)):
            found.setdefault(css, []).append(float(t))
    # Last drawn lies on top: what is rare must not vanish under what is common.
    ordered = sorted(found.items(), key=lambda item: -len(item[1]))
    return {css: times[:: max(1, len(times) // _MARKS)] for css, times in ordered}

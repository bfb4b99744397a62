"""One request as a person reads it: what happened to each attempt, and its timeline on a terminal.

A timeline has thousands of entries; what explains a stream is where it changes. Entries of the same kind are
told as one line, unless a pause stands out among them: a pause gets a line of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from harness.gateways.durations import format_duration
from harness.observe.table import safe
from harness.stream.describe import describe, stall_line
from harness.stream.outcome import CLIENT_ENDED
from harness.stream.record import Attempt

# A pause stands out if it is this many times the stream's median one, and no shorter than this.
_PAUSE_FACTOR = 8.0
_PAUSE_S = 0.05

_STYLES = {
    "content": "green",
    "comment": "cyan",
    "keepalive": "cyan",
    "error": "bold red",
    "broken": "bold red",
    "terminal": "bold",
}


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive entries of one kind without a pause between them; times are offsets in seconds."""

    kind: str
    began_s: float
    ended_s: float
    count: int
    longest_gap_s: float


def outcome_style(outcome: str) -> str:
    """Return the colour of an outcome."""
    return "green" if outcome == "completed" else "yellow" if outcome in CLIENT_ENDED else "red"


def tell(record: Attempt, timeline: Mapping[str, Any] | None, every: bool = False) -> RenderableType:
    """Return the story of one attempt; with *every* its timeline has one line per entry."""
    title = Text.assemble(
        (f"attempt {record.attempt}", "bold"), f" · {safe(record.protocol)} · {safe(record.model)} · ",
        (record.outcome, f"bold {outcome_style(record.outcome)}"),
    )  # fmt: skip
    parts: list[RenderableType] = [Rule(title, align="left", style="dim"), Text(safe(describe(record)))]
    parts.append(Padding(_facts(record), (1, 0)))
    parts += [
        Text(f"stall: {safe(stall_line(stall, record))}", style="yellow") for stall in record.soft_stalls
    ]
    if timeline is None:
        parts.append(
            Text(
                "no timeline: they are kept of failed and stalled streams, and of the slowest ones",
                style="dim",
            )
        )
    else:
        parts.append(_timeline(record, timeline, every))
    return Group(*parts)


def stretches(t: Sequence[float], kind: Sequence[str], every: bool = False) -> Iterator[Stretch]:
    """Yield the timeline's entries as stretches, or with *every* one by one."""
    gaps = [b - a for a, b in pairwise(t)]
    pause = max(_PAUSE_S, _PAUSE_FACTOR * median(gaps)) if gaps else 0.0
    start, longest = 0, 0.0
    for i in range(1, len(t) + 1):
        if i < len(t) and kind[i] == kind[start] and gaps[i - 1] <= pause and not every:
            longest = max(longest, gaps[i - 1])
            continue
        yield Stretch(kind[start], t[start], t[i - 1], i - start, longest)
        start, longest = i, 0.0


def _facts(record: Attempt) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for style in ("dim", "", "dim", ""):
        table.add_column(style=style)
    facts = [
        ("request", safe(record.request)),
        ("TTFT", _offset(record.first_token_s)),
        ("gateway", safe(record.gateway) + (f" ({safe(record.peer)})" if record.peer else "")),
        ("first content", _offset(record.first_content_s)),
        ("status", "–" if record.status is None else str(record.status)),
        ("headers", _offset(record.headers_s)),
        ("server's id", safe(record.server_request_id or record.response_id or "–")),
        ("end", _offset(record.end_s)),
        ("events", f"{record.events:,} in {record.reads:,} reads, {record.bytes:,} bytes"),
        ("longest gap", _offset(record.progress.gap_max_s)),
        ("keepalives", f"{record.keepalive.comments:,} comments, {record.keepalive.pings:,} pings"),
        ("longest silence", _offset(record.silence_max_s)),
        ("clock", f"{record.clock}, {record.uncertain_events:,} uncertain events"),
        ("phase", record.phase),
    ]
    if record.violations:
        rules = ", ".join(f"{safe(rule)} ×{n}" for rule, n in record.violations.items())
        facts += [("violations", rules), ("", "")]
    for left, right in zip(facts[::2], facts[1::2], strict=True):
        table.add_row(*left, *right)
    return table


def _timeline(record: Attempt, timeline: Mapping[str, Any], every: bool) -> RenderableType:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", style="dim", no_wrap=True)
    table.add_column()
    t, kind, dropped = timeline["t"], timeline["kind"], timeline["dropped"]
    table.add_row(_clock(0.0), "", Text("request sent", style="dim"))
    before = 0.0
    if record.headers_s is not None:
        table.add_row(_clock(record.headers_s), _pause(record.headers_s), Text("headers", style="dim"))
        before = record.headers_s
    cut = t[len(t) // 2] if dropped else None  # what was left out is the middle
    for stretch in stretches(t, kind, every):
        if cut is not None and stretch.ended_s >= cut:
            table.add_row("", "", Text(f"{dropped:,} entries around here were not kept", style="yellow"))
            cut = None
        words = Text(safe(stretch.kind), style=_STYLES.get(stretch.kind, ""))
        if stretch.count > 1:
            words.append(f" ×{stretch.count:,}")
            words.append(
                f"  until {_clock(stretch.ended_s)}, longest gap {format_duration(stretch.longest_gap_s)}",
                style="dim",
            )
        table.add_row(_clock(stretch.began_s), _pause(stretch.began_s - before), words)
        before = stretch.ended_s
    table.add_row(
        _clock(record.end_s), _pause(record.end_s - before),
        Text(record.outcome, style=f"bold {outcome_style(record.outcome)}"),
    )  # fmt: skip
    return table


def _clock(offset_s: float) -> str:
    return f"{offset_s:.3f} s"


def _pause(seconds: float) -> str:
    return f"+{format_duration(seconds)}" if seconds > 0 else ""


def _offset(seconds: float | None) -> str:
    return "–" if seconds is None else format_duration(seconds)

"""A comparison in words: the sentence first, then the rows that carry it."""

from __future__ import annotations

import math
from typing import IO

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.judge.comparing import FEWEST_RUNS, Comparison, Row, interleaved
from harness.judge.metrics import METRICS
from harness.judge.quantities import format_value
from harness.observe.table import console_for, safe

_STYLES = {"worse": "bold red", "better": "green", "no difference": "dim", "cannot tell": "yellow"}
_NAMED = 3


def sentence(comparison: Comparison) -> str:
    """Return the verdict in one sentence."""
    word = comparison.word
    a, b = comparison.a.label, comparison.b.label
    if word == "cannot tell":
        return f"cannot tell: too few runs or streams to compare {a} (A) with {b} (B)"
    if word == "no difference":
        return f"no difference found between {a} (A) and {b} (B){_fineness(comparison)}"
    told = [f"{row.protocol} {row.name} {change(row)}" for row in comparison.rows if row.word == word]
    more = f", and {len(told) - _NAMED} more" if len(told) > _NAMED else ""
    mixed = any(row.word == "better" for row in comparison.rows) if word == "worse" else False
    but = " (and better in other numbers)" if mixed else ""
    return f"{b} (B) is {word} than {a} (A){but}: {'; '.join(told[:_NAMED])}{more}"


def _fineness(comparison: Comparison) -> str:
    """Say how large a difference would have been seen: nothing found is worth no more than that."""
    spans = [
        max(abs(row.low), abs(row.high))
        for row in comparison.rows
        if (row.metric, row.stat) == ("ttft", "p50") and not math.isinf(row.high - row.low)
    ]
    return (
        f": a ttft p50 that differs by more than {100 * max(spans):.1f} % would have shown" if spans else ""
    )


def change(row: Row) -> str:
    """Return by how much B differs, with its interval: ``+18.2 % (+12.0 … +24.1 %)``."""
    unit = "points" if METRICS[row.metric].kind == "rate" else "%"
    if math.isinf(row.low) or math.isinf(row.high):
        return f"{_signed(row.change)} {unit}"
    return f"{_signed(row.change)} {unit} ({_signed(row.low)} … {_signed(row.high)})"


def caveats(comparison: Comparison) -> list[str]:
    """Return what makes the comparison weaker than it looks."""
    said = []
    if not interleaved(comparison.order):
        said.append(
            f"NOT interleaved ({comparison.order}): what changed on the machines between the runs looks like "
            "a difference between A and B"
        )
    if comparison.unit == "stretches":
        a, b = len(comparison.a.runs), len(comparison.b.runs)
        said.append(
            f"{a} + {b} runs: compared by stretches of time, which share whatever their run had; "
            f"{FEWEST_RUNS} + {FEWEST_RUNS} runs, interleaved, would be evidence"
        )
    return [*said, *comparison.notes]


def print_comparison(comparison: Comparison, file: IO[str] | None = None) -> None:
    """Print the whole comparison."""
    console_for(file).print(_render(comparison))


def _render(comparison: Comparison) -> RenderableType:
    parts: list[RenderableType] = [Text(safe(sentence(comparison)), _STYLES[comparison.word])]
    simulated = [side.label for side in (comparison.a, comparison.b) if side.runs[0].evidence.simulated]
    if simulated:
        parts.append(Text(f"SIMULATED: {safe(' and '.join(simulated))}", "bold black on yellow"))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("protocol", no_wrap=True)
    table.add_column("number", no_wrap=True)
    for name in ("A", "B", "B against A", "p"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for row in comparison.rows:
        kind = METRICS[row.metric].kind
        table.add_row(
            safe(row.protocol), row.name, format_value(row.a, kind), format_value(row.b, kind), change(row),
            f"{row.p:.3f}", Text(row.word, _STYLES[row.word]),
        )  # fmt: skip
    parts.append(table)
    runs = f"{len(comparison.a.runs)} + {len(comparison.b.runs)} runs"
    method = f"p by Mann–Whitney, adjusted for {len(comparison.rows)} rows"
    parts.append(Text(f"{runs}; intervals {100 * comparison.confidence:g} %; {method}", "dim"))
    parts += [Text(safe(caveat), "yellow") for caveat in caveats(comparison)]
    return Group(*parts)


def _signed(share: float) -> str:
    percent = 100.0 * share
    return "+∞" if percent > 1e6 else f"{percent:+.1f}"

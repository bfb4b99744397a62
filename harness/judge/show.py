"""A verdict on the console: worst first, the reason beside each gate that did not pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

from rich import box
from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from harness.judge.verdict import Result, Verdict, Word
from harness.observe.table import console_for, safe

STYLES: dict[Word, str] = {
    "invalid": "bold red", "fail": "bold red", "no_data": "bold yellow", "inconclusive": "yellow",
    "warn": "yellow", "pass": "green", "skipped": "dim",
}  # fmt: skip


def print_verdict(verdict: Verdict, files: Sequence[str] = (), file: IO[str] | None = None) -> None:
    """Print *verdict* and the paths of its *files*."""
    console_for(file).print(render(verdict, files))


def render(verdict: Verdict, files: Sequence[str] = ()) -> RenderableType:
    """Return the whole picture."""
    title = Text.assemble(("gates ", "bold"), safe(verdict.gates.source), f" · run {safe(verdict.run)}")
    title.append(f" · {safe(verdict.gateway)}")
    parts: list[RenderableType] = [Rule(title, align="left", style="dim")]
    if verdict.simulated:
        scale = f" (time scale {verdict.time_scale:g})" if verdict.time_scale != 1.0 else ""
        parts.append(Text(f"SIMULATED{scale}: says nothing about a real gateway", "bold black on yellow"))
    if verdict.results:
        parts.append(_table(verdict))
    parts += [_why(result) for result in verdict.worst_first if result.word != "pass"]
    parts += [Text(f"note: {safe(note)}", "yellow") for note in verdict.notes]
    parts.append(Text(safe(verdict.sentence), STYLES[verdict.word]))
    parts += [Text(path, "dim", overflow="fold") for path in files]
    return Group(*parts)


def _table(verdict: Verdict) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("verdict", no_wrap=True)
    table.add_column("gate", overflow="fold")
    table.add_column("measure", overflow="fold")
    table.add_column("per", style="dim", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("limit", no_wrap=True)
    table.add_column("interval", style="dim", no_wrap=True)
    table.add_column("n", justify="right", no_wrap=True)
    for result in verdict.worst_first:
        gate, estimate = result.gate, result.estimate
        table.add_row(
            Text(result.word.replace("_", " "), STYLES[result.word]),
            safe(gate.id), safe(str(gate)), gate.view,
            result.value_text, f"{gate.op} {gate.limit_text}", result.interval_text,
            f"{estimate.n:,}" if estimate else "0",
        )  # fmt: skip
    return table


def _why(result: Result) -> Text:
    text = Text.assemble((f"{safe(result.gate.id)}: ", STYLES[result.word]), safe(result.reason))
    return text.append(f"\n  {safe(result.gate.why)}", "dim")

"""The summary of a run as a table for the console: the numbers of ``summary.json``, nothing of its own.

Colours carry meaning (red: against the gateway, yellow: look at this, dim: context) and nothing depends on
them: without a terminal the same text comes without colour, 100 columns wide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from harness.gateways.durations import format_duration
from harness.stream.assemble import escape
from harness.stream.outcome import CLIENT_ENDED, OUTCOMES

WIDTH = 100
_FAILURES_SHOWN = 10
_LINE = 400  # characters of a line with words that a server chose

# Measures with quantiles, as the table calls them.
_TIMES = {"headers": "headers", "ttft": "TTFT", "first_content": "first content", "duration": "duration"}

Column = Mapping[str, Any]


def console_for(file: IO[str] | None = None) -> Console:
    """Return a console for *file* (stdout if None): the terminal's own width, else `WIDTH`."""
    console = Console(file=file, highlight=False, markup=False, emoji=False, soft_wrap=False)
    if not console.is_terminal:
        console.width = WIDTH
    return console


def print_summary(summary: Mapping[str, Any], files: Sequence[str] = (), file: IO[str] | None = None) -> None:
    """Print the table of *summary* and the paths *files* under it."""
    console_for(file).print(render(summary, files))


def render(summary: Mapping[str, Any], files: Sequence[str] = ()) -> RenderableType:
    """Return the whole picture: banner, numbers per protocol, failures, verdict, paths."""
    parts: list[RenderableType] = [*_banner(summary), _numbers(summary)]
    if summary["groups"]:
        parts.append(_groups(summary["groups"]))
    if summary["failures"]:
        parts.append(_failures(summary["failures"]))
    parts.append(_verdict(summary))
    if files:
        lines = Text("\n".join(files), style="dim", overflow="fold")
        parts.append(_section("files", lines))
    return Group(*parts)


def safe(words: str) -> str:
    """Return *words* with every control character visible: a server's text must not steer a terminal."""
    return escape(words, _LINE)


def _banner(summary: Mapping[str, Any]) -> list[RenderableType]:
    title = Text.assemble((f"run {safe(summary['run'])}", "bold"), " · ", safe(summary["gateway"]))
    if summary["duration_s"] is not None:
        title.append(f" · {format_duration(summary['duration_s'])}")
    parts: list[RenderableType] = [Rule(title, align="left", style="dim")]
    if summary["simulated"]:
        words = "SIMULATED: these numbers are played and say nothing about a real gateway"
        if summary["time_scale"] != 1.0:
            words += f" (time scale {summary['time_scale']:g})"
        parts.append(Text(words, style="bold black on yellow"))
    elif summary["time_scale"] != 1.0:
        parts.append(Text(f"time scale {summary['time_scale']:g}", style="yellow"))
    return parts


def _numbers(summary: Mapping[str, Any]) -> RenderableType:
    columns: dict[str, Column] = dict(summary["protocols"])
    if not columns:
        return Padding(Text("no measured streams", style="yellow"), (1, 0))
    if len(columns) > 1:
        columns["all"] = summary["totals"]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("", no_wrap=True)
    table.add_column("", style="dim", no_wrap=True, max_width=24, overflow="ellipsis")
    for name in columns:
        table.add_column(safe(name), justify="right", no_wrap=True)
    groups = list(columns.values())
    _outcome_rows(table, groups)
    table.add_section()
    for name, label in _TIMES.items():
        _quantile_rows(table, label, name, groups)
    _gap_rows(table, groups)
    table.add_section()
    _keepalive_rows(table, groups)
    _count_rows(table, groups)
    return table


def _outcome_rows(table: Table, groups: Sequence[Column]) -> None:
    table.add_row("streams", "measured", *(Text(f"{g['streams']:,}", style="bold") for g in groups))
    for outcome in OUTCOMES:
        if not any(g["outcomes"].get(outcome) for g in groups):
            continue
        style = "green" if outcome == "completed" else "yellow" if outcome in CLIENT_ENDED else "red"
        hint = {"aborted": "by the run's end", "abandoned": "by its user"}.get(outcome, "")
        cells = [_with_share(g["outcomes"].get(outcome, 0), g["streams"], style) for g in groups]
        table.add_row(Text(f"  {outcome}", style=style), hint, *cells)


def _with_share(n: int, of: int, style: str) -> Text:
    if not n:
        return Text("–", style="dim")
    return Text.assemble((f"{n:,}", style), (f" {100 * n / of:5.1f} %", "dim"))


def _quantile_rows(table: Table, label: str, name: str, groups: Sequence[Column]) -> None:
    if not any(g[name]["n"] for g in groups):
        return
    for position, stat in enumerate(("p50_s", "p95_s", "p99_s")):
        cells = [_time(g[name][stat], beyond=bool(g[name]["n"])) for g in groups]
        table.add_row(label if position == 0 else "", stat.removesuffix("_s"), *cells)


def _gap_rows(table: Table, groups: Sequence[Column]) -> None:
    if any(g["inter_token"] and g["inter_token"]["n"] for g in groups):
        for label, stat in (("inter-token", "p50_s"), ("", "p99_s")):
            cells = [_time(g["inter_token"] and g["inter_token"][stat]) for g in groups]
            table.add_row(label, f"{stat.removesuffix('_s')} pooled", *cells)
    for label, name in (("longest gap", "gap_max"), ("longest silence", "silence")):
        if any(g[name]["n"] for g in groups):
            table.add_row(label, "max", *(_time(g[name]["max_s"]) for g in groups))


def _keepalive_rows(table: Table, groups: Sequence[Column]) -> None:
    kept = [g["keepalive"] for g in groups]
    if any(k["comments"] + k["pings"] for k in kept) or kept[0]["promised_s"] is not None:
        table.add_row("keepalives", "count", *(_count(k["comments"] + k["pings"]) for k in kept))
    promised = kept[0]["promised_s"]
    if promised is not None:
        table.add_row(
            "  promised each",
            kept[0]["promised_kind"],
            *(Text(format_duration(promised), style="dim") for _ in kept),
        )
    if any(k["interval_max_s"] is not None for k in kept):
        table.add_row("  interval", "mean", *(_time(k["interval_mean_s"]) for k in kept))
        table.add_row("", "max", *(_longest_interval(k) for k in kept))
    for name, style in (("late", "yellow"), ("violations", "red")):
        if any(k[name] for k in kept):
            table.add_row(Text(f"  {name}", style=style), "", *(_count(k[name], style) for k in kept))


def _longest_interval(keepalive: Mapping[str, Any]) -> Text:
    value, late_after = keepalive["interval_max_s"], keepalive["late_after_s"]
    return _time(value, style="yellow" if value and late_after and value > late_after else "")


def _count_rows(table: Table, groups: Sequence[Column]) -> None:
    for name in ("hard", "watched", "soft"):
        style = "red" if name == "hard" else "yellow"
        _breakdown(table, f"stalls, {name}", style, [g["stalls"][name] for g in groups])
    for label, name, style in (
        ("error events", "error_events", "red"),
        ("HTTP errors", "http_errors", "red"),
        ("violations", "violations", "yellow"),
        ("retries", "retries", "yellow"),
    ):
        _breakdown(table, label, style, [g[name] for g in groups])
    table.add_row("tokens out", "", *(_count(g["tokens"]["output"]) for g in groups))
    if any(g["tokens"]["wasted"] for g in groups):
        table.add_row("  wasted", "", *(_count(g["tokens"]["wasted"], "yellow") for g in groups))


def _breakdown(table: Table, label: str, style: str, counts: Sequence[Mapping[str, int]]) -> None:
    names = sorted({name for one in counts for name in one}, key=lambda n: -sum(c.get(n, 0) for c in counts))
    if not names:
        return
    table.add_row(label, "", *(_count(sum(one.values()), style) for one in counts))
    for name in names:
        cells = (_count(one.get(name, 0), "dim") for one in counts)
        table.add_row("", safe(name), *cells)


def _groups(groups: Sequence[Mapping[str, Any]]) -> RenderableType:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("protocol", "scenario", "model"):
        table.add_column(name, overflow="ellipsis", no_wrap=True)
    for name in ("streams", "completed", "TTFT p50", "p95", "p99", "stalls"):
        table.add_column(name, justify="right", no_wrap=True)
    for g in groups:
        done = g["outcomes"].get("completed", 0)
        table.add_row(
            *(safe(g[name]) for name in ("protocol", "scenario", "model")),
            f"{g['streams']:,}",
            Text(f"{100 * done / g['streams']:.1f} %", style="" if done == g["streams"] else "yellow"),
            *(_time(g["ttft"][stat]) for stat in ("p50_s", "p95_s", "p99_s")),
            _count(sum(g["stalls"]["hard"].values()), "red"),
        )
    return _section("by scenario and model", table)


def _failures(failures: Sequence[Mapping[str, Any]]) -> RenderableType:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(justify="right", style="bold red", no_wrap=True)
    table.add_column(style="red", no_wrap=True)
    table.add_column(ratio=1, overflow="fold")
    for failure in failures[:_FAILURES_SHOWN]:
        words = Text(safe(failure["example"]))
        words.append(f"\ne.g. {safe(failure['request'])}", style="dim")
        if failure["in_warmup"]:
            words.append(f" · {failure['in_warmup']:,} of them in the warm-up", style="dim")
        table.add_row(f"{failure['count']:,}×", safe(failure["name"]), words)
    more = len(failures) - _FAILURES_SHOWN
    if more > 0:
        table.add_row("", "", Text(f"and {more} kinds more", style="dim"))
    return _section("failures", table)


def _verdict(summary: Mapping[str, Any]) -> RenderableType:
    lines: list[Text] = [Text(entry["sentence"], style="bold") for entry in summary["watch"]]
    if warmup := summary["warmup"]["attempts"]:
        lines.append(Text(f"warm-up: {warmup:,} attempts, in no percentile", style="dim"))
    lines += [Text(safe(note), style="yellow") for note in summary["notes"]]
    lines.append(_conservation(summary["conservation"]))
    validity = summary["validity"]
    if validity["valid"]:
        lines.append(Text.assemble(("run valid", "bold green"), " – the load generator kept up"))
    elif validity["valid"] is None:
        lines.append(Text.assemble(("run not judged", "bold yellow"), _because(validity["reasons"])))
    else:
        lines.append(Text.assemble(("run INVALID", "bold red"), _because(validity["reasons"])))
    return _section("verdict", Group(*lines))


def _because(reasons: Sequence[str]) -> str:
    return "".join(f"\n  {safe(reason)}" if len(reasons) > 1 else f" – {safe(reason)}" for reason in reasons)


def _conservation(numbers: Mapping[str, Any]) -> Text:
    if numbers["started"] is None:
        return Text(f"{numbers['recorded']:,} attempts recorded", style="dim")
    recorded = f"{numbers['recorded']:,} recorded + {numbers['open']:,} open"
    line = f"{numbers['started']:,} attempts started = {recorded}"
    if numbers["lost"]:
        return Text(f"{line} + {numbers['lost']:,} LOST", style="bold red")
    return Text(line, style="dim")


def _section(title: str, body: RenderableType) -> RenderableType:
    return Group(Text(title, style="bold"), Padding(body, (0, 0, 1, 2)))


def _count(n: int, style: str = "") -> Text:
    return Text(f"{n:,}", style=style) if n else Text("–", style="dim")


def _time(seconds: float | None, style: str = "", beyond: bool = False) -> Text:
    """A duration; *beyond* is for a quantile that lies past what the run saw."""
    if seconds is None:
        return Text("beyond run", style="yellow") if beyond else Text("–", style="dim")
    return Text(format_duration(seconds), style=style)

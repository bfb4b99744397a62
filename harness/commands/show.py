"""`harness show`: the failed and slowest streams of a finished run, or one request's whole story."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.gateways.durations import format_duration
from harness.observe.results import (
    ATTEMPTS,
    TIMELINES,
    ResultsError,
    find_results,
    read_records,
    read_timelines,
)
from harness.observe.story import outcome_style, tell
from harness.observe.table import console_for, safe
from harness.stream.describe import describe
from harness.stream.outcome import is_failure
from harness.stream.record import Attempt

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

USAGE = 2


def add_parser(subparsers: Subparsers) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "show",
        help="the failed and slowest streams of a run",
        description="Without REQUEST: the failed and the slowest streams. With it: all about that one.",
    )
    parser.add_argument("results", metavar="RESULTS", help="a run's folder, or the folder given to --results")
    parser.add_argument(
        "request", metavar="REQUEST", nargs="?", help="a request's id, or the beginning of it"
    )
    parser.add_argument(
        "-n", "--rows", type=_positive, default=20, help="rows per table (default: %(default)s)"
    )
    parser.add_argument("--every", action="store_true", help="one line for every event of the timeline")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print what was asked for; return 0, or 2 if there is nothing such."""
    try:
        folder = find_results(args.results)
        console = console_for()
        if args.request is None:
            _overview(console, folder, args.rows)
        else:
            _request(console, folder, args.request, args.every)
    except ResultsError as error:
        print(f"harness show: {error}", file=sys.stderr)
        return USAGE
    return 0


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rows: 1 or more")
    return int(text)


def _overview(console: Console, folder: Path, rows: int) -> None:
    notes: list[str] = []
    outcomes: Counter[str] = Counter()
    failed: list[Attempt] = []
    slow: list[Attempt] = []
    for record in read_records(folder / ATTEMPTS, notes):
        outcomes[record.outcome] += 1
        if is_failure(record.outcome):
            if len(failed) < rows:
                failed.append(record)
        elif record.first_token_s is not None:
            slow.append(record)
            if len(slow) > 100 * rows:  # keeps a long run's memory small
                slow = _slowest(slow, rows)
    if not outcomes:
        raise ResultsError(f"{folder / ATTEMPTS} holds no attempts yet")
    failures = sum(n for outcome, n in outcomes.items() if is_failure(outcome))
    total = sum(outcomes.values())
    console.print(Text(f"{folder}: {total:,} attempts, {failures:,} failed", style="bold"))
    console.print(Text("  ".join(f"{outcome} {n:,}" for outcome, n in outcomes.most_common()), style="dim"))
    if failed:
        more = f" (the first {rows} of {failures:,}; -n shows more)" if failures > rows else ""
        console.print(_table(f"failed{more}", failed))
    if slow:
        console.print(_table("slowest to the first token", _slowest(slow, rows)))
    for note in notes:
        console.print(Text(note, style="yellow"))
    for example in (failed or slow)[:1]:
        console.print(Text(f"one request: harness show {folder} {safe(example.request)}", style="dim"))


def _slowest(records: Iterable[Attempt], rows: int) -> list[Attempt]:
    return sorted(records, key=lambda record: -(record.first_token_s or 0.0))[:rows]


def _table(title: str, records: Iterable[Attempt]) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold",
        title=Text(title, style="bold"), title_justify="left",
    )  # fmt: skip
    table.add_column("request", no_wrap=True)
    table.add_column("protocol", no_wrap=True)
    table.add_column("outcome", no_wrap=True)
    table.add_column("what happened", ratio=1, overflow="fold")
    table.add_column("TTFT", justify="right", no_wrap=True)
    table.add_column("end", justify="right", no_wrap=True)
    for record in records:
        name = safe(record.request) + (f" #{record.attempt}" if record.attempt > 1 else "")
        outcome = Text(record.outcome, style=outcome_style(record.outcome))
        ttft = "–" if record.first_token_s is None else format_duration(record.first_token_s)
        what = Text(safe(describe(record)))
        table.add_row(
            Text(name), Text(safe(record.protocol)), outcome, what, ttft, format_duration(record.end_s)
        )
    return table


def _request(console: Console, folder: Path, wanted: str, every: bool) -> None:
    notes: list[str] = []
    found: dict[str, list[Attempt]] = {}
    for record in read_records(folder / ATTEMPTS, notes):
        if record.request.startswith(wanted):
            found.setdefault(record.request, []).append(record)
    if wanted in found:
        found = {wanted: found[wanted]}
    if not found:
        raise ResultsError(
            f"{folder / ATTEMPTS} has no request {wanted!r}: `harness show {folder}` lists some"
        )
    if len(found) > 1:
        some = ", ".join(safe(name) for name in list(found)[:5])
        raise ResultsError(f"{len(found):,} requests begin with {wanted!r} ({some}, …): give more of the id")
    (records,) = found.values()
    timelines = {}
    if (folder / TIMELINES).exists():
        for line in read_timelines(folder / TIMELINES, notes):
            if line.get("request") == records[0].request:
                timelines[line["attempt"]] = line
    for record in records:
        console.print(tell(record, timelines.get(record.attempt), every))
    for note in notes:
        console.print(Text(note, style="yellow"))

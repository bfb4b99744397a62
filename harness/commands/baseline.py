"""``harness baseline``: keeps the numbers that relative gates compare with. It changes only when told to."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from harness.judge.baseline import (
    Baseline,
    BaselineError,
    Entry,
    add_runs,
    medians,
    noise_of,
    read_baseline,
    refused_limits,
    write_baseline,
)
from harness.judge.folders import runs_in
from harness.judge.gatefile import GateFileError, read_gates
from harness.judge.gates import Gates
from harness.judge.judging import read_run
from harness.judge.machine import machine_class
from harness.judge.metrics import METRICS
from harness.judge.numbers import RunNumbers
from harness.judge.quantities import format_share, format_value
from harness.judge.verdict import EXIT_GATES_WRONG, EXIT_INVALID, EXIT_NO_DATA, EXIT_PASS
from harness.observe.results import ResultsError
from harness.observe.table import console_for, safe

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

USAGE = 2
# A noise of two runs is one difference; from four on it says something.
_FEW_RUNS = 4


def add_parser(subparsers: Subparsers) -> None:
    """Register the command and its four actions."""
    parser = subparsers.add_parser(
        "baseline",
        help="keep the numbers that relative gates compare with",
        description="A baseline holds, per scenario and class of machine, the numbers of the last runs and "
        "the noise between runs of the same build. RESULTS are runs, or folders of runs.",
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    for name, about in (
        ("record", "begin a baseline with runs of one build, and measure their noise"),
        ("update", "add newer runs, and print what moved"),
        ("noise", "measure the noise anew, from runs of one build"),
    ):
        action = actions.add_parser(name, help=about, description=about)
        action.add_argument("file", metavar="FILE", type=Path, help="the baseline (JSON)")
        action.add_argument("results", metavar="RESULTS", nargs="+", help="finished runs")
        action.add_argument(
            "--gates", metavar="FILE", help="keep what its gates look at; refuse its finer limits"
        )
        action.add_argument("--scenario", metavar="NAME", help="default: the gate file's, or default")
        action.add_argument(
            "--machine-class", metavar="NAME", help="default: from CPU model and usable cores"
        )
        action.add_argument("--every", action="store_true", help="print every number, also per protocol")
        action.set_defaults(run=run, action=name)
    show = actions.add_parser("show", help="print a baseline", description="Print a baseline.")
    show.add_argument("file", metavar="FILE", type=Path, help="the baseline (JSON)")
    show.add_argument("--every", action="store_true", help="print every number, also per protocol")
    show.set_defaults(run=run, action="show")


def run(args: argparse.Namespace) -> int:
    """Do what was asked for; return 0, 2 wrong usage, 21 no data, 22 an invalid run, 23 gates too fine."""
    try:
        if args.action == "show":
            _show(read_baseline(args.file), args.every)
            return EXIT_PASS
        gates = read_gates(args.gates) if args.gates else None
        return _change(args, gates)
    except FileNotFoundError:
        return _say(f"{args.file} does not exist: make it with `harness baseline record`", USAGE)
    except GateFileError as error:
        return _say(str(error), EXIT_GATES_WRONG)
    except BaselineError as error:
        return _say(str(error), USAGE)
    except ResultsError as error:
        return _say(str(error), EXIT_NO_DATA)


def _change(args: argparse.Namespace, gates: Gates | None) -> int:
    scenario = args.scenario or (gates.scenario if gates else "default")
    machine = args.machine_class or machine_class()
    baseline = _existing(args.file, args.action)
    if args.action == "record" and baseline.entry(scenario, machine) is not None:
        place = f"{args.file} has {scenario!r} on {machine}"
        raise BaselineError(f"{place} already: add runs with `harness baseline update`")
    runs, code = _read(args.results, gates)
    if code:
        return code
    entry = baseline.made_entry(scenario, machine)
    before = medians(entry)
    if args.action == "noise" and len(runs) < 2:
        raise BaselineError("noise is a difference between runs: give at least 2 of the same build")
    if args.action != "noise":
        add_runs(entry, runs)
    if args.action != "update" and len(runs) > 1:
        entry.noise, entry.noise_runs = noise_of(runs), len(runs)
    if gates is not None and (refused := refused_limits(gates, entry)):
        for sentence in refused:
            _say(sentence, EXIT_GATES_WRONG)
        if args.action != "noise":  # the noise is a fact and is kept; what the limits make of it is not
            return _say(f"{args.file} was not changed", EXIT_GATES_WRONG)
    write_baseline(args.file, baseline)
    _print_change(args, entry, before, len(runs))
    return EXIT_GATES_WRONG if gates is not None and refused_limits(gates, entry) else EXIT_PASS


def _existing(path: Path, action: str) -> Baseline:
    try:
        return read_baseline(path)
    except FileNotFoundError:
        if action == "update":
            raise
        return Baseline()


def _read(results: list[str], gates: Gates | None) -> tuple[list[RunNumbers], int]:
    """Return the runs' numbers; an invalid run is refused, for it would be compared with for weeks."""
    runs, code = [], EXIT_PASS
    for folder in runs_in(results):
        judged = read_run(folder, gates)
        why = [reason.text for reason in judged.invalid] or (
            ["it was killed before its end"] if judged.facts.killed else []
        )
        if why:
            code = _say(f"run {folder} is not valid and cannot be a baseline: {'; '.join(why)}", EXIT_INVALID)
        elif not judged.evidence.cells:
            code = _say(f"run {folder} measured nothing", EXIT_NO_DATA)
        else:
            runs.append(judged.numbers(gates))
    return runs, code


def _print_change(args: argparse.Namespace, entry: Entry, before: dict[str, float], added: int) -> None:
    console = console_for()
    after = medians(entry)
    table = _new_table("number", "before", "now", "change", "noise", "finest limit")
    for key in _shown(after, args.every):
        old, new, noise = before.get(key), after[key], entry.noise.get(key)
        table.add_row(
            safe(key), "–" if old is None else _value(key, old), _value(key, new), _moved(old, new),
            "–" if noise is None else format_share(noise), _finest(noise),
        )  # fmt: skip
    console.print(table)
    kept = f"{len(entry.runs)} runs kept, {added} read; noise from {entry.noise_runs} runs"
    console.print(Text(f"{args.file}: {entry.scenario} on {entry.machine_class}: {kept}"))
    if 0 < entry.noise_runs < _FEW_RUNS:
        console.print(
            Text(f"noise from {entry.noise_runs} runs is a guess: use {_FEW_RUNS} or more", "yellow")
        )


def _show(baseline: Baseline, every: bool) -> None:
    console = console_for()
    for entry in baseline.entries:
        title = f"{entry.scenario} on {entry.machine_class}: {len(entry.runs)} runs"
        console.print(Text(safe(title), "bold"))
        table = _new_table("number", "median", "least", "most", "runs", "noise", "finest limit")
        for key in _shown(medians(entry), every):
            values, noise = entry.values(key), entry.noise.get(key)
            table.add_row(
                safe(key), _value(key, median(values)), _value(key, min(values)), _value(key, max(values)),
                str(len(values)), "–" if noise is None else format_share(noise), _finest(noise),
            )  # fmt: skip
        console.print(table)
        names = ", ".join(safe(run.run) for run in entry.runs)
        console.print(Text(f"runs: {names}", "dim", overflow="fold"))


def _shown(numbers: Iterable[str], every: bool) -> list[str]:
    """Return which numbers are worth a line: a table of a hundred hides what moved."""
    return sorted(key for key in numbers if every or "{protocol=" not in key)


def _new_table(first: str, *others: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column(first, overflow="fold")
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _value(key: str, value: float) -> str:
    return format_value(value, METRICS[key.split()[0]].kind)


def _moved(old: float | None, new: float) -> str:
    if old is None or old == new:
        return "–" if old is None else "0 %"
    if not old or math.isinf(old) or math.isinf(new):
        return "!"
    return f"{100 * (new / old - 1):+.1f} %"


def _finest(noise: float | None) -> str:
    return "–" if noise is None else f"{1 + 2 * noise:.2f}x"


def _say(message: str, code: int) -> int:
    print(f"harness baseline: {message}", file=sys.stderr)
    return code

"""``harness gate``: judges a finished run, and says so to people, to CI and to the exit code."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from harness.judge.baseline import BaselineError
from harness.judge.gatefile import GateFileError, read_gates
from harness.judge.judging import judge_run
from harness.judge.outputs import tell_github, write_outputs
from harness.judge.show import print_verdict
from harness.judge.verdict import EXIT_GATES_WRONG, EXIT_INVALID, EXIT_NO_DATA
from harness.observe.results import ResultsError, find_results

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

USAGE = 2


def add_parser(subparsers: Subparsers) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "gate",
        help="judge a finished run against a gate file",
        description="Exit code 0: passed, 20: a gate failed, 21: no data (or inconclusive, if the file says "
        "so), 22: the run is invalid, 23: the gate file is wrong, 2: wrong usage.",
    )
    add = parser.add_argument
    add(
        "results", metavar="RESULTS", nargs="+",
        help="a run's folder, or the folder given to --results; more of them are repeats of the build, "
        'for gates with method = "mann_whitney"',
    )  # fmt: skip
    add("--gates", required=True, metavar="FILE", help="the gate file (TOML)")
    add("--baseline", metavar="FILE", help="what relative gates compare with, instead of what the file names")
    add("--machine-class", metavar="NAME", help="default: from the CPU's model and the usable cores")
    add("--output", metavar="DIR", help="where the verdict's files go (default: into the run's folder)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Judge, write, print; return the exit code."""
    try:
        gates = read_gates(args.gates)
    except GateFileError as error:
        return _say(str(error), EXIT_GATES_WRONG)
    try:
        folder, *repeats = [find_results(path) for path in args.results]
    except ResultsError as error:
        return _say(str(error), EXIT_NO_DATA)
    try:
        verdict = judge_run(folder, gates, args.baseline, repeats=repeats, machine_class=args.machine_class)
    except BaselineError as error:
        return _say(str(error), USAGE)
    except ResultsError as error:  # records that are not what a run writes: neither passed nor failed
        return _say(str(error), EXIT_INVALID)
    code = verdict.exit_code
    files: list[Path] = []
    try:
        output = Path(args.output) if args.output else folder
        files = write_outputs(output, verdict)
    except ResultsError as error:
        # The verdict stands; but a CI that waits for the files must not see a pass.
        code = _say(f"{error}: choose another folder with --output DIR", code or USAGE)
    print_verdict(verdict, [str(path) for path in files])
    try:
        for line in tell_github(verdict):
            print(line)
    except ResultsError as error:
        code = _say(str(error), code or USAGE)
    return code


def _say(message: str, code: int) -> int:
    print(f"harness gate: {message}", file=sys.stderr)
    return code

"""``harness compare``: two gateways, models or builds; live and interleaved, or from finished runs."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from harness.commands.interleave import Plan, play
from harness.judge.comparing import Comparison, compare, read_side
from harness.judge.folders import runs_in
from harness.judge.verdict import EXIT_FAIL, EXIT_INVALID, EXIT_NO_DATA, EXIT_PASS
from harness.judge.wording import print_comparison
from harness.observe.results import ResultsError

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

USAGE, INTERRUPTED = 2, 130


def add_parser(subparsers: Subparsers) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "compare",
        help="compare two gateways, models or builds",
        description="A and B are two URLs (or sim): then both are run in turn, ABABAB, with the same seed "
        "and prompts. Or they are finished runs, or folders of runs. Exit code 0: B is not worse, 20: it is, "
        "21: too little to tell, 22: a side has only invalid runs.",
    )
    add = parser.add_argument
    add("a", metavar="A", help="URL, sim, or results")
    add("b", metavar="B", help="URL, sim, or results")
    add("--runs", type=int, default=5, metavar="N", help="live: runs of each side (default: %(default)s)")
    add(
        "--results",
        default="results/compare",
        metavar="DIR",
        help="live: where runs go (default: %(default)s)",
    )
    add("--locust", default="", metavar="OPTIONS", help="live: Locust's options for both, as one text")
    add("--with-a", default="", metavar="OPTIONS", help="live: more of them for A, as in '--model one'")
    add("--with-b", default="", metavar="OPTIONS", help="live: more of them for B")
    add("--confidence", type=float, default=0.95, metavar="P", help="default: %(default)s")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compare and print; return the exit code."""
    if not 0.5 <= args.confidence < 1.0:
        return _say(f"--confidence: expected a number from 0.5 to below 1, got {args.confidence}", USAGE)
    live = [_is_target(side) for side in (args.a, args.b)]
    if live[0] != live[1]:
        return _say("A and B: give two URLs, or two results", USAGE)
    try:
        if all(live):
            return _live(args)
        if args.locust:
            return _say("--locust is for two URLs: these runs are finished", USAGE)
        return _judge(args, runs_in([args.a]), runs_in([args.b]), (args.a, args.b))
    except ResultsError as error:
        return _say(str(error), EXIT_NO_DATA)
    except KeyboardInterrupt:
        return INTERRUPTED


def _live(args: argparse.Namespace) -> int:
    if args.runs < 1:
        return _say(f"--runs: expected a whole number of at least 1, got {args.runs}", USAGE)
    both, own_a, own_b = (shlex.split(text) for text in (args.locust, args.with_a, args.with_b))
    plan = Plan(args.a, args.b, args.runs, Path(args.results), both, own_a, own_b)
    failure = play(plan, sys.stderr)
    if failure is not None:
        return _say(failure, USAGE)
    return _judge(args, runs_in([plan.folder("a")]), runs_in([plan.folder("b")]), plan.labels)


def _judge(args: argparse.Namespace, a: list[Path], b: list[Path], labels: tuple[str, str]) -> int:
    ours, said = read_side(labels[0], a)
    theirs, also = read_side(labels[1], b)
    for line in (*said, *also):
        _say(line, 0)
    for side, lines in ((ours, said), (theirs, also)):
        if not side.runs:
            code = EXIT_INVALID if lines else EXIT_NO_DATA
            return _say(f"{side.label}: no run to compare", code)
    comparison = compare(ours, theirs, args.confidence)
    print_comparison(comparison)
    return _code(comparison)


def _code(comparison: Comparison) -> int:
    return {"worse": EXIT_FAIL, "cannot tell": EXIT_NO_DATA}.get(comparison.word, EXIT_PASS)


def _is_target(side: str) -> bool:
    return side == "sim" or "://" in side


def _say(message: str, code: int) -> int:
    print(f"harness compare: {message}", file=sys.stderr)
    return code

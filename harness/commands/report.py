"""``harness report``: finished runs as one HTML page that opens offline."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from harness.judge.files import write_whole
from harness.judge.report.page import build_report
from harness.observe.results import ResultsError, find_results

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

USAGE = 2
REPORT = "report.html"


def add_parser(subparsers: Subparsers) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "report",
        help="finished runs as one HTML page",
        description="One self-contained HTML page; several runs stand side by side. It shows the verdict "
        "that `harness gate` left beside the records, if there is one.",
    )
    add = parser.add_argument
    add("results", metavar="RESULTS", nargs="+", help="a run's folder, or the folder given to --results")
    add("--output", metavar="FILE", type=Path, help=f"default: {REPORT} in the (first) run's folder")
    add("--title", default="", metavar="TEXT", help="what was tested, in words (default: the run's name)")
    add("--redact", action="store_true", help="black out hosts, models and tags; drop what servers wrote")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the page and print where it is; 2 if there is nothing to show or no place to write."""
    try:
        folders = [find_results(path) for path in args.results]
        page = build_report(folders, args.title, args.redact)
        path = write_whole(args.output or folders[0] / REPORT, page)
    except ResultsError as error:
        print(f"harness report: {error}", file=sys.stderr)
        return USAGE
    print(path)
    return 0

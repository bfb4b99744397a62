"""`harness export`: a finished run as OpenMetrics with timestamps, to backfill a Prometheus with."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from harness.observe.history import METRICS, read_history
from harness.observe.openmetrics import backfill
from harness.observe.results import ResultsError, find_results

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

USAGE = 2


def add_parser(subparsers: Subparsers) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "export",
        help="a run as OpenMetrics with timestamps",
        description="Writes what the exporter showed during a run. Backfill it with: "
        "promtool tsdb create-blocks-from openmetrics FILE DATA_DIR",
    )
    parser.add_argument("results", metavar="RESULTS", help="a run's folder, or the folder given to --results")
    parser.add_argument(
        "-o", "--output", metavar="FILE", default="-", help="where to write (default: stdout)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the text; return 0, or 2 if there is nothing to export or nowhere to write."""
    try:
        path = find_results(args.results) / METRICS
        made = backfill(read_history(path))
        if args.output == "-":
            made.write(sys.stdout)
            return 0
        with Path(args.output).open("w", encoding="utf-8") as file:
            count = made.write(file)
    except ResultsError as error:
        print(f"harness export: {error}", file=sys.stderr)
        return USAGE
    except OSError as error:
        print(f"harness export: cannot write {args.output} ({error.strerror})", file=sys.stderr)
        return USAGE
    print(f"harness export: {count:,} samples of {path.parent.name} in {args.output}", file=sys.stderr)
    return 0

"""`harness dashboards`: writes the Grafana boards, Prometheus rules and provisioning, or checks them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from harness.observe.boards import files, rules

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

STALE = 1
USAGE = 2


def add_parser(subparsers: Subparsers) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "dashboards",
        help="Grafana boards and Prometheus rules",
        description="Writes dashboards/ (boards, rules, provisioning) and docs/metrics.md.",
    )
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is stale")
    parser.add_argument("--root", metavar="DIR", default=".", help="where to write (default: here)")
    parser.add_argument(
        "--runbook",
        metavar="URL",
        default=rules.RUNBOOK,
        help="where your alerts' readers find the runbook (default: %(default)s)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write or check; return 0, 1 if a file is stale, 2 if nothing can be written."""
    root = Path(args.root)
    made = files.generate(args.runbook)
    if args.check:
        faults = files.stale(root, made)
        for fault in faults:
            print(f"harness dashboards: {fault}", file=sys.stderr)
        if faults:
            print("harness dashboards: write them anew with `harness dashboards`", file=sys.stderr)
            return STALE
        print(f"harness dashboards: {len(made)} files are fresh")
        return 0
    try:
        files.write(root, made)
    except OSError as error:
        print(f"harness dashboards: cannot write {error.filename} ({error.strerror})", file=sys.stderr)
        return USAGE
    print(f"harness dashboards: wrote {len(made)} files below {root / 'dashboards'} and {root / 'docs'}")
    return 0

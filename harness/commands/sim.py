"""`harness sim`: the simulated gateway as a command."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from harness.sim import options

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def add_parser(subparsers: Subparsers) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "sim",
        help="the simulated gateway",
        description="Behaves, and misbehaves, like real gateways. One line says when it is ready.",
    )
    options.add_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve until told to stop; return the exit code."""
    return options.run(args)

"""``harness``: one command with subcommands. Reads arguments, wires rooms together, returns exit codes."""

from __future__ import annotations

import argparse
import difflib
import importlib
import sys
from collections.abc import Sequence
from typing import NoReturn

from harness import __version__

# Name of the command and of its module in harness.commands -> what it does. A module is imported only when
# its command is meant.
COMMANDS: dict[str, str] = {
    "run": "run a load test: Locust with the packaged locustfile",
    "probe": "make one request and watch its stream",
    "capacity": "search the highest load that holds your objectives",
    "check": "check what a gateway promises, statement by statement",
    "read": "judge a captured stream offline",
    "sim": "run the simulated gateway",
    "dashboards": "write the Grafana boards and Prometheus rules, or check that they are fresh",
    "export": "a finished run as OpenMetrics with timestamps, to backfill a Prometheus",
    "gate": "judge a finished run against a gate file",
    "baseline": "keep the numbers that relative gates compare with",
    "compare": "compare two gateways, models or builds",
    "report": "finished runs as one HTML page that opens offline",
    "show": "look into a finished run: failed and slow streams, one stream's timeline",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command in *argv* (default: the process's arguments) and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help"):
        print(usage(), file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    if arguments[0] in ("-V", "--version"):
        print(f"harness {__version__}")
        return 0
    name = arguments[0]
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"use one of {', '.join(COMMANDS)}"
        print(f"harness: unknown command {name!r}: {hint}", file=sys.stderr)
        return 2
    module = importlib.import_module(f"harness.commands.{name}")
    if name == "run":  # everything after it belongs to Locust's own parser
        return int(module.run_locust(arguments[1:]))
    if name == "capacity":
        return int(module.run_capacity(arguments[1:]))
    parser = _Parser(prog="harness")
    module.add_parser(parser.add_subparsers(required=True))
    args = parser.parse_args(arguments)
    return int(args.run(args))


class _Parser(argparse.ArgumentParser):
    """A parser whose complaints are one line; the whole usage is for those who ask."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} ({self.prog} --help explains)\n")


def usage() -> str:
    """Return the list of commands."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {about}" for name, about in COMMANDS.items()]
    return "\n".join(
        [
            "usage: harness COMMAND …",
            "",
            "Load testing and stall detection for streaming LLM gateways.",
            "",
            *lines,
            "",
            "harness COMMAND --help explains a command's options.",
        ]
    )

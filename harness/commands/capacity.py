"""``harness capacity``: the highest load that holds the objectives, searched with Locust and no web UI."""

from __future__ import annotations

import argparse
import sys

from harness.commands.probe import NO_MODEL
from harness.commands.run import run_locust
from harness.gateways import GatewayFileError, load

# The search's own flags, and what they are called as parameters of the shape.
_PARAMETERS = {"from": "first", "to": "last", "step-time": "step_time", "settle": "settle"}


def run_capacity(arguments: list[str]) -> int:
    """Search with *arguments*; what is not the search's own goes to Locust, with all our options."""
    parser = _parser()
    args, others = parser.parse_known_args(arguments)
    if args.load == "rate" and not any(other.startswith("--arrivals") for other in others):
        others += ["--arrivals", "poisson"]
    given = {name: getattr(args, field) for name, field in _PARAMETERS.items()}
    shape = ",".join(f"{name}={value}" for name, value in given.items() if value is not None)
    return run_locust(
        [
            "--headless", "--host", args.url, "--shape", f"capacity:{shape}", "--only-summary",
            "--metrics-linger", "0s", "--gateway", args.gateway, *_model(args), *_quiet(others),
            *(word for slo in args.slo for word in ("--slo", slo)), *others,
        ]
    )  # fmt: skip


def _model(args: argparse.Namespace) -> list[str]:
    """Return the model that was asked for; where nobody names one, any will do, as for a probe."""
    if args.model:
        return ["--model", args.model]
    try:
        named = all(endpoint.model for endpoint in load(args.gateway).endpoints.values())
    except GatewayFileError:
        return []  # Locust's side says what is wrong with it
    return [] if named else ["--model", NO_MODEL]


def _quiet(others: list[str]) -> list[str]:
    """Locust logs each change of the load; the search says more with less."""
    return [] if any(other in ("-L", "--loglevel") for other in others) else ["--loglevel", "WARNING"]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        """Complain in one line."""
        print(f"{self.prog}: {message} ({self.prog} --help explains)", file=sys.stderr)
        sys.exit(2)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="harness capacity",
        allow_abbrev=False,
        description="Searches the highest load that holds every objective: it doubles until one breaks, "
        "then the gap is halved; the answer is measured until it is sure. Writes capacity.json.",
        epilog="All other options are those of `harness run`: --protocols, --max-tokens, --think, "
        "--api-key-env, --results … Exit code 0: found, 20: even the lowest load breaks, 21: not sure, "
        "22: the load generator was the bottleneck, 2: wrong usage.",
    )
    add = parser.add_argument
    add("url", metavar="URL", help="the gateway, or sim")
    add(
        "--slo",
        action="append",
        required=True,
        metavar='"ttft p95 < 1s"',
        help='what has to hold (repeatable): METRIC pNN < DURATION, or "error_rate < 1%%"',
    )
    add(
        "--load",
        choices=("users", "rate"),
        default="users",
        help="users, who wait for their answers, or requests per second, which do not (default: users)",
    )
    add("--gateway", default="generic", metavar="NAME|FILE", help="whose promises and limits hold")
    add("--model", default="", metavar="NAME|chat=X,messages=Y", help="default: the profile's")
    add("--from", dest="first", metavar="N", help="the first load (default: 1)")
    add("--to", dest="last", metavar="N", help="the highest load; required unless URL is this machine")
    add("--step-time", metavar="DURATION", help="how long a step is measured at most (default: 30s)")
    add(
        "--settle",
        metavar="DURATION",
        help="what of a step does not count (default: as long as requests take)",
    )
    return parser

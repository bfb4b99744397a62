"""The harness's options in Locust's parser: command line, its files, environment (``LOCUST_…``), web UI.

Every default has the type of its option (an empty text stands for "not given"), because Locust's web
UI converts what it gets to the type of the default. Meaning is checked in `harness.swarm.configure`,
not here: a wrong value has to be one line, and argparse would print the whole usage.
"""

from __future__ import annotations

from locust.argument_parser import LocustArgumentParser

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from harness.swarm.exposed import stay_local
from harness.swarm.load_options import add_load_options

SEPARATOR = ","
LINES = "\n"


class _Joined(argparse._AppendAction):
    """A repeatable option kept as one text, so that the web UI can show and change it."""

    separator = SEPARATOR

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        before = getattr(namespace, self.dest) if getattr(namespace, f"_{self.dest}_given", False) else ""
        setattr(namespace, f"_{self.dest}_given", True)
        setattr(namespace, self.dest, f"{before}{self.separator}{values}" if before else str(values))


class _JoinedLines(_Joined):
    """As `_Joined`, for values that may hold commas."""

    separator = LINES


def add_options(parser: LocustArgumentParser) -> None:
    """Give Locust's *parser* the options of the harness."""
    _target(parser)
    _requests(parser)
    _judging(parser)
    _simulator(parser)
    _run(parser)
    _transport(parser)
    add_load_options(_adder(parser), _JoinedLines)
    stay_local(parser)


class _Text(str):
    """A help text that is shown as it is: argparse would format it, and Locust's page would not."""

    __slots__ = ()

    def __mod__(self, _: Any) -> str:
        return str(self)


def _adder(parser: LocustArgumentParser) -> Callable[..., Any]:
    """Return what adds an option, with the environment variable that Locust's own would have."""

    def add(flag: str, **details: Any) -> None:
        details["help"] = _Text(details["help"])
        parser.add_argument(flag, env_var=f"LOCUST_{flag[2:].replace('-', '_').upper()}", **details)

    return add


def _target(parser: LocustArgumentParser) -> None:
    add = _adder(parser)
    add(
        "--gateway",
        default="generic",
        metavar="NAME|FILE",
        help="Whose promises and limits hold: hopbase, sabiuco, generic, or the path of your own .toml file.",
    )
    add(
        "--protocols",
        default="",
        metavar="chat=2,responses=1,messages=1",
        help="Protocols and their share of users. Default: what the gateway's profile names.",
    )
    add(
        "--model",
        default="",
        metavar="NAME|chat=X,messages=Y",
        help="The model, for all protocols or per protocol. Default: the profile's.",
    )
    add(
        "--api-key-env",
        default="",
        metavar="VAR[,VAR…]",
        include_in_web_ui=False,
        help="Environment variables that hold API keys: one key per user, in turn. Default: the profile's.",
    )
    add(
        "--header",
        action=_JoinedLines,
        default="",
        metavar="NAME=VALUE|NAME=env:VAR",
        include_in_web_ui=False,
        help="An extra request header (repeatable); env:VAR takes a secret from the environment.",
    )


def _requests(parser: LocustArgumentParser) -> None:
    add = _adder(parser)
    add(
        "--prompts",
        default="",
        metavar="FILE.jsonl",
        include_in_web_ui=False,
        help='Prompts, one JSON object a line: {"prompt": "…"} or {"messages": […]}. Default: built in.',
    )
    add(
        "--extra-body",
        default="",
        metavar="FILE",
        include_in_web_ui=False,
        help="A JSON object that is merged into every request body.",
    )
    add(
        "--max-tokens",
        default="256",
        metavar="LENGTH",
        help="Longest answer to ask for, in tokens; 0 leaves it to the gateway. Default: 256. Or drawn for "
        "each request: 100-2000, lognormal:MEDIAN,SIGMA[,MAX].",
    )
    add(
        "--cache",
        default="bust",
        choices=["bust", "allow"],
        help="bust: a nonce in each prompt, so that no prefix cache answers; allow: none.",
    )
    add(
        "--think",
        default="0s",
        metavar="DURATION|FROM-TO",
        help="How long a user waits before its next request: 2s, or 1s-5s at random.",
    )
    add(
        "--retry",
        default="none",
        choices=["none", "sdk", "resend"],
        help="After a failure: none; what the official SDKs do; or resend after broken streams too.",
    )
    add(
        "--max-retries",
        type=int,
        default=2,
        metavar="N",
        help="Retries of one request. Default: 2, as the SDKs.",
    )
    add(
        "--retry-budget",
        default="",
        metavar="DURATION",
        help="No retry that would begin later than this after the request's planned start.",
    )


def _judging(parser: LocustArgumentParser) -> None:
    add = _adder(parser)
    add(
        "--limit",
        action=_Joined,
        default="",
        metavar="NAME=DURATION",
        help="Override a limit (repeatable): connect headers first_byte first_token progress silence "
        "close total; NAME.warn=… for its warning.",
    )
    add(
        "--on-stall",
        default="close",
        choices=["close", "watch"],
        help="At a hard limit close the stream, or watch whether it comes back (up to total).",
    )
    add(
        "--warmup",
        default="0s",
        metavar="DURATION",
        help="Requests of the first DURATION are counted apart, outside the percentiles.",
    )
    add(
        "--time-scale",
        type=float,
        default=1.0,
        metavar="X",
        help="Multiplies the profile's durations, limits and keepalives; only for loopback hosts.",
    )


def _simulator(parser: LocustArgumentParser) -> None:
    add = _adder(parser)
    add(
        "--sim-mix",
        default="ok=100",
        metavar="FAULT=WEIGHT,…",
        help="With host sim: which faults it plays how often (harness sim --list names them).",
    )
    add(
        "--sim-truth",
        default="",
        metavar="FILE",
        include_in_web_ui=False,
        help="With host sim: the simulator's own log of what it really sent.",
    )


def _run(parser: LocustArgumentParser) -> None:
    add = _adder(parser)
    add(
        "--seed",
        type=int,
        default=1,
        metavar="N",
        help="Seed of prompts, think times and the simulator's mix.",
    )
    add(
        "--run-name",
        default="",
        metavar="NAME",
        help="Name of the run in results and metrics. Default: the time of its start.",
    )
    add(
        "--tag",
        action=_Joined,
        default="",
        metavar="KEY=VALUE",
        help="Noted in run.json (repeatable): a build, a commit, a region.",
    )
    add(
        "--results",
        default="results",
        metavar="DIR",
        include_in_web_ui=False,
        help="Where each run leaves its folder of records. Default: results.",
    )
    add(
        "--gates",
        default="",
        metavar="FILE",
        include_in_web_ui=False,
        help="Judge the run by this gate file; its verdict decides the exit code.",
    )
    add(
        "--baseline",
        default="",
        metavar="FILE",
        include_in_web_ui=False,
        help="With --gates: what relative gates compare with, instead of what the file names.",
    )
    add(
        "--machine-class",
        default="",
        metavar="NAME",
        include_in_web_ui=False,
        help="With --gates: which baselines hold here. Default: from CPU model and usable cores.",
    )
    add(
        "--retry-invalid",
        action="store_true",
        default=False,
        include_in_web_ui=False,
        help="With --gates, headless: run once more if the run is invalid.",
    )
    add(
        "--confirm",
        action="store_true",
        default=False,
        include_in_web_ui=False,
        help="With --gates, headless: a regression counts only if a second run shows it too.",
    )
    add(
        "--tolerate-worker-loss",
        action="store_true",
        default=False,
        include_in_web_ui=False,
        help="A worker that dies does not make the run invalid.",
    )
    add(
        "--save-content",
        action="store_true",
        default=False,
        include_in_web_ui=False,
        help="Keep prompts and raw answers in content.jsonl.",
    )
    add(
        "--metrics-host",
        default="127.0.0.1",
        metavar="ADDRESS",
        include_in_web_ui=False,
        help="Address of the Prometheus exporter. Default: 127.0.0.1.",
    )
    add(
        "--metrics-port",
        type=int,
        default=9646,
        metavar="PORT",
        include_in_web_ui=False,
        help="Port of the Prometheus exporter, 0 for none. Default: 9646.",
    )
    add(
        "--metrics-linger",
        default="15s",
        metavar="DURATION",
        include_in_web_ui=False,
        help="How long the exporter waits at the end for a last scrape. Default: 15s.",
    )
    add(
        "--no-preflight",
        action="store_true",
        default=False,
        include_in_web_ui=False,
        help="Do not try one request per protocol before the load.",
    )
    add(
        "--debug",
        action="store_true",
        default=False,
        include_in_web_ui=False,
        help="Show tracebacks of errors.",
    )


def _transport(parser: LocustArgumentParser) -> None:
    add = _adder(parser)
    add(
        "--ca-file",
        default="",
        metavar="FILE",
        include_in_web_ui=False,
        help="Certificate authorities (PEM) to trust instead of the system's.",
    )
    add(
        "--client-cert",
        default="",
        metavar="FILE[,KEYFILE]",
        include_in_web_ui=False,
        help="A client certificate with its key (PEM).",
    )
    add(
        "--insecure",
        action="store_true",
        default=False,
        include_in_web_ui=False,
        help="Verify no certificate. Never against a gateway that is not yours.",
    )
    add(
        "--connect-to",
        default="",
        metavar="HOST:PORT",
        include_in_web_ui=False,
        help="Dial this, but keep the URL's name in SNI and Host: one pod behind the balancer.",
    )
    add(
        "--connection",
        default="per-user",
        choices=["per-user", "per-request"],
        help="Keep one connection per user, or open one per request.",
    )

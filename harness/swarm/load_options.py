"""The options that shape the load: arrivals, shapes, lengths, users who leave, scenarios, bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.load.shapes import EXAMPLES

Add = Callable[..., Any]


def add_load_options(add: Add, lines: type[Any]) -> None:
    """Add the options with *add*; *lines* is the action of a repeatable one."""
    _arrivals(add)
    _content(add)
    _bounds(add, lines)


def _arrivals(add: Add) -> None:
    add(
        "--arrivals",
        default="closed",
        choices=["closed", "poisson", "constant", "replay"],
        help="closed: a user waits for its answer before it asks again. poisson, constant: requests arrive "
        "whether or not others were answered; each user offers one per second. replay: as a log says.",
    )
    add(
        "--rate",
        default="",
        metavar="R",
        include_in_web_ui=False,  # there the number of users says it
        help="Requests per second of poisson and constant arrivals. Default: one per user.",
    )
    add(
        "--max-in-flight",
        type=int,
        default=5000,
        metavar="N",
        help="Open requests of one process beyond which arrivals are dropped and counted. Default: 5000.",
    )
    add(
        "--replay-file",
        default="",
        metavar="FILE",
        include_in_web_ui=False,
        help="The log to replay: JSON lines or CSV with a time, and tokens or prompts if it has them.",
    )
    add(
        "--replay-columns",
        default="",
        metavar="COLUMN=NAME[:UNIT],…",
        include_in_web_ui=False,
        help="Where the log keeps time, prompt, messages, prompt_tokens, max_tokens, protocol, model; "
        "as in time=ts:ms,prompt_tokens=in.",
    )
    add(
        "--speed",
        type=float,
        default=1.0,
        metavar="X",
        help="Replay this many times as fast as the log was recorded.",
    )
    add(
        "--shape",
        default="",
        metavar="KIND:…",
        help=f"How users (or with open arrivals requests per second) change over time: {EXAMPLES}; "
        "capacity:from=1,to=100,step-time=30s with --slo.",
    )


def _content(add: Add) -> None:
    add(
        "--prompt-tokens",
        default="",
        metavar="LENGTH",
        help="Make prompts of about this many tokens: 500, 100-2000 or lognormal:MEDIAN,SIGMA[,MAX].",
    )
    add(
        "--shared-prefix",
        default="",
        metavar="TOKENS[:COUNT]",
        help="Put one of COUNT (default 1) system messages of so many tokens before every prompt: what a "
        "prefix cache can answer.",
    )
    add(
        "--turns",
        default="1",
        metavar="N|FROM-TO",
        help="Requests of one conversation; each quotes the answers before it. Default: 1.",
    )
    add(
        "--reasoning-effort",
        default="",
        metavar="EFFORT",
        help="How much a reasoning model shall think (none, low, high …), as each protocol writes it.",
    )
    add(
        "--abandon",
        default="",
        metavar="SHARE%@WHEN,…",
        help="Users who leave early: 5%@2s, 5%@first-token, 5%@first-token+20tokens.",
    )
    add(
        "--scenarios",
        default="",
        metavar="FILE.toml",
        include_in_web_ui=False,
        help="Several groups of users, each with its own weight, protocols, prompts, lengths and keys.",
    )


def _bounds(add: Add, lines: type[Any]) -> None:
    add(
        "--max-requests",
        type=int,
        default=0,
        metavar="N",
        help="End the run after so many requests. 0: no bound.",
    )
    add(
        "--token-budget",
        type=int,
        default=0,
        metavar="N",
        help="End the run when its answers and prompts have cost so many tokens. 0: no bound.",
    )
    add(
        "--slo",
        action=lines,
        default="",
        metavar='"ttft p95 < 1s"',
        help='With --shape capacity: what has to hold (repeatable), as in "error_rate < 1%".',
    )

"""Load options to settings: arrivals, lengths, users who leave, scenarios, budgets; each fault one line."""

from __future__ import annotations

import math
import re
import tomllib
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from harness.load.abandon import AbandonError, Leave, parse_abandon
from harness.load.arrivals import KINDS, OpenLoad, Order
from harness.load.budget import Budget
from harness.load.lengths import Length, LengthError, parse_length, words
from harness.load.prompts import Prompt
from harness.load.replay import ReplayError, read_orders
from harness.load.settings import Settings, UsageError
from harness.swarm.options import LINES
from harness.swarm.search_options import RATE_UNIT
from harness.swarm.shaping import is_capacity
from harness.swarm.values import at_least, choice, near

_PREFIX = re.compile(r"([0-9]{1,9})(?::([0-9]{1,4}))?")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,49}")
_EFFORT = re.compile(r"[a-z]{0,20}")

# What a scenario may say for itself: options of the same name, that concern what its users ask.
SCENARIO_OPTIONS = (
    "protocols", "model", "api-key-env", "header", "prompts", "extra-body", "max-tokens", "prompt-tokens",
    "shared-prefix", "turns", "reasoning-effort", "cache", "think", "retry", "max-retries", "retry-budget",
    "abandon",
)  # fmt: skip


def load_settings(options: Namespace) -> dict[str, Any]:
    """Return the fields of `Settings` that describe the load, but for the scenarios. Raises `UsageError`."""
    longest = length_of(str(options.max_tokens), "--max-tokens", least=0)
    assert longest is not None
    if not _EFFORT.fullmatch(options.reasoning_effort):
        raise UsageError(f"--reasoning-effort: expected a word such as low, got {options.reasoning_effort!r}")
    turns = length_of(options.turns, "--turns")
    assert turns is not None
    return {
        "load": open_load(options),
        "abandon": abandon_of(options.abandon),
        "max_tokens": 0 if longest.constant is None else longest.constant,
        "answer_tokens": longest if longest.constant is None else None,
        "prompt_tokens": length_of(options.prompt_tokens, "--prompt-tokens"),
        "shared_prefixes": prefixes_of(options.shared_prefix, options.seed),
        "turns": turns,
        "reasoning_effort": options.reasoning_effort,
        "budget": Budget(
            at_least(options.max_requests, 0, "--max-requests"),
            at_least(options.token_budget, 0, "--token-budget"),
        ),
    }


def open_load(options: Namespace) -> OpenLoad:
    """Return how requests arrive."""
    kind = choice(options.arrivals, KINDS, "--arrivals")
    rate = rate_of(options.rate)
    if rate is not None and kind not in ("poisson", "constant"):
        raise UsageError("--rate needs arrivals that have one: pass --arrivals poisson or constant")
    if not 0.0 < options.speed < math.inf:
        raise UsageError(f"--speed: expected a number above 0, got {options.speed:g}")
    orders: tuple[Order, ...] = ()
    if kind == "replay":
        if not options.replay_file:
            raise UsageError("--arrivals replay: pass the log with --replay-file FILE")
        try:
            orders = read_orders(options.replay_file, options.replay_columns)
        except ReplayError as error:
            raise UsageError(f"--replay-file: {error}") from None
    elif options.replay_file:
        raise UsageError("--replay-file needs --arrivals replay")
    return OpenLoad(
        kind=kind,
        rate_per_user=_rate_per_user(rate, options),
        max_in_flight=at_least(options.max_in_flight, 1, "--max-in-flight"),
        orders=orders,
        speed=options.speed,
    )


def rate_of(text: str) -> float | None:
    """Return the requests per second in *text*; None if it is empty."""
    if not str(text).strip():
        return None
    try:
        rate = float(text)
    except ValueError:
        rate = math.nan
    if not 0.0 < rate <= 100_000.0:
        raise UsageError(f"--rate: expected requests per second above 0, got {text}")
    return rate


def _rate_per_user(rate: float | None, options: Namespace) -> float:
    if is_capacity(options.shape):
        return RATE_UNIT
    return 1.0 if rate is None else rate / users_for(rate, options.num_users)


def users_for(rate: float | None, users: int | None) -> int:
    """Return how many of Locust's users share *rate*: those that were asked for, else one per request."""
    return users or math.ceil(rate or 1.0)


def abandon_of(text: str) -> tuple[Leave, ...]:
    """Return the rules of users who leave."""
    try:
        return parse_abandon(text)
    except AbandonError as error:
        raise UsageError(f"--abandon: {error}") from None


def length_of(text: str, option: str, least: int = 1) -> Length | None:
    """Return the distribution of lengths in *text*; None if it is empty."""
    if not text.strip():
        return None
    try:
        length = parse_length(text)
    except LengthError as error:
        raise UsageError(f"{option}: {error}") from None
    if length.low < least:
        raise UsageError(f"{option}: expected at least {least}, got {text}")
    return length


def prefixes_of(text: str, seed: int) -> tuple[Prompt, ...]:
    """Return the system messages that requests share."""
    if not text.strip():
        return ()
    match = _PREFIX.fullmatch(text.strip())
    if match is None or not int(match[1]) or match[2] == "0":
        raise UsageError(f"--shared-prefix: expected TOKENS or TOKENS:COUNT as in 2000:10, got {text!r}")
    tokens, count = int(match[1]), int(match[2] or 1)
    return tuple(
        Prompt(({"role": "system", "content": words(tokens, Random(f"{seed}-prefix-{number}"))},))
        for number in range(count)
    )


def scenarios_of(options: Namespace, settings_for: Callable[[Namespace], Settings]) -> dict[str, Settings]:
    """Return the scenarios of ``--scenarios`` by name; *settings_for* makes settings of options."""
    path = options.scenarios
    if not path:
        return {}
    try:
        data = tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"--scenarios: cannot read {path}: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"--scenarios: {path}: {error}") from None
    tables = data.get("scenario")
    if unknown := [key for key in data if key != "scenario"]:
        raise UsageError(f"--scenarios: {path}: unknown key {unknown[0]!r}: expected [[scenario]] tables")
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        raise UsageError(f'--scenarios: {path} has no [[scenario]] with a name = "…"')
    found: dict[str, Settings] = {}
    for number, table in enumerate(tables, 1):
        name = table.get("name")
        place = f"--scenarios: {path}, scenario {number}"
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise UsageError(f"{place}: expected a name of letters, digits, dot, dash, got {name!r}")
        if name in found:
            raise UsageError(f"{place}: the name {name} stands twice")
        found[name] = _scenario(table, options, settings_for, f"--scenarios: {path}, scenario {name}")
    return found


def _scenario(
    table: dict[str, Any], options: Namespace, settings_for: Callable[[Namespace], Settings], place: str
) -> Settings:
    own = Namespace(**vars(options))
    own.scenarios = ""
    weight: Any = 1
    for key, value in table.items():
        option = key.replace("_", "-")
        if option == "weight":
            weight = value
        elif option in SCENARIO_OPTIONS:
            setattr(own, option.replace("-", "_"), _as_option(option, value, place))
        elif key != "name":
            raise UsageError(
                f"{place}: unknown key {key!r}{near(option, ['name', 'weight', *SCENARIO_OPTIONS])}"
            )
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < math.inf:
        raise UsageError(f"{place}: expected a weight above 0, got {weight!r}")
    try:
        return replace(settings_for(own), weight=float(weight))
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from None


def _as_option(option: str, value: Any, place: str) -> Any:
    """Return the value as the command line would have given it."""
    if option == "max-retries":
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise UsageError(f"{place}: {option}: expected a whole number, got {value!r}")
    if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
        return (LINES if option == "header" else ",").join(value)
    if isinstance(value, str | int) and not isinstance(value, bool):
        return str(value)
    raise UsageError(f"{place}: {option}: expected a text or a number, got {value!r}")

"""Options to settings: every value checked, each fault one line that says what and how to mend it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from harness.gateways import PROTOCOLS, names
from harness.load.prompts import BUILT_IN, Prompt, PromptsError, read_prompts
from harness.load.settings import Settings, UsageError
from harness.observe.results import LATEST
from harness.stream.retry import POLICIES, Policy
from harness.swarm.loading import load_settings, scenarios_of
from harness.swarm.shaping import tolerated_lateness
from harness.swarm.target import (
    SIM,
    check_models,
    check_url,
    headers_of,
    keys_of,
    models_of,
    profile_of,
    protocols_of,
    secrets_of,
)
from harness.swarm.values import at_least, choice, duration, split
from harness.transport import TransportError, TransportOptions, make_ssl_context

_EVEN_MIX = "ok=100"


@dataclass(frozen=True, slots=True)
class SimulatorPlan:
    """How the simulated gateway is to be started; a change restarts it."""

    gateway: str
    mix: str
    seed: int
    time_scale: float
    truth: str


def simulator_plan(options: Namespace) -> SimulatorPlan:
    """Return what *options* say of the simulator."""
    mix = options.sim_mix.strip() or _EVEN_MIX
    return SimulatorPlan(options.gateway, mix, options.seed, options.time_scale, options.sim_truth)


def settings_of(
    options: Namespace,
    host: str | None,
    simulator_url: str | None = None,
    built_in: Collection[str] = PROTOCOLS,
) -> Settings:
    """Return the settings of a run against *host*, ``sim`` or a URL. Raises `UsageError`.

    *simulator_url* is where the simulator that was started for ``sim`` answers; without it the rest
    is checked all the same. *built_in* are the protocols that have a built-in user in this run: with
    users of one's own alone, only they know which protocols and models they will ask for.
    """
    simulated = host == SIM
    if getattr(options, "profile", None) in names():
        raise UsageError(
            f"--profile {options.profile} is only a label: did you mean --gateway {options.profile}?"
        )
    base_url = simulator_url or "" if simulated else check_url(host or "")
    if not simulated and simulator_plan(options).mix != _EVEN_MIX:
        raise UsageError("--sim-mix belongs to the simulated gateway: pass --host sim")
    profile = profile_of(options.gateway, options.time_scale, options.limit, base_url)
    models = models_of(options.model, profile, simulated)
    protocols = protocols_of(options.protocols, profile)
    if built_in:
        asked, protocols = protocols, {name: n for name, n in protocols.items() if name in built_in}
        if not protocols:
            raise UsageError(
                f"--protocols: no user class speaks {', '.join(asked)} (chosen were: {', '.join(built_in)})"
            )
    elif not options.protocols.strip():
        protocols = {name: n for name, n in protocols.items() if name in models}
    check_models(models, protocols, profile)
    check_run(options)
    return Settings(
        base_url=base_url,
        profile=profile,
        protocols=protocols,
        models=models,
        prompts=prompts_of(options.prompts),
        simulated=simulated,
        keys=keys_of(options.api_key_env, profile, simulated),
        headers=headers_of(options.header),
        secrets=secrets_of(profile, protocols),
        extra_body=extra_body_of(options.extra_body),
        cache=choice(options.cache, ("bust", "allow"), "--cache"),
        think_s=think_of(options.think),
        on_stall=choice(options.on_stall, ("close", "watch"), "--on-stall"),
        warmup_s=duration(options.warmup, "--warmup"),
        time_scale=options.time_scale,
        seed=options.seed,
        retry=policy_of(options.retry, options.max_retries, options.retry_budget),
        save_content=options.save_content,
        transport=transport_of(options),
        tolerance_s=tolerated_lateness(options),
        scenarios=scenarios_of(options, partial(settings_of, host=host, simulator_url=simulator_url)),
        **load_settings(options),
    )


def check_run(options: Namespace) -> None:
    """Refuse what a run's folder and its record of itself could not hold."""
    name = options.run_name
    if name in (".", "..", LATEST) or "/" in name or not name.isprintable() or len(name.encode()) > 200:
        raise UsageError(f"--run-name: {name!r} cannot be a folder's name: choose another")
    tags_of(options.tag)


def prompts_of(path: str) -> tuple[Prompt, ...]:
    """Return the prompts of the file *path*, or the built-in ones."""
    if not path:
        return BUILT_IN
    try:
        return read_prompts(path)
    except PromptsError as error:
        raise UsageError(f"--prompts: {error}") from None


def extra_body_of(path: str) -> dict[str, Any]:
    """Return the JSON object in the file *path*."""
    if not path:
        return {}
    try:
        data = msgspec.json.decode(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        if isinstance(error, OSError):
            raise UsageError(f"--extra-body: cannot read {path}: {error.strerror}") from None
        raise UsageError(f"--extra-body: {path} is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise UsageError(f"--extra-body: {path} has to hold a JSON object")
    return data


def policy_of(name: str, max_retries: int, budget: str) -> Policy:
    """Return the retry policy."""
    return Policy(
        choice(name, POLICIES, "--retry"),
        at_least(max_retries, 0, "--max-retries"),
        duration(budget, "--retry-budget", positive=True) if budget else None,
    )


def think_of(text: str) -> tuple[float, float]:
    """Return the shortest and longest think time in seconds: ``2s`` or ``1s-5s``."""
    low, dash, high = text.partition("-")
    first = duration(low, "--think")
    last = duration(high, "--think") if dash else first
    if last < first:
        raise UsageError(f"--think: expected FROM-TO with FROM first, got {text!r}")
    return first, last


def transport_of(options: Namespace) -> TransportOptions:
    """Return how connections are made; certificates are read once, so that a wrong file shows now."""
    connection = choice(options.connection, ("per-user", "per-request"), "--connection")
    try:
        chosen = TransportOptions(
            ca_file=options.ca_file or None,
            client_cert=options.client_cert or None,
            insecure=options.insecure,
            connect_to=options.connect_to or None,
            per_request=connection == "per-request",
        )
        make_ssl_context(chosen)
    except TransportError as error:
        raise UsageError(str(error)) from None
    return chosen


def tags_of(text: str) -> dict[str, str]:
    """Return ``KEY=VALUE`` pairs."""
    tags = {}
    for entry in split(text):
        key, equals, value = entry.partition("=")
        if not equals or not key:
            raise UsageError(f"--tag: expected KEY=VALUE, got {entry!r}")
        tags[key] = value
    return tags

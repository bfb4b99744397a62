"""Options to settings: every value checked, each fault one line that says what and how to mend it."""

from __future__ import annotations

import difflib
import ipaddress
import os
import socket
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from harness.gateways import (
    LIMIT_NAMES,
    PROTOCOLS,
    DurationError,
    GatewayFileError,
    Profile,
    load,
    names,
    parse_duration,
)  # fmt: skip
from harness.load.prompts import BUILT_IN, Prompt, PromptsError, read_prompts
from harness.load.settings import Settings, UsageError
from harness.stream.retry import POLICIES, Policy
from harness.swarm.options import LINES, SEPARATOR
from harness.transport import TransportError, TransportOptions, make_ssl_context

SIM = "sim"

# What a simulated gateway answers to where its profile names no model.
SIM_MODEL = "sim"


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
    return SimulatorPlan(
        options.gateway, options.sim_mix, options.seed, options.time_scale, options.sim_truth
    )


def settings_of(options: Namespace, host: str | None, simulator_url: str | None = None) -> Settings:
    """Return the settings of a run against *host*, ``sim`` or a URL. Raises `UsageError`.

    *simulator_url* is where the simulator that was started for ``sim`` answers; without it the rest
    is checked all the same.
    """
    simulated = host == SIM
    check_profile_hint(options)
    if not simulated and (options.sim_truth or options.sim_mix != "ok=100"):
        raise UsageError("--sim-mix and --sim-truth belong to the simulated gateway: pass --host sim")
    base_url = simulator_url or "" if simulated else check_url(host or "")
    profile = profile_of(options.gateway, options.time_scale, options.limit, base_url)
    protocols = protocols_of(options.protocols, profile)
    keys = keys_of(options.api_key_env, profile, simulated)
    return Settings(
        base_url=base_url,
        profile=profile,
        protocols=protocols,
        models=models_of(options.model, profile, protocols, simulated),
        prompts=prompts_of(options.prompts),
        simulated=simulated,
        keys=keys,
        headers=headers_of(options.header, profile),
        extra_body=extra_body_of(options.extra_body),
        max_tokens=at_least(options.max_tokens, 0, "--max-tokens"),
        cache=choice(options.cache, ("bust", "allow"), "--cache"),
        think_s=think_of(options.think),
        on_stall=choice(options.on_stall, ("close", "watch"), "--on-stall"),
        warmup_s=duration(options.warmup, "--warmup"),
        time_scale=options.time_scale,
        seed=options.seed,
        retry=policy_of(options.retry, options.max_retries, options.retry_budget),
        save_content=options.save_content,
        transport=transport_of(options),
    )


def check_profile_hint(options: Namespace) -> None:
    """Locust's own ``--profile`` is a label; who gives it a gateway's name means ``--gateway``."""
    if getattr(options, "profile", None) in names():
        raise UsageError(
            f"--profile {options.profile} is only a label: did you mean --gateway {options.profile}?"
        )


def check_url(host: str) -> str:
    """Return *host* if it is the URL of a gateway."""
    if not host:
        raise UsageError("no host: pass --host URL, or --host sim for the simulated gateway")
    try:
        parts = urlsplit(host)
        parts.port  # noqa: B018 - the property checks the port
    except ValueError as error:
        raise UsageError(f"--host {host}: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(
            f"--host {host}: expected a URL such as http://127.0.0.1:8000, or sim for the simulated gateway"
        )
    return host


def profile_of(gateway: str, time_scale: float, limits: str, base_url: str) -> Profile:
    """Return the gateway's profile, scaled, with ``NAME=DURATION`` overrides (which are not scaled)."""
    try:
        profile = load(gateway)
    except GatewayFileError as error:
        raise UsageError(f"--gateway: {error}") from None
    if not 0 < time_scale < float("inf"):
        raise UsageError(f"--time-scale: expected a number above 0, got {time_scale:g}")
    if time_scale != 1.0:
        if base_url and not is_loopback(base_url):
            raise UsageError(
                f"--time-scale is only for gateways on this machine; {urlsplit(base_url).hostname} is not: "
                "a real gateway keeps its own time"
            )
        profile = profile.scaled(time_scale)
    for entry in split(limits):
        name, equals, text = entry.partition("=")
        if not equals:
            raise UsageError(f"--limit: expected NAME=DURATION, got {entry!r}")
        try:
            profile = profile.with_limit(name.strip(), duration(text, f"--limit {name}", positive=True))
        except KeyError:
            near = difflib.get_close_matches(name, LIMIT_NAMES, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise UsageError(
                f"--limit: unknown limit {name!r} (NAME or NAME.warn of {', '.join(LIMIT_NAMES)}){hint}"
            ) from None
    return profile


def is_loopback(url: str) -> bool:
    """Return whether the host of *url* is this machine's loopback, by every address it has."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return all(ipaddress.ip_address(str(address[4][0]).partition("%")[0]).is_loopback for address in found)


def protocols_of(text: str, profile: Profile) -> dict[str, int]:
    """Return protocols and weights: ``chat=2,messages=1``, ``chat``, or the profile's defaults."""
    if not text.strip():
        return dict.fromkeys(profile.default_protocols, 1)
    weights: dict[str, int] = {}
    for entry in split(text):
        name, _, weight = (part.strip() for part in entry.partition("="))
        if name not in PROTOCOLS:
            near = difflib.get_close_matches(name, PROTOCOLS, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise UsageError(f"--protocols: expected {', '.join(PROTOCOLS)}, got {name!r}{hint}")
        if name not in profile.endpoints:
            have = ", ".join(profile.endpoints)
            raise UsageError(
                f"--protocols: gateway {profile.name} has no endpoint for {name} (it has: {have})"
            )
        if weight and (not weight.isascii() or not weight.isdigit()):
            raise UsageError(f"--protocols: expected {name}=WEIGHT with a whole number, got {entry!r}")
        weights[name] = int(weight or 1)
    chosen = {name: weight for name, weight in weights.items() if weight}
    if not chosen:
        raise UsageError("--protocols: all weights are 0, so nobody would send anything")
    return chosen


def models_of(text: str, profile: Profile, protocols: dict[str, int], simulated: bool) -> dict[str, str]:
    """Return the model of each protocol: ``NAME`` for all, ``chat=X,messages=Y``, else the profile's."""
    models = {name: endpoint.model for name, endpoint in profile.endpoints.items() if endpoint.model}
    if simulated:
        models = {**dict.fromkeys(profile.endpoints, SIM_MODEL), **models}
    entries = split(text)
    if entries and all(entry.partition("=")[0] in PROTOCOLS and "=" in entry for entry in entries):
        for entry in entries:
            name, _, model = entry.partition("=")
            if not model:
                raise UsageError(f"--model: expected {name}=MODEL, got {entry!r}")
            models[name] = model
    elif entries:
        models.update(dict.fromkeys(profile.endpoints, text.strip()))
    missing = [name for name in protocols if name not in models]
    if missing:
        raise UsageError(
            f"no model for {', '.join(missing)}: gateway {profile.name} names none, pass --model NAME"
        )
    return models


def keys_of(variables: str, profile: Profile, simulated: bool) -> tuple[str, ...]:
    """Return the API keys. A variable that the user named has to be set; the profile's own need not."""
    if variables.strip():
        found = []
        for variable in split(variables):
            value = os.environ.get(variable, "")
            if not value:
                raise UsageError(f"--api-key-env: the environment variable {variable} is not set")
            found.append(value)
        return tuple(found)
    # A real key has no business with a simulator.
    own = os.environ.get(profile.key_env, "") if profile.key_env and not simulated else ""
    return (own,) if own else ()


def headers_of(text: str, profile: Profile) -> tuple[tuple[str, str], ...]:
    """Return the extra headers, secrets resolved: the profile's own first, then ``--header``."""
    pairs = []
    for name, value in profile.headers.items():
        if value.startswith("env:"):
            pairs.append((name, _secret(value, f"gateway {profile.name}, header {name}")))
    for endpoint in profile.endpoints.values():
        for name, value in endpoint.headers.items():
            if value.startswith("env:"):
                pairs.append((name, _secret(value, f"gateway {profile.name}, header {name}")))
    for entry in text.split(LINES) if text else ():
        name, equals, value = (part.strip() for part in entry.partition("="))
        if not equals or not name or not name.isascii() or any(c in name for c in " :\r\n"):
            raise UsageError(f"--header: expected NAME=VALUE or NAME=env:VAR, got {name!r}")
        if any(c in value for c in "\r\n\0") or not value.isascii():
            raise UsageError(f"--header {name}: the value has characters that no header may have")
        pairs.append((name, _secret(value, f"--header {name}") if value.startswith("env:") else value))
    return tuple(pairs)


def _secret(reference: str, place: str) -> str:
    variable = reference.removeprefix("env:")
    value = os.environ.get(variable, "")
    if not value:
        raise UsageError(f"{place}: the environment variable {variable} is not set")
    return value


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
    except OSError as error:
        raise UsageError(f"--extra-body: cannot read {path}: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"--extra-body: {path} is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise UsageError(f"--extra-body: {path} has to hold a JSON object")
    return data


def think_of(text: str) -> tuple[float, float]:
    """Return the shortest and longest think time in seconds: ``2s`` or ``1s-5s``."""
    low, dash, high = text.partition("-")
    first = duration(low, "--think")
    last = duration(high, "--think") if dash else first
    if last < first:
        raise UsageError(f"--think: expected FROM-TO with FROM first, got {text!r}")
    return first, last


def policy_of(name: str, max_retries: int, budget: str) -> Policy:
    """Return the retry policy."""
    return Policy(
        choice(name, POLICIES, "--retry"),
        at_least(max_retries, 0, "--max-retries"),
        duration(budget, "--retry-budget", positive=True) if budget else None,
    )


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


def duration(text: str, option: str, *, positive: bool = False) -> float:
    """Return the seconds in *text*; *option* names it in the error."""
    try:
        seconds = parse_duration(text)
    except DurationError as error:
        raise UsageError(f"{option}: {error}") from None
    if positive and seconds <= 0:
        raise UsageError(f"{option}: expected a duration above zero, got {text!r}")
    return seconds


def choice(value: str, choices: tuple[str, ...], option: str) -> Any:
    """Return *value* if it is one of *choices*: the web UI's form can send anything."""
    if value not in choices:
        raise UsageError(f"{option}: expected {' or '.join(choices)}, got {value!r}")
    return value


def at_least(value: int, least: int, option: str) -> int:
    """Return *value* if it is not below *least*."""
    if value < least:
        raise UsageError(f"{option}: expected a whole number of at least {least}, got {value}")
    return value


def split(text: str) -> list[str]:
    """Return the entries of a joined option."""
    return [entry.strip() for entry in text.split(SEPARATOR) if entry.strip()]

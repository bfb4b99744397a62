"""Whom a run asks: URL, gateway profile, protocols, models, keys and headers, each fault one line."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from collections.abc import Collection
from urllib.parse import urlsplit

from harness.gateways import LIMIT_NAMES, PROTOCOLS, Endpoint, GatewayFileError, Profile, load
from harness.load.settings import UsageError
from harness.swarm.options import LINES
from harness.swarm.values import SECRET, duration, near, sendable, split, variable

SIM = "sim"

# What a simulated gateway answers to where its profile names no model.
SIM_MODEL = "sim"

_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")


def check_url(host: str, option: str = "--host") -> str:
    """Return *host* if it is the URL of a gateway."""
    expected = "a URL such as http://127.0.0.1:8000"
    if not host and option == "--host":
        raise UsageError("no host: pass --host URL, or --host sim for the simulated gateway")
    if not host:
        raise UsageError(f"no {option}: expected {expected}")
    if option == "--host":
        expected += f", or {SIM} for the simulated gateway"
    try:
        parts = urlsplit(host)
        port = parts.port
    except ValueError as error:
        raise UsageError(f"{option} {host}: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or re.search(r"\s", host):
        raise UsageError(f"{option} {host}: expected {expected}")
    if parts.username or parts.password:
        raise UsageError(f"{option}: a URL with a password would be shown everywhere; pass it with --header")
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
        name, equals, text = (part.strip() for part in entry.partition("="))
        if not equals:
            raise UsageError(f"--limit: expected NAME=DURATION, got {entry!r}")
        try:
            profile = profile.with_limit(name, duration(text, f"--limit {name}", positive=True))
        except KeyError:
            raise UsageError(
                f"--limit: unknown limit {name!r} (NAME or NAME.warn of {', '.join(LIMIT_NAMES)})"
                f"{near(name, LIMIT_NAMES)}"
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
    except (OSError, UnicodeError):
        return False
    return all(ipaddress.ip_address(str(address[4][0]).partition("%")[0]).is_loopback for address in found)


def protocols_of(text: str, profile: Profile, option: str = "--protocols") -> dict[str, int]:
    """Return protocols and weights: ``chat=2,messages=1``, ``chat``, or the profile's defaults."""
    if not text.strip():
        return dict.fromkeys(profile.default_protocols, 1)
    weights: dict[str, int] = {}
    for entry in split(text):
        name, equals, weight = (part.strip() for part in entry.partition("="))
        if name not in PROTOCOLS:
            raise UsageError(
                f"{option}: expected {', '.join(PROTOCOLS)}, got {name!r}{near(name, PROTOCOLS)}"
            )
        if name not in profile.endpoints:
            have = ", ".join(profile.endpoints)
            raise UsageError(f"{option}: gateway {profile.name} has no endpoint for {name} (it has: {have})")
        if name in weights:
            raise UsageError(f"{option}: {name} is named twice")
        if equals and not re.fullmatch(r"[0-9]{1,6}", weight):
            raise UsageError(f"{option}: expected {name}=WEIGHT with a whole number, got {entry!r}")
        weights[name] = int(weight or 1)
    chosen = {name: weight for name, weight in weights.items() if weight}
    if not chosen:
        raise UsageError(f"{option}: all weights are 0, so nobody would send anything")
    return chosen


def models_of(text: str, profile: Profile, simulated: bool) -> dict[str, str]:
    """Return the models that are known: ``NAME`` for all, ``chat=X,messages=Y``, else the profile's."""
    models = {name: endpoint.model for name, endpoint in profile.endpoints.items() if endpoint.model}
    if simulated:
        models = {**dict.fromkeys(profile.endpoints, SIM_MODEL), **models}
    entries = split(text)
    if not any(entry.partition("=")[0].strip() in PROTOCOLS and "=" in entry for entry in entries):
        return models | dict.fromkeys(profile.endpoints, text.strip()) if entries else models
    for entry in entries:
        name, _, model = (part.strip() for part in entry.partition("="))
        if name not in PROTOCOLS or not model:
            raise UsageError(f"--model: expected PROTOCOL=MODEL, got {entry!r}{near(name, PROTOCOLS)}")
        models[name] = model
    return models


def check_models(models: Collection[str], protocols: Collection[str], profile: Profile) -> None:
    """Refuse protocols that no model is known for."""
    missing = [name for name in protocols if name not in models]
    if missing:
        raise UsageError(
            f"no model for {', '.join(missing)}: gateway {profile.name} names none, pass --model NAME"
        )


def keys_of(variables: str, profile: Profile, simulated: bool) -> tuple[str, ...]:
    """Return the API keys. A variable that the user named has to be set; the profile's own need not."""
    if variables.strip():
        return tuple(variable(name, "--api-key-env") for name in split(variables))
    # A real key has no business with a simulator.
    if profile.key_env and not simulated and os.environ.get(profile.key_env, "").strip():
        return (variable(profile.key_env, f"gateway {profile.name}"),)
    return ()


def secrets_of(profile: Profile, protocols: Collection[str]) -> dict[str, str]:
    """Return the values behind ``env:VAR`` in the profile's headers.

    A variable that no request of *protocols* needs may be unset.
    """
    secrets = {}
    everywhere = Endpoint("", headers=profile.headers)
    for protocol, endpoint in (("", everywhere), *profile.endpoints.items()):
        for name, value in endpoint.headers.items():
            needed = not protocol or protocol in protocols
            if value.startswith(SECRET) and (needed or os.environ.get(value.removeprefix(SECRET))):
                place = f"gateway {profile.name}, header {name}"
                secrets[value] = variable(value.removeprefix(SECRET), place)
    return secrets


def headers_of(text: str) -> tuple[tuple[str, str], ...]:
    """Return the headers of ``--header``, secrets resolved."""
    pairs = []
    for entry in text.split(LINES) if text else ():
        name, equals, value = (part.strip() for part in entry.partition("="))
        if not equals or not _HEADER_NAME.fullmatch(name):
            raise UsageError(f"--header: expected NAME=VALUE or NAME=env:VAR, got {name!r}")
        if value.startswith(SECRET):
            value = variable(value.removeprefix(SECRET), f"--header {name}")
        pairs.append((name, sendable(value, f"--header {name}: the value")))
    return tuple(pairs)

"""What a run may cost in tokens, said before it starts against a gateway that is not this machine."""

from __future__ import annotations

from locust.util.timespan import parse_timespan

from argparse import Namespace

from harness.load.bodies import REQUIRED_MAX_TOKENS
from harness.load.budget import projection
from harness.load.prompts import Prompt
from harness.load.settings import Settings
from harness.swarm.loading import rate_of
from harness.swarm.target import is_loopback

# Of English text; enough to tell a thousand tokens from a million.
_CHARACTERS_PER_TOKEN = 4


def projected_cost(settings: Settings, options: Namespace) -> str | None:
    """Return one line on the cost of a run with *settings*; None where it costs nothing."""
    if settings.simulated or not settings.base_url or is_loopback(settings.base_url):
        return None
    groups = list(settings.scenarios.values()) or [settings]
    weight = sum(group.weight for group in groups)
    return projection(
        prompt_tokens=sum(group.weight * _prompt_tokens(group) for group in groups) / weight,
        answer_tokens=sum(group.weight * _answer_tokens(group) for group in groups) / weight,
        rate=_rate(settings, options),
        run_time_s=_run_time_s(settings, options),
        budget=settings.budget,
    )


def _prompt_tokens(settings: Settings) -> float:
    """Return the mean length of a prompt; each further turn of a conversation quotes the ones before."""
    if settings.prompt_tokens is not None:
        asked = settings.prompt_tokens.mean
    else:
        asked = sum(map(_length, settings.prompts)) / len(settings.prompts)
    shared = settings.shared_prefixes
    prefix = sum(map(_length, shared)) / len(shared) if shared else 0.0
    quoted = (settings.turns.mean - 1.0) / 2.0 * (asked + _answer_tokens(settings))
    return prefix + asked + quoted


def _answer_tokens(settings: Settings) -> float:
    if settings.answer_tokens is not None:
        return settings.answer_tokens.mean
    return float(settings.max_tokens or REQUIRED_MAX_TOKENS)


def _length(prompt: Prompt) -> float:
    return sum(len(str(message["content"])) for message in prompt.messages) / _CHARACTERS_PER_TOKEN


def _rate(settings: Settings, options: Namespace) -> float | None:
    if settings.load.kind == "replay":
        return float(len(settings.load.orders))
    if settings.load.open and not options.shape:
        rate = rate_of(options.rate) or settings.load.rate_per_user * (options.num_users or 1)
        return rate * settings.turns.mean
    return None


def _run_time_s(settings: Settings, options: Namespace) -> float | None:
    if settings.load.kind == "replay":
        return 1.0  # the whole log, however long it takes
    if not options.run_time:
        return None
    return float(parse_timespan(str(options.run_time)))

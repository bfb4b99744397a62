"""What has to be asked so that a gateway shows whether it keeps its word, and what that costs.

A situation that cannot be asked of a real model (a stream that breaks off, a model that hangs) is played by a
simulated upstream; without one it is left out, and its statements end as not observed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.gateways import Profile

SHORT_PROMPT = "Write a haiku about the sea."
LONG_PROMPT = (
    "Think as long as you need before you write anything. How many ways are there to place eight queens on "
    "a chess board so that no two attack each other and none stands on the main diagonal? Check your number "
    "by a second method, then write it in one sentence, with a short proof."
)

# Progress events after which a client leaves: enough for the gateway to have committed itself.
LEAVES_AFTER = 5

_THINKING_S = 100.0
_SHORT_S = 5.0


@dataclass(frozen=True, slots=True)
class Situation:
    """Something to ask. `fault` is what a simulated upstream plays for it; "": whatever it plays anyway."""

    name: str
    about: str
    fault: str = ""
    needs_upstream: bool = False
    protocols: tuple[str, ...] = ("chat", "responses", "messages")
    prompt: str = SHORT_PROMPT
    max_tokens: int = 256
    extra_body: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    key: bool = True
    alone: bool = False
    """It measures how fast the gateway is, so nothing else runs beside it."""
    runs: int = 1
    repeats: bool = False
    """`runs` gives way to the number that the user chose."""
    model: Literal["", "fast"] = ""
    leaves_after: int = 0
    seconds: Callable[[Profile], float] = lambda profile: _SHORT_S


def _thinking_s(profile: Profile) -> float:
    return _THINKING_S * profile.time_scale


def _stuck_s(profile: Profile) -> float:
    return profile.limits.progress.fail_s or profile.limits.total.fail_s or _THINKING_S


SITUATIONS: dict[str, Situation] = {
    s.name: s
    for s in (
        Situation("healthy", "a short question, twice the same", runs=2),
        Situation("no-usage", "a short question that asks for no token counts", protocols=("chat",),
                  extra_body={"stream_options": {"include_usage": False}}),
        Situation("thinking", "a question that needs long reasoning", "long-thinking", prompt=LONG_PROMPT,
                  max_tokens=8192, seconds=_thinking_s),
        Situation("break", "an answer that breaks off", "error-mid", needs_upstream=True),
        Situation("stuck-before", "a model that hangs before its first token", "stuck-pre-error",
                  needs_upstream=True, seconds=_stuck_s),
        Situation("stuck-within", "a model that hangs in the middle", "stuck-error",
                  needs_upstream=True, seconds=_stuck_s),
        Situation("stuck-once", "a model that hangs, and another one that answers", "stuck-retried",
                  needs_upstream=True, seconds=_stuck_s),
        Situation("resume", "the same short question as if it were to be resumed",
                  headers={"Last-Event-ID": "1"}),
        Situation("no-key", "a short question without a key", "http-401", protocols=("chat",), key=False),
        Situation("fast", "a short question to the fast model", protocols=("chat",), model="fast",
                  alone=True, repeats=True, runs=30, max_tokens=64),
        Situation("no-reasoning", "a short question with reasoning switched off", protocols=("chat",),
                  alone=True, repeats=True, runs=30, max_tokens=64,
                  extra_body={"reasoning_effort": "none"}),
        Situation("leave", "a client that leaves in the middle", leaves_after=LEAVES_AFTER, max_tokens=512),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Step:
    """One request to make."""

    situation: Situation
    protocol: str
    model: str
    """Empty: the profile's own."""
    run: int


def fast_model(profile: Profile) -> str:
    """Return the model that the profile holds to a first token within a second; "" if there is none."""
    for pattern, limits in profile.model_limits.items():
        warn_s = limits.first_token.warn_s
        if warn_s is not None and warn_s <= 1.0 * profile.time_scale:
            return pattern.rstrip("*")
    return ""


def steps_for(
    names: Iterable[str],
    profile: Profile,
    protocols: Iterable[str],
    *,
    upstream: bool,
    runs: int | None = None,
) -> list[Step]:
    """Return the requests of the situations called *names*.

    *upstream*: a simulated upstream plays what it is told. *runs* is how often to repeat measurements.
    """
    wanted, spoken = set(names), set(protocols)
    steps = []
    for name, situation in SITUATIONS.items():
        if name not in wanted or (situation.needs_upstream and not upstream):
            continue
        model = fast_model(profile) if situation.model == "fast" else ""
        if situation.model == "fast" and not model:
            continue
        times = runs if runs is not None and situation.repeats else situation.runs
        steps += [
            Step(situation, protocol, model, run)
            for protocol in situation.protocols
            if protocol in spoken
            for run in range(times)
        ]
    return steps


def cost(steps: Iterable[Step], profile: Profile, parallel: int) -> tuple[float, int]:
    """Return about how many seconds *steps* take, and how many output tokens they may cost at most."""
    together_s = alone_s = longest_s = 0.0
    tokens = 0
    for step in steps:
        seconds = step.situation.seconds(profile)
        tokens += step.situation.max_tokens
        if step.situation.alone:
            alone_s += min(seconds, 2.0)
        else:
            together_s += seconds
            longest_s = max(longest_s, seconds)
    return max(longest_s, together_s / parallel) + alone_s, tokens

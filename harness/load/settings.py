"""What a run was told to do: options after validation, immutable, the same on every node."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from harness.gateways import Profile
from harness.load.abandon import Leave
from harness.load.arrivals import OpenLoad
from harness.load.budget import Budget
from harness.load.lengths import Length
from harness.load.prompts import Prompt
from harness.observe.aggregate import MIN_THRESHOLD_S
from harness.stream.retry import Policy
from harness.transport import TransportOptions


class UsageError(ValueError):
    """The user asked for something that cannot be; the message is one line: what, and how to mend it."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One run's settings. Durations in seconds; `profile` has its time scale and `--limit` applied."""

    base_url: str
    profile: Profile
    protocols: dict[str, int]  # protocol -> weight
    models: dict[str, str]  # protocol -> model
    prompts: tuple[Prompt, ...]
    simulated: bool = False
    keys: tuple[str, ...] = field(default=(), repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    secrets: dict[str, str] = field(default_factory=dict, repr=False)  # "env:VAR" of the profile -> value
    extra_body: dict[str, Any] = field(default_factory=dict)
    max_tokens: int = 256
    cache: Literal["bust", "allow"] = "bust"
    think_s: tuple[float, float] = (0.0, 0.0)
    on_stall: Literal["close", "watch"] = "close"
    warmup_s: float = 0.0
    time_scale: float = 1.0
    seed: int = 1
    retry: Policy = field(default_factory=Policy)
    save_content: bool = False
    transport: TransportOptions = field(default_factory=TransportOptions)
    load: OpenLoad = field(default_factory=OpenLoad)
    abandon: tuple[Leave, ...] = ()
    answer_tokens: Length | None = None  # drawn for each request, in place of `max_tokens`
    prompt_tokens: Length | None = None  # prompts made to length, in place of `prompts`
    shared_prefixes: tuple[Prompt, ...] = field(default=(), repr=False)
    turns: Length = field(default=Length(1, 1))
    reasoning_effort: str = ""
    budget: Budget = field(default=Budget())
    scenarios: dict[str, Settings] = field(default_factory=dict)  # by name, each whole
    tolerance_s: float = MIN_THRESHOLD_S  # how late the generator may be before it spoils the numbers
    weight: float = 1.0  # of a scenario among the others

    @property
    def gateway(self) -> str:
        """The gateway's name in labels and records; simulated data always says so."""
        return f"sim:{self.profile.name}" if self.simulated else self.profile.name

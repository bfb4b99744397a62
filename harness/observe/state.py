"""What the driver knows of a run and of its nodes, and no counter could tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.gateways.profile import Keepalive, Limits


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a run is not valid: a fixed word for labels and machines, a sentence with numbers for people."""

    code: str
    text: str


@dataclass(slots=True)
class RunState:
    """One run. The driver makes it at the start and fills in the end and the verdict on its validity.

    Times are Unix seconds. `valid` is None until it was judged.
    """

    run: str
    gateway: str
    version: str
    simulated: bool
    started_at: float
    ended_at: float | None = None
    time_scale: float = 1.0
    on_stall: Literal["close", "watch"] = "close"
    threshold_s: float = 0.005  # how late the generator may be, see `Aggregate.begin_run`
    limits: Limits = field(default_factory=Limits)
    keepalive: Keepalive | None = None  # time scale applied, as the limits
    valid: bool | None = None
    reasons: tuple[Reason, ...] = ()
    capacity_steps: Sequence[tuple[int, float, float]] = ()  # of a search: step, load, goodput per second
    capacity_knee: tuple[int, float] | None = None  # step and load of the best so far


@dataclass(slots=True)
class Nodes:
    """Users and workers at this moment. `workers` counts by state; `report_ages_s` is by worker name."""

    users: int = 0
    workers: Mapping[str, int] = field(default_factory=dict)
    report_ages_s: Mapping[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Observed:
    """All that a reader is shown at one moment: a (merged) snapshot, the runs it is about, the nodes."""

    snapshot: Mapping[str, Any]
    runs: Sequence[RunState] = ()
    nodes: Nodes = field(default_factory=Nodes)


Source = Callable[[], Observed]

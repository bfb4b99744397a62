"""What a capacity search is asked: its loads, its steps, its objectives; each fault one line."""

from __future__ import annotations

from dataclasses import dataclass

from harness.gateways import DurationError, parse_duration
from harness.load.objectives import Objective, ObjectiveError, parse_objective
from harness.load.settings import UsageError
from harness.load.shapes import ShapeError, split_shape

# A search over rates goes in tenths of a request per second: each of Locust's users then offers so much.
RATE_UNIT = 0.1

_PARAMETERS = ("from", "to", "step-time", "settle")


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """What to search: loads from `first` to `last`, steps of `step_s`, `settle_s` (None: as it takes)."""

    objectives: tuple[Objective, ...]
    first: float = 1.0
    last: float | None = None
    step_s: float = 30.0
    settle_s: float | None = None


def search_options(shape: str, slo: str) -> SearchOptions:
    """Return the options in ``capacity:from=1,to=100,step-time=30s,settle=5s`` and the lines of ``--slo``.

    Raises `UsageError`.
    """
    try:
        _, given = split_shape(shape)
    except ShapeError as error:
        raise UsageError(f"--shape: {error}") from None
    if unknown := [name for name in given if name not in _PARAMETERS]:
        raise UsageError(
            f"--shape: capacity has no parameter {unknown[0]!r} (it has: {', '.join(_PARAMETERS)})"
        )
    lines = [line for line in slo.split("\n") if line.strip()]
    if not lines:
        raise UsageError('--shape capacity needs an objective: pass --slo "ttft p95 < 1s"')
    try:
        objectives = tuple(parse_objective(line) for line in lines)
    except ObjectiveError as error:
        raise UsageError(f"--slo: {error}") from None
    first = _load(given.get("from", "1"), "from")
    last = _load(given["to"], "to") if "to" in given else None
    if last is not None and last < first:
        raise UsageError(f"capacity: to={last:g} is below from={first:g}")
    return SearchOptions(
        objectives,
        first,
        last,
        _seconds(given.get("step-time", "30s"), "step-time"),
        _seconds(given["settle"], "settle") if "settle" in given else None,
    )


def _load(text: str, name: str) -> float:
    try:
        load = float(text)
    except ValueError:
        load = -1.0
    if not RATE_UNIT <= load <= 1_000_000.0:
        raise UsageError(f"capacity: {name}: expected a number above 0, got {text!r}")
    return load


def _seconds(text: str, name: str) -> float:
    try:
        seconds = parse_duration(text)
    except DurationError as error:
        raise UsageError(f"capacity: {name}: {error}") from None
    if seconds <= 0.0:
        raise UsageError(f"capacity: {name}: expected a duration above zero, got {text!r}")
    return seconds


def tolerance_of(objectives: tuple[Objective, ...]) -> float:
    """Return how late the generator may be, seconds: 5 % of the tightest latency limit, at least 5 ms.

    Where no objective is about time, lateness changes nothing but the load, and 50 ms change that little.
    """
    limits = [objective.limit_s for objective in objectives if objective.limit_s is not None]
    return max(0.005, 0.05 * min(limits)) if limits else 0.05

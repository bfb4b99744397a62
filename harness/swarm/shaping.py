"""Shapes as Locust knows them: one that was asked for, and never one that is active unasked.

Locust takes any shape class that it finds in a locustfile's namespace; ours is made when an option asks
for it, and is given to the environment as an object.
"""

from __future__ import annotations

from locust.env import Environment
from locust.shape import LoadTestShape

from argparse import Namespace

from rich.console import Console

from harness.load.settings import Settings, UsageError
from harness.load.shapes import Shape, ShapeError, parse_shape
from harness.observe.aggregate import MIN_THRESHOLD_S
from harness.swarm.search_options import search_options, tolerance_of
from harness.swarm.searching import CapacityShape, Watched
from harness.swarm.target import is_loopback

Tick = tuple[int, float]


class PlannedShape(LoadTestShape):
    """Plays a `Shape`; each change is made at once, because Locust waits until a change is done."""

    abstract = True

    def __init__(self, shape: Shape) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._shape = shape
        self._last = 0

    def tick(self) -> Tick | None:
        """Return the load of this moment; None at the end."""
        load = self._shape.at(self.get_run_time())  # type: ignore[no-untyped-call]
        if load is None:
            return None
        change, self._last = abs(load - self._last), load
        return load, float(max(1, change))


def shape_of(options: Namespace, settings: Settings, watched: Watched) -> LoadTestShape | None:
    """Return the shape that ``--shape`` asks for; None without one. Raises `UsageError`."""
    text = options.shape.strip()
    if options.slo.strip() and not is_capacity(text):
        raise UsageError("--slo belongs to --shape capacity (limits of a whole run go into --gates)")
    if not text:
        return None
    if is_capacity(text):
        return _search(options, settings, watched)
    try:
        return PlannedShape(parse_shape(text))
    except ShapeError as error:
        raise UsageError(f"--shape: {error}") from None


def is_capacity(text: str) -> bool:
    """Return whether the shape in *text* is the capacity search."""
    return text.partition(":")[0].strip() == "capacity"


def tolerated_lateness(options: Namespace) -> float:
    """Return how late the generator may be, seconds: a capacity search has its own limits."""
    if not is_capacity(options.shape):
        return MIN_THRESHOLD_S
    return tolerance_of(search_options(options.shape, options.slo).objectives)


def _search(options: Namespace, settings: Settings, watched: Watched) -> CapacityShape:
    chosen = search_options(options.shape, options.slo)
    if settings.load.kind == "replay":
        raise UsageError("--shape capacity needs a load that can grow: leave out --arrivals replay")
    if chosen.last is None and settings.base_url and not is_loopback(settings.base_url):
        raise UsageError("a capacity search against another machine needs a bound: pass to=N (--to N)")
    return CapacityShape(chosen, watched, "rate" if settings.load.open else "users", Console(stderr=True))


def install_shape(environment: Environment, options: Namespace, settings: Settings, watched: Watched) -> None:
    """Give *environment* the shape that is asked for, and take away one that an earlier start asked for."""
    shape = shape_of(options, settings, watched)
    if shape is not None:
        shape.runner = environment.runner
        environment.shape_class = shape
    elif isinstance(environment.shape_class, PlannedShape | CapacityShape):
        environment.shape_class = None

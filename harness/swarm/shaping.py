"""Shapes as Locust knows them: one that was asked for, and never one that is active unasked.

Locust takes any shape class that it finds in a locustfile's namespace; ours is made when an option asks
for it, and is given to the environment as an object.
"""

from __future__ import annotations

from locust.env import Environment
from locust.shape import LoadTestShape

from harness.load.settings import UsageError
from harness.load.shapes import Shape, ShapeError, parse_shape

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


def shape_of(text: str) -> LoadTestShape | None:
    """Return the shape that ``--shape`` asks for; None without one. Raises `UsageError`."""
    if not text.strip():
        return None
    try:
        return PlannedShape(parse_shape(text))
    except ShapeError as error:
        raise UsageError(f"--shape: {error}") from None


def install_shape(environment: Environment, text: str) -> None:
    """Give *environment* the shape in *text*, and take away one that an earlier start asked for."""
    shape = shape_of(text)
    if shape is not None:
        shape.runner = environment.runner
        environment.shape_class = shape
    elif isinstance(environment.shape_class, PlannedShape):
        environment.shape_class = None

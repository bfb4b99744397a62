"""The capacity search as a Locust shape: it plays the loads, watches the records, and says what it found."""

from __future__ import annotations

from locust.shape import LoadTestShape

import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal

from rich.console import Console
from rich.control import Control
from rich.segment import ControlType

from harness.load.capacity import OPEN_RESOLUTION, RESOLUTION, Search, Step
from harness.observe.totals import Conservation, Health
from harness.observe.validity import judge
from harness.stream import Attempt
from harness.swarm.search_options import RATE_UNIT, SearchOptions, tolerance_of

# What `harness capacity` ends with: found, broken at the lowest load, not sure, the generator was too slow.
EXIT_FOUND, EXIT_BROKEN, EXIT_INCONCLUSIVE, EXIT_GENERATOR = 0, 20, 21, 22

# Without `settle` a step settles for this much longer than the requests of the steps before took.
_SETTLE_FACTOR = 1.2
_SETTLE_LEAST_S = 1.0

# How often a step that the generator spoilt is tried again.
_REPEATS = 2

# What a search over a queue leaves behind has to drain before the next step says anything.
_REST_S = 60.0

_CLEAR_LINE = Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2))


@dataclass(frozen=True, slots=True)
class Watched:
    """What the search asks of the run that is on: open streams, and the counts of its health."""

    open_streams: Callable[[], int]
    health: Callable[[], Health]
    clock: Callable[[], float] = time.time


class CapacityShape(LoadTestShape):
    """Drives a search, one decision at each of Locust's ticks (about one per second)."""

    abstract = True

    def __init__(
        self,
        options: SearchOptions,
        watched: Watched,
        unit: Literal["users", "rate"],
        progress: Console | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.options = options
        self.unit = unit
        self.size = RATE_UNIT if unit == "rate" else 1.0
        self.steps: list[Step] = []
        self.spoilt: list[dict[str, Any]] = []
        self.status: Literal["running", "done", "generator", "interrupted"] = "running"
        self._watched = watched
        self._progress = progress
        self._restart()

    def _restart(self) -> None:
        last = self.options.last
        self.search = Search(
            self._units(self.options.first),
            None if last is None else self._units(last),
            RESOLUTION if self.unit == "users" else OPEN_RESOLUTION,
        )
        self.steps, self.spoilt, self.status = [], [], "running"
        self._step: Step | None = None
        self._asked = 0
        self._health: Health | None = None
        self._repeats = 0
        self._rest_until: float | None = None

    def _units(self, load: float) -> int:
        return max(1, round(load / self.size))

    def reset_time(self) -> None:
        """A new run begins: begin the search anew."""
        super().reset_time()  # type: ignore[no-untyped-call]
        self._restart()

    @property
    def is_over(self) -> bool:
        """Whether the search has ended by itself."""
        return self.status in ("done", "generator")

    def add(self, record: Attempt) -> None:
        """Take a record as it is kept."""
        if self._step is not None:
            self._step.add(record)

    def tick(self) -> tuple[int, float] | None:
        """Return the load to offer now; None ends the run."""
        now = self._watched.clock()
        step = self._step
        if step is not None:
            step.open_samples += [self._watched.open_streams()] if now >= step.counted_from else []
            self._extend_settling(step, now)
            verdict = step.decide(now, self.options.step_s)
            self._report_progress(step, now)
            if verdict is None:
                return self._offer(step.load)
            self._end_step(step, verdict, now)
        if self.is_over or self.search.load is None:
            self.status = "done" if self.status == "running" else self.status
            return None
        if self._is_resting(now):
            return self._offer(1)
        if self._asked != self.search.load:
            return self._offer(self.search.load)  # the step begins when Locust has done it
        self._begin_step(now)
        return self._offer(self.search.load)

    def _offer(self, load: int) -> tuple[int, float]:
        change, self._asked = abs(load - self._asked), load
        # The same numbers as before, or Locust would start the same load once more.
        self._rate = float(max(1, change)) if change else self._rate
        return load, self._rate

    _rate = 1.0

    def _begin_step(self, now: float) -> None:
        self._health = self._watched.health()
        number = len(self.steps) + 1
        step = Step.begin(number, self.search, self.options.objectives, now, self._settle_s())
        step.unit, step.open = self.size, self.unit == "rate"
        self._step = step

    def _settle_s(self) -> float:
        if self.options.settle_s is not None:
            return self.options.settle_s
        longest_s = max((max(step.durations, default=0.0) for step in self.steps), default=0.0)
        return min(max(_SETTLE_LEAST_S, _SETTLE_FACTOR * longest_s), self.options.step_s)

    def _extend_settling(self, step: Step, now: float) -> None:
        """The first step does not know how long requests take: it settles until one has ended."""
        if not self.steps and self.options.settle_s is None and not step.requests:
            step.counted_from = max(step.counted_from, min(now, step.began + self.options.step_s))

    def _end_step(self, step: Step, verdict: Any, now: float) -> None:
        step.verdict, step.ended = verdict, now
        self._step = None
        if reason := self._spoilt_by():
            self.spoilt.append({**step.to_plain(), "verdict": "generator", "reason": reason})
            self._repeats += 1
            self._say(f"step {step.number}: {_loads(step, self.unit)}: thrown away, {reason}")
            if self._repeats > _REPEATS:
                self.status = "generator"
            return
        self._repeats = 0
        self.steps.append(step)
        self._say(_line(step, self.unit))
        self.search.report(verdict)
        if verdict == "broken" and self.unit == "rate":
            self._rest_until = now + _REST_S

    def _spoilt_by(self) -> str | None:
        """Return why the last step tells of the generator instead of the gateway; None if it does not."""
        assert self._health is not None
        health = _difference(self._watched.health(), self._health)
        threshold_s = tolerance_of(self.options.objectives)
        verdict = judge(health, Conservation(1, 1, 0), threshold_s=threshold_s)
        # Late reads change no share of failures; they only make what is slow look slower.
        timed = any(objective.limit_s is not None for objective in self.options.objectives)
        texts = [r.text for r in verdict.reasons if timed or r.code not in ("uncertain_events", "hub_lag")]
        return texts[0] if texts else None

    def _is_resting(self, now: float) -> bool:
        if self._rest_until is None:
            return False
        if now >= self._rest_until or self._watched.open_streams() <= 2:
            self._rest_until = None
        return self._rest_until is not None

    # What it says.

    def _report_progress(self, step: Step, now: float) -> None:
        if self._progress is not None and self._progress.is_terminal:
            settling = ", settling" if now < step.counted_from else ""
            self._progress.control(_CLEAR_LINE)
            self._progress.print(
                f"step {step.number} ({step.phase}): {_loads(step, self.unit)}{settling}, "
                f"{step.requests} requests, {now - step.began:.0f} s",
                end="\r",
            )

    def _say(self, words: str) -> None:
        if self._progress is not None and self._progress.is_terminal:
            self._progress.control(_CLEAR_LINE)
            self._progress.print(words)

    @property
    def exit_code(self) -> int:
        """What the process ends with."""
        if self.status == "generator":
            return EXIT_GENERATOR
        if self.search.answer is None and self.is_over:
            return EXIT_BROKEN
        return EXIT_FOUND if self.search.is_sure and not self._inconclusive() else EXIT_INCONCLUSIVE

    def _inconclusive(self) -> bool:
        best = self.best
        return best is None or best.verdict != "holds"

    @property
    def best(self) -> Step | None:
        """The last step at the load that is the answer; None if no load held."""
        return next((step for step in reversed(self.steps) if step.load == self.search.answer), None)

    def to_plain(self) -> dict[str, Any]:
        """Return everything that was found, for `capacity.json`."""
        best = self.best
        first_broken = next(
            (s for s in self.steps if s.load == self.search.broken and s.verdict == "broken"), None
        )
        return {
            "schema": "harness.capacity/1",
            "status": "interrupted" if self.status == "running" else self.status,
            "unit": "users" if self.unit == "users" else "requests per second",
            "objectives": [objective.text for objective in self.options.objectives],
            "answer": self._as_load(self.search.answer),
            "sure": self.search.is_sure and not self._inconclusive(),
            "broken_at": self._as_load(self.search.broken),
            "broke_first": None if first_broken is None or first_broken.broke is None
            else first_broken.broke.objective.text,
            "cause": None if first_broken is None else first_broken.cause,
            "headroom": None if best is None else {
                key: best.to_plain()[key]
                for key in ("open_streams", "requests_per_s", "goodput_per_s", "tokens_per_s", "littles_law")
            },
            "decided_on": None if best is None else best.to_plain()["objectives"],
            "curve": [step.to_plain() for step in self.steps],
            "thrown_away": self.spoilt,
        }  # fmt: skip

    def _as_load(self, units: int | None) -> float | None:
        if units is None:
            return None
        return units if self.size == 1.0 else round(units * self.size, 3)

    def gauges(self) -> tuple[list[tuple[int, float, float]], tuple[int, float] | None]:
        """Return (step, load, goodput) of every step, and step and load of the best so far."""
        rows = [(s.number, s.load * s.unit, float(s.to_plain()["goodput_per_s"])) for s in self.steps]
        best = self.best
        return rows, None if best is None else (best.number, best.load * best.unit)


def _difference(now: Health, before: Health) -> Health:
    counts = {f.name: getattr(now, f.name) - getattr(before, f.name) for f in fields(Health)}
    return Health(**{**counts, "uncertain_max_s": now.uncertain_max_s})


def _loads(step: Step, unit: str) -> str:
    load = step.load * step.unit
    return f"{load:g} users" if unit == "users" else f"{load:.1f} requests/s"


def _line(step: Step, unit: str) -> str:
    worst = max(step.evidence, key=lambda e: e.share / e.objective.allowed)
    words = {"holds": "holds", "seems_to_hold": "holds so far", "broken": "broken"}.get(
        str(step.verdict), "inconclusive"
    )
    return (
        f"step {step.number} ({step.phase}): {_loads(step, unit)}: {words}; "
        f"{worst.bad} of {worst.n} against {worst.objective.text}"
    )

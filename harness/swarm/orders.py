"""What the master decides for its workers; it travels with Locust's options."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from harness.load.settings import Settings

_KEY = "_harness_orders"


@dataclass(frozen=True)
class Orders:
    """One run's orders. *workers* are the ids of those that took part from the start, in order."""

    run: str = ""
    simulator_url: str | None = None
    simulated: bool = False
    rate_per_user: float = 1.0
    tolerance_s: float = 0.0
    workers: Sequence[str] = ()

    @classmethod
    def of(cls, options: Namespace) -> Orders:
        """Return the orders that came with *options*."""
        return cls(**getattr(options, _KEY, {}))

    def give(self, options: Namespace) -> None:
        """Put the orders where Locust sends them along."""
        setattr(options, _KEY, {**asdict(self), "workers": list(self.workers)})

    def apply(self, settings: Settings, worker: str) -> Settings:
        """Return *settings* with the part of *worker*, an id, in what the whole run may do.

        The rate needs no division: each user offers its part of it, and Locust deals out the users. What
        was dealt out at the start (a budget, the lines of a replay) is not dealt out anew: a worker that
        joins later replays nothing, and spends no more than one more worker would have been given.
        """
        number, of = self._place(worker)
        load = settings.load
        return replace(
            settings,
            simulated=self.simulated,
            tolerance_s=self.tolerance_s,
            budget=settings.budget.share(number, of),
            load=replace(
                load,
                rate_per_user=self.rate_per_user,
                max_in_flight=max(1, load.max_in_flight // of),
                share=(number, of),
                orders=load.orders if worker in self.workers else (),
            ),
        )

    def _place(self, worker: str) -> tuple[int, int]:
        if worker in self.workers:
            return list(self.workers).index(worker), len(self.workers)
        return len(self.workers), len(self.workers) + 1

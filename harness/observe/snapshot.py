"""What one process, or all of them together, has counted at one moment; and how many become one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any

from harness.observe.buckets import Histogram
from harness.observe.families import FAMILIES
from harness.observe.totals import LabelValues, Totals, histograms_from_plain, histograms_to_plain

RUNS_KEPT = 2  # the current one and the one before it, so that a last scrape never misses an end


class Snapshot:
    """The runs (oldest first) and the state of the processes themselves."""

    __slots__ = ("gauges", "histograms", "runs")

    def __init__(
        self,
        runs: Iterable[Totals] = (),
        histograms: dict[str, dict[LabelValues, Histogram]] | None = None,
        gauges: dict[str, dict[LabelValues, float]] | None = None,
    ) -> None:
        self.runs = list(runs)
        self.histograms = histograms or {}
        self.gauges = gauges or {}

    def run(self, name: str) -> Totals:
        """Return the totals of the run *name*, empty ones if nothing of it was counted."""
        return next((totals for totals in self.runs if totals.run == name), Totals(name))

    def add(self, other: Snapshot, age_s: float | None = 0.0) -> None:
        """Add another process's snapshot, taken *age_s* seconds ago; None if that process is gone.

        A process that is gone keeps its counts and loses its gauges. Raises `ValueError` if the two do not
        fit together (other version, other time scale).
        """
        mine = {totals.run: totals for totals in self.runs}
        for totals in other.runs:
            if totals.run not in mine:
                mine[totals.run] = Totals(totals.run, totals.started_at, totals.time_scale)
            mine[totals.run].add(totals, age_s)
        self.runs = sorted(mine.values(), key=lambda totals: totals.started_at)[-RUNS_KEPT:]
        for name, series in other.histograms.items():
            known = self.histograms.setdefault(name, {})
            for labels, histogram in series.items():
                known.setdefault(labels, Histogram(FAMILIES[name].bounds)).merge(histogram)
        if age_s is not None:
            for name, values in other.gauges.items():
                self.gauges.setdefault(name, {}).update(values)

    def to_plain(self) -> dict[str, Any]:
        """Return the snapshot as plain data for a message or a file."""
        return {
            "runs": [totals.to_plain() for totals in self.runs],
            "histograms": histograms_to_plain(self.histograms),
            "gauges": {
                name: [[list(labels), value] for labels, value in series.items()]
                for name, series in self.gauges.items()
            },
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Snapshot:
        """Return the snapshot of `to_plain`. Raises `ValueError` if another version made it."""
        return cls(
            [Totals.from_plain(totals) for totals in plain["runs"]],
            histograms_from_plain(plain["histograms"]),
            {
                name: {tuple(labels): value for labels, value in series}
                for name, series in plain["gauges"].items()
            },
        )


def merge(
    snapshots: Iterable[Mapping[str, Any]], ages_s: Sequence[float | None] | None = None
) -> dict[str, Any]:
    """Return the sum of plain snapshots as a plain snapshot.

    *ages_s* says for each how many seconds ago it was taken, None for a process that is gone; without it
    all are of this moment. Raises `ValueError` if they were made by different versions.
    """
    total = Snapshot()
    for plain, age_s in zip(snapshots, repeat(0.0) if ages_s is None else ages_s, strict=False):
        total.add(Snapshot.from_plain(plain), age_s)
    return total.to_plain()

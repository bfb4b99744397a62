"""The numbers of one run: on one process, or the sum over many.

Everything in here is additive (counters, histograms, what was started) or the state of one moment (open
streams), so that the snapshots of all workers, dead ones too, can be summed in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from harness.observe.buckets import Histogram
from harness.observe.families import ATTEMPTS, FAMILIES, REQUESTS, Family
from harness.observe.labels import STREAM_LABELS, Labels

OPEN_PHASES = ("connecting", "waiting", "streaming", "silent")
_OUTCOME = len(STREAM_LABELS)  # where ATTEMPTS and REQUESTS keep their outcome


class Conservation(NamedTuple):
    """Every attempt that started has ended with an outcome or is open; anything else was lost."""

    started: int
    ended: int
    open: int

    @property
    def missing(self) -> int:
        """Attempts that neither ended nor are open; negative if some ended twice."""
        return self.started - self.ended - self.open

    def check(self) -> str | None:
        """Return None if nothing is missing, else one sentence with the numbers."""
        if not self.missing:
            return None
        return (
            f"{self.started:,} attempts started, but {self.ended:,} ended and {self.open:,} are open: "
            f"{abs(self.missing):,} " + ("have no outcome" if self.missing > 0 else "too many")
        )


@dataclass(slots=True)
class Health:
    """Exact counts behind the validity of a run; "late" and "uncertain" mean beyond the run's threshold."""

    events: int = 0
    events_uncertain: int = 0
    first_tokens: int = 0
    first_tokens_uncertain: int = 0
    attempts: int = 0
    attempts_user_clock: int = 0
    hub_waits: int = 0
    hub_waits_late: int = 0
    arrivals: int = 0
    arrivals_late: int = 0
    arrivals_dropped: int = 0
    uncertain_max_s: float = 0.0

    def add(self, other: Health) -> None:
        """Add the counts of *other*; the maximum is the larger of both."""
        for name in _HEALTH_COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.uncertain_max_s = max(self.uncertain_max_s, other.uncertain_max_s)


_HEALTH_COUNTS = tuple(f.name for f in fields(Health) if f.name != "uncertain_max_s")


@dataclass(slots=True)
class OpenStreams:
    """The open attempts of one set of labels at one moment; ages in seconds."""

    phases: list[int] = field(default_factory=lambda: [0] * len(OPEN_PHASES))
    oldest_silence_s: float = 0.0
    oldest_progress_gap_s: float = 0.0

    def add(self, other: OpenStreams, age_s: float) -> None:
        """Add what another process had open *age_s* ago: what was silent then is taken to be so still."""
        self.phases = [mine + theirs for mine, theirs in zip(self.phases, other.phases, strict=True)]
        if other.oldest_silence_s:
            self.oldest_silence_s = max(self.oldest_silence_s, other.oldest_silence_s + age_s)
        if other.oldest_progress_gap_s:
            self.oldest_progress_gap_s = max(self.oldest_progress_gap_s, other.oldest_progress_gap_s + age_s)


LabelValues = tuple[str, ...]


class Totals:
    """The cumulative numbers of one run, by family and label values (in the family's order)."""

    __slots__ = ("counters", "health", "histograms", "open", "run", "started", "started_at", "time_scale")

    def __init__(self, run: str, started_at: float = 0.0, time_scale: float = 1.0) -> None:
        self.run = run
        self.started_at = started_at
        self.time_scale = time_scale
        self.started: dict[Labels, list[int]] = {}  # [requests, attempts]
        self.counters: dict[str, dict[LabelValues, float]] = {}
        self.histograms: dict[str, dict[LabelValues, Histogram]] = {}
        self.open: dict[Labels, OpenStreams] = {}
        self.health = Health()

    def start(self, labels: Labels, requests: int = 0, attempts: int = 0) -> None:
        """Count what began."""
        numbers = self.started.setdefault(labels, [0, 0])
        numbers[0] += requests
        numbers[1] += attempts

    def count(self, family: Family, labels: LabelValues, by: float = 1) -> None:
        """Raise a counter."""
        series = self.counters.setdefault(family.name, {})
        series[labels] = series.get(labels, 0) + by

    def histogram(self, family: Family, labels: LabelValues) -> Histogram:
        """Return the histogram of *family* with these label values, made at the first use."""
        series = self.histograms.setdefault(family.name, {})
        found = series.get(labels)
        if found is None:
            found = series[labels] = Histogram(family.bounds_at(self.time_scale))
        return found

    def pooled(self, family: Family, **where: str) -> Histogram:
        """Return the sum of all histograms of *family* whose labels have the values of *where*."""
        total = Histogram(family.bounds_at(self.time_scale))
        wanted = [(family.labels.index(name), value) for name, value in where.items()]
        for labels, histogram in self.histograms.get(family.name, {}).items():
            if all(labels[at] == value for at, value in wanted):
                total.merge(histogram)
        return total

    def rename_gateway(self, gateway: str) -> None:
        """Let every series carry *gateway*, as if it had been known from the start."""
        at = STREAM_LABELS.index("gateway")

        def renamed(labels: LabelValues) -> LabelValues:
            return (*labels[:at], gateway, *labels[at + 1 :])

        self.started = {labels._replace(gateway=gateway): n for labels, n in self.started.items()}
        self.counters = {
            name: {renamed(labels): n for labels, n in series.items()}
            for name, series in self.counters.items()
        }
        self.histograms = {
            name: {renamed(labels): histogram for labels, histogram in series.items()}
            for name, series in self.histograms.items()
        }

    def conservation(self) -> Conservation:
        """Return what became of the attempts of this run."""
        started = sum(attempts for _, attempts in self.started.values())
        ended = sum(self.counters.get(ATTEMPTS.name, {}).values())
        return Conservation(started, int(ended), sum(sum(o.phases) for o in self.open.values()))

    def outcomes(self, family: Family = ATTEMPTS) -> dict[str, int]:
        """Return how many attempts (or with `REQUESTS`, requests) ended how."""
        result: dict[str, int] = {}
        for labels, n in self.counters.get(family.name, {}).items():
            result[labels[_OUTCOME]] = result.get(labels[_OUTCOME], 0) + int(n)
        return result

    def requests(self) -> tuple[int, int]:
        """Return how many requests started and how many ended."""
        ended = sum(self.counters.get(REQUESTS.name, {}).values())
        return sum(requests for requests, _ in self.started.values()), int(ended)

    def rejected(self) -> int:
        """Return how many values were no measurement (NaN or negative) and are in no histogram."""
        return sum(h.rejected for series in self.histograms.values() for h in series.values())

    def add(self, other: Totals, age_s: float | None = 0.0) -> None:
        """Add another process's numbers, reported *age_s* ago; None if it is gone and nothing of it is open.

        Raises `ValueError` if it ran with another time scale.
        """
        for started, (requests, attempts) in other.started.items():
            self.start(started, requests, attempts)
        for name, counts in other.counters.items():
            for labels, n in counts.items():
                self.count(FAMILIES[name], labels, n)
        for name, histograms in other.histograms.items():
            for labels, histogram in histograms.items():
                self.histogram(FAMILIES[name], labels).merge(histogram)
        if age_s is not None:
            for opened, streams in other.open.items():
                self.open.setdefault(opened, OpenStreams()).add(streams, age_s)
        self.health.add(other.health)

    def to_plain(self) -> dict[str, Any]:
        """Return the numbers as lists, strings and numbers under string keys, as msgpack wants them."""
        return {
            "run": self.run,
            "started_at": self.started_at,
            "time_scale": self.time_scale,
            "started": [[list(labels), *numbers] for labels, numbers in list(self.started.items())],
            "counters": {
                name: [[list(labels), n] for labels, n in list(series.items())]
                for name, series in list(self.counters.items())
            },
            "histograms": histograms_to_plain(self.histograms),
            "open": [
                [list(labels), list(o.phases), o.oldest_silence_s, o.oldest_progress_gap_s]
                for labels, o in list(self.open.items())
            ],
            "health": {f.name: getattr(self.health, f.name) for f in fields(Health)},
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Totals:
        """Return the numbers of `to_plain`. Raises `ValueError` if another version made them."""
        made = cls(plain["run"], plain["started_at"], plain["time_scale"])
        made.started = {Labels(*labels): numbers for labels, *numbers in plain["started"]}
        made.counters = {
            name: {tuple(labels): n for labels, n in series} for name, series in plain["counters"].items()
        }
        made.histograms = histograms_from_plain(plain["histograms"], made.time_scale)
        made.open = {
            Labels(*labels): OpenStreams(list(phases), silence, gap)
            for labels, phases, silence, gap in plain["open"]
        }
        made.health = Health(**plain["health"])
        return made


def histograms_to_plain(by_family: dict[str, dict[LabelValues, Histogram]]) -> dict[str, list[list[object]]]:
    """Return histograms by family and labels as plain data."""
    return {
        name: [[list(labels), histogram.to_plain()] for labels, histogram in list(series.items())]
        for name, series in list(by_family.items())
    }


def histograms_from_plain(
    plain: Mapping[str, Any], time_scale: float = 1.0
) -> dict[str, dict[LabelValues, Histogram]]:
    """Return the histograms of `histograms_to_plain`. Raises `ValueError` if another version made them."""
    if unknown := sorted(plain.keys() - FAMILIES.keys()):
        raise ValueError(f"unknown metric {unknown[0]}: all nodes must run the same version")
    return {
        name: {
            tuple(labels): Histogram.from_plain(FAMILIES[name].bounds_at(time_scale), numbers)
            for labels, numbers in series
        }
        for name, series in plain.items()
    }

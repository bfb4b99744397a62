"""What a soak's numbers say: growth by slopes and medians, and the page about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

PER_S = 600.0  # slopes are per ten minutes

# What Locust may keep: moments of its charts as harness/swarm/trimming.py leaves them; of errors one per
# protocol, outcome and status.
MOMENTS, ERRORS = 720, 300

# So many gather before the collector looks at the youngest (harness/swarm/housekeeping.py).
YOUNG_OBJECTS = 20_000


@dataclass
class Series:
    """Values with the seconds at which they were seen."""

    at: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def add(self, at: float, value: float) -> None:
        self.at.append(at)
        self.values.append(value)

    def after(self, start_s: float) -> Series:
        """Return the part from *start_s* on."""
        pairs = [(at, value) for at, value in zip(self.at, self.values, strict=True) if at >= start_s]
        return Series([at for at, _ in pairs], [value for _, value in pairs])

    def slope(self) -> float:
        """Return the growth in ten minutes: the median of the slopes of all pairs (Theil–Sen).

        One collection of garbage or one busy second moves it by nothing.
        """
        slopes = [
            (self.values[j] - self.values[i]) / (self.at[j] - self.at[i])
            for i in range(len(self.at))
            for j in range(i + 1, len(self.at))
        ]
        return PER_S * median(slopes) if slopes else 0.0

    def ends(self) -> tuple[float, float]:
        """Return the medians of the first and the last fifth."""
        fifth = max(1, len(self.values) // 5)
        return median(self.values[:fifth]), median(self.values[-fifth:])


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    what: str
    measured: str
    bound: str
    good: bool


def findings(
    outside: Mapping[str, Series], inside: Sequence[Mapping[str, Any]], began: float, after_s: float
) -> list[Finding]:
    """Return the findings about everything that could grow, from *after_s* seconds on."""
    found = []
    for name, title in (
        ("generator", "memory of the load generator"),
        ("gateway", "memory of the simulated gateway"),
    ):
        series = outside[name].after(after_s)
        slope, (first, last) = series.slope(), series.ends()
        found.append(Finding(title, f"{slope:+.2f} MB in 10 minutes ({first:.1f} to {last:.1f} MB)",
                             "below 1 MB in 10 minutes", slope < 1.0))  # fmt: skip
    found.append(_steady("open descriptors", outside["descriptors"].after(after_s), 0.05, 3))
    for key, title, absolute in (
        ("greenlets", "greenlets", 3),
        # What the collector has not looked at yet is no growth: up to a young generation of it.
        ("objects", "objects that Python tracks", YOUNG_OBJECTS),
    ):
        series = Series([line["at"] - began for line in inside], [float(line[key]) for line in inside])
        found.append(_steady(title, series.after(after_s), 0.05, absolute))
    found.append(_steady("scrape, ms", outside["scrapes"].after(after_s), 0.5, 5))
    found.append(_steady("the page's two requests, ms", outside["page"].after(after_s), 0.5, 5))
    last_look = inside[-1]
    moments, errors = last_look["locust_history"], last_look["locust_errors"]
    kept = f"{moments} moments, {last_look['locust_seconds']:,} seconds, {errors} kinds of errors"
    bound = f"{MOMENTS} moments, {ERRORS} kinds of errors"
    good = moments <= MOMENTS and errors <= ERRORS
    found.append(Finding("Locust's own history at the end", kept, bound, good))
    return found


def _steady(what: str, series: Series, part: float, absolute: float) -> Finding:
    """Growth of the median between the two ends is within *part* of it, or within *absolute*."""
    first, last = series.ends()
    allowed = max(first * part, absolute)
    return Finding(
        what,
        f"{first:,.1f} at first, {last:,.1f} at last",
        f"growth within {allowed:,.1f}",
        last - first <= allowed,
    )


def markdown(about: Mapping[str, Any], found: Sequence[Finding]) -> str:
    """Return the report."""
    rows = "\n".join(
        f"| {f.what} | {f.measured} | {f.bound} | {'yes' if f.good else '**no**'} |" for f in found
    )
    return f"""# A soak

`make soak` runs for half an hour with every fault of the simulated gateway mixed (half of the answers are
healthy), reads the metrics, the page and its live numbers every five seconds, and asks what grew.

{about["date"]}, `{about["command"]}`, {about["system"]}, load {about["load"]:.1f}:
{about["attempts"]:,} attempts with {about["kinds"]} kinds of outcome, {about["events_per_s"]:,.0f} events per
second on the mean; the load generator's memory was {about["rss_mb"]:.0f} MB.

| what | measured | bound | held |
| --- | --- | --- | --- |
{rows}

All of it after the first five minutes (a shorter soak: its first third); slopes are medians over all pairs of
looks, the two ends are medians of the first and the last fifth.
"""

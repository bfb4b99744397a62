"""Many moments as one OpenMetrics text with timestamps, for backfilling a Prometheus.

The format wants all samples of a metric together, so everything is held until it is written: about a
kilobyte per histogram and moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TextIO

from harness.observe.buckets import Histogram
from harness.observe.exposition import Value, head_lines, sample_lines, series
from harness.observe.families import FAMILIES, Family
from harness.observe.history import INTERVAL_S, Moment
from harness.observe.state import Observed
from harness.observe.totals import LabelValues

# A scraper would have read the last values a few times more, and rates need two in their window.
_AFTER_END = 3


class Backfill:
    """Collects what was observed at moments (Unix seconds, rising), then writes it."""

    def __init__(self) -> None:
        self._samples: dict[str, dict[LabelValues, list[tuple[float, Value]]]] = {
            name: {} for name in FAMILIES
        }

    def add(self, at: float, observed: Observed) -> None:
        """Take all series as they were at the moment *at*."""
        for family, found in series(observed):
            known = self._samples[family.name]
            for labels, value in found:
                known.setdefault(labels, []).append((at, value))

    def begin_at_zero(self, at: float) -> None:
        """Let every counter and histogram be zero at *at*, as at the start of a run they are.

        A live scrape misses that: a series appears with its first count, and rates lose it.
        """
        for name, known in self._samples.items():
            if FAMILIES[name].kind == "gauge" or "run" not in FAMILIES[name].labels:
                continue
            for samples in known.values():
                if samples and samples[0][0] > at:
                    first = samples[0][1]
                    zero: Value = Histogram(first.bounds) if isinstance(first, Histogram) else 0
                    samples.insert(0, (at, zero))

    def write(self, file: TextIO) -> int:
        """Write the text and return its number of samples."""
        count = 0
        for name, known in self._samples.items():
            family = FAMILIES[name]
            file.writelines(f"{line}\n" for line in head_lines(family, openmetrics=True))
            for labels, samples in known.items():
                for line in _lines(family, labels, samples):
                    file.write(line)
                    count += 1
        file.write("# EOF\n")
        return count


def _lines(family: Family, labels: LabelValues, samples: Iterable[tuple[float, Value]]) -> Iterator[str]:
    for at, value in samples:
        for lines in sample_lines(family, [(labels, value)]):
            yield from (f"{line} {at:.3f}\n" for line in lines)


def backfill(moments: Iterable[Moment]) -> Backfill:
    """Return the moments of one run, from zero at its start to a little after its end."""
    made = Backfill()
    last: Moment | None = None
    for moment in moments:
        # Two within a millisecond (a tick and the end) would be one sample with two values.
        if last is None or moment.at - last.at >= 0.001:
            made.add(moment.at, moment.observed())
            last = moment
    if last is not None:
        if last.runs:
            made.begin_at_zero(last.runs[-1].started_at)
        for number in range(1, _AFTER_END + 1):
            made.add(last.at + number * INTERVAL_S, last.observed())
    return made

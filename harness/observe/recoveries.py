"""What retries cost, and what became of planned arrivals: what the summary says of requests."""

from __future__ import annotations

from typing import Any

from harness.gateways.durations import format_duration
from harness.observe.families import ARRIVAL_LAG
from harness.observe.totals import Totals
from harness.stream.record import Attempt, RequestSummary


class Recoveries:
    """The requests that failed first and completed in the end.

    Their extra time is what passed from the planned start to the attempt that completed: failed attempts and
    the waits between. Their extra tokens are the output that failed attempts had already produced.
    """

    def __init__(self) -> None:
        self._extra_s: list[float] = []
        self._tokens = 0
        self._guessed = False

    def add(self, record: Attempt, summary: RequestSummary) -> None:
        """Take the last attempt of a request."""
        if summary.retry_outcome != "recovered":
            return
        self._extra_s.append(max(0.0, summary.end_s - record.end_s))
        self._tokens += summary.wasted_tokens
        self._guessed = self._guessed or summary.wasted_source == "events"

    def to_plain(self) -> dict[str, Any]:
        """Return the numbers for the summary; times are null without any."""
        ordered = sorted(self._extra_s)
        return {
            "requests": len(ordered),
            "extra_p50_s": _rank(ordered, 0.5),
            "extra_p95_s": _rank(ordered, 0.95),
            "extra_max_s": _rank(ordered, 1.0),
            "extra_total_s": round(sum(ordered), 6),
            "wasted_tokens": self._tokens,
            "wasted_counted_by": "events" if self._guessed else "usage",
        }

    def notes(self) -> list[str]:
        """Return one sentence, if there is anything to say."""
        plain = self.to_plain()
        if not plain["requests"]:
            return []
        return [
            f"{plain['requests']:,} requests failed first and were recovered: "
            f"{format_duration(plain['extra_p50_s'])} later in the median, "
            f"{format_duration(plain['extra_max_s'])} at most, {self._tokens:,} tokens thrown away"
        ]


def _rank(ordered: list[float], q: float) -> float | None:
    return round(ordered[min(len(ordered) - 1, int(q * len(ordered)))], 6) if ordered else None


def arrivals(totals: Totals) -> dict[str, Any] | None:
    """Return what became of the planned starts; None in a run whose users wait for their answers."""
    health = totals.health
    if not health.arrivals:
        return None
    lag = totals.pooled(ARRIVAL_LAG)
    p99_s = lag.quantile(0.99)
    return {
        "planned": health.arrivals,
        "started": health.arrivals - health.arrivals_dropped,
        "dropped": health.arrivals_dropped,
        "late": health.arrivals_late,
        "lag_p99_s": None if p99_s is None else round(p99_s, 6),  # interpolated between buckets
    }

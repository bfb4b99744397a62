"""What gates, baselines, comparisons and reports can ask for: metrics, their stats and their units.

The one table behind the gate file's checks, its JSON schema (a test compares them) and the documentation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Kind = Literal["time", "rate", "count", "speed"]
View = Literal["attempt", "request"]

QUANTILES: Mapping[str, float] = MappingProxyType(
    {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
)
TIME_STATS = (*QUANTILES, "mean", "min", "max")

# From so many values on a 95 % interval of the quantile exists; with fewer it is little more than the
# maximum.
MIN_SAMPLES: Mapping[str, int] = MappingProxyType({"p50": 6, "p90": 29, "p95": 59, "p99": 299, "p99.9": 2995})


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric: per stream a time in seconds, or over all requests a share, a count, a speed."""

    name: str
    kind: Kind
    about: str
    better: Literal["low", "high"] = "low"

    @property
    def stats(self) -> tuple[str, ...]:
        """The stats that it has."""
        return {"time": TIME_STATS, "rate": ("rate",)}.get(self.kind, ("value",))


_TABLE = (
    Metric("ttft", "time", "time to the first token of any kind"),
    Metric("first_content", "time", "time to the first visible text"),
    Metric("headers", "time", "time to the response headers"),
    Metric("duration", "time", "time to the end of a completed stream"),
    Metric("tpot", "time", "time per token after the first"),
    Metric("gap_p99", "time", "a stream's own p99 of the gaps between tokens"),
    Metric("gap_max", "time", "a stream's longest gap between tokens"),
    Metric("silence", "time", "a stream's longest time without any byte"),
    Metric("keepalive_interval", "time", "a stream's longest interval between keepalives"),
    Metric("success_rate", "rate", "share of requests that completed", "high"),
    Metric("error_rate", "rate", "share of requests that failed in any way"),
    Metric("rejected_rate", "rate", "share of requests refused with 429 or 529"),
    Metric("stall_rate", "rate", "share of requests whose stream hung beyond a limit"),
    Metric("unfinished_rate", "rate", "share of requests still open when the run ended"),
    Metric("recovered_rate", "rate", "of the requests that failed first, the share that completed", "high"),
    Metric("goodput", "rate", "share of requests that completed within every limit of [slo]", "high"),
    Metric("tokens_per_second", "speed", "output tokens of all streams per second of the run", "high"),
    Metric("requests", "count", "requests that started", "high"),
)  # fmt: skip
METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _TABLE})

TIMES = tuple(metric.name for metric in _TABLE if metric.kind == "time")
RATES = tuple(metric.name for metric in _TABLE if metric.kind == "rate")
# Times that a request has as its user saw it: from the planned start, over all its attempts.
REQUEST_TIMES = ("ttft", "first_content", "duration")


def view_of(metric: str) -> View:
    """Return whether *metric* is by default read per attempt (each stream) or per request."""
    return "attempt" if METRICS[metric].kind in ("time", "speed") else "request"

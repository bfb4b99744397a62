"""What a gate file says, once it was read: plain data, no meaning of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from harness.judge.metrics import METRICS, Metric, View

Op = Literal["<", "<=", ">", ">="]
Decide = Literal["point", "interval"]
Policy = Literal["fail", "warn", "skip"]
Severity = Literal["fail", "warn"]
Failed = Literal["count", "leave_out"]
Method = Literal["history", "mann_whitney"]

WHERE = ("protocol", "gateway", "scenario", "model")

# The default of `--baseline` runs that a relative gate needs: the fewest with which Mann–Whitney can say 5 %.
MIN_RUNS = 4


@dataclass(frozen=True, slots=True)
class Abort:
    """From `after_s` on, end the run if the last `window_s` have broken the limit for `sustained_s`."""

    after_s: float
    sustained_s: float
    window_s: float


@dataclass(frozen=True, slots=True)
class Gate:
    """One ``[[gate]]``. `limit` is in the metric's unit, or with a `baseline` the ratio to it."""

    id: str
    metric: str
    stat: str
    op: Op
    limit: float
    limit_text: str
    why: str
    where: Mapping[str, str] = field(default_factory=dict)
    decide: Decide = "point"
    min_samples: int = 1
    confidence: float = 0.95
    on_no_data: Policy = "fail"
    on_inconclusive: Policy = "warn"
    severity: Severity = "fail"
    failed: Failed = "count"
    view: View = "attempt"
    abort: Abort | None = None
    baseline: str | None = None
    method: Method = "history"
    min_runs: int = MIN_RUNS
    line: int = 0

    @property
    def about(self) -> Metric:
        """The metric's entry in the table."""
        return METRICS[self.metric]

    def holds(self, value: float) -> bool:
        """Return whether *value* satisfies the gate."""
        return holds(self.op, value, self.limit)

    @property
    def wants_low(self) -> bool:
        """Whether the good side is below the limit."""
        return self.op in ("<", "<=")

    def __str__(self) -> str:
        where = ",".join(f"{key}={value}" for key, value in self.where.items())
        name = self.metric if self.stat in ("rate", "value") else f"{self.metric} {self.stat}"
        return f"{name}{{{where}}}" if where else name


@dataclass(frozen=True, slots=True)
class Gates:
    """A whole gate file. Times are in seconds; `slo` holds the limits of goodput by metric."""

    source: str
    gates: tuple[Gate, ...]
    scenario: str = "default"
    warmup_s: float = 0.0
    cooldown_s: float = 0.0
    slo: Mapping[str, float] = field(default_factory=dict)

    @property
    def tightest_latency_s(self) -> float | None:
        """The smallest absolute limit on a time, seconds, of all gates and of goodput; None without one."""
        limits = [gate.limit for gate in self.gates if gate.about.kind == "time" and gate.baseline is None]
        if any(gate.metric == "goodput" for gate in self.gates):
            limits += self.slo.values()
        return min(limits, default=None)


def holds(op: Op, value: float, limit: float) -> bool:
    """Return whether *value* *op* *limit*."""
    if op == "<":
        return value < limit
    if op == "<=":
        return value <= limit
    return value > limit if op == ">" else value >= limit

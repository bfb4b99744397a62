"""Service level objectives, as shares: ``ttft p95 < 1s`` holds if fewer than 5 % of the requests are slower.

Reading a percentile as a share makes every objective the same question, how many of how many were bad,
and its answer an exact binomial interval, whatever the latencies look like. A request that failed before
it had the value was bad: its user never got it.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Literal

from harness.judge.binomial import at_least, at_most, share_interval
from harness.judge.metrics import METRICS, QUANTILES
from harness.judge.quantities import QuantityError, parse_limit
from harness.stream import Attempt
from harness.stream.outcome import CLIENT_ENDED

_TEXT = re.compile(r"\s*([a-z_0-9]+)(?:\s+([a-z0-9.]+))?\s*(<=|>=|<|>|==|=)?\s*(.*)")

_REJECTED = (429, 529)

# What can be asked of a single request; a mean or a maximum is no share of them.
_RATES = ("error_rate", "success_rate", "rejected_rate", "stall_rate")
_TIMES = ("ttft", "first_content", "headers", "duration", "tpot", "gap_p99", "gap_max", "silence",
          "keepalive_interval")  # fmt: skip

EXPECTED = 'expected METRIC STAT < LIMIT, as in "ttft p95 < 1s" or "error_rate < 1%"'

# A load holds if the share of bad requests is below the limit with this confidence, and is broken if it is
# above with the second one: that question is asked each second, and each time it could be wrong.
HOLDS, BROKEN = 0.95, 0.995

Verdict = Literal["holds", "broken", "open"]


class ObjectiveError(ValueError):
    """The objective cannot be read; the message is one line that says what was expected."""


@dataclass(frozen=True, slots=True)
class Objective:
    """At most the share `allowed` of the requests may be bad: for a time, above (or at) `limit` seconds."""

    text: str
    metric: str
    allowed: float
    limit_s: float | None = None

    def is_bad(self, record: Attempt) -> bool | None:
        """Return whether the request that ended with *record* was bad; None if it says nothing about it."""
        if record.outcome in CLIENT_ENDED:
            return None
        match self.metric:
            case "error_rate" | "success_rate":
                return not record.success
            case "rejected_rate":
                return record.status in _REJECTED
            case "stall_rate":
                return record.outcome == "stalled"
        assert self.limit_s is not None
        value = _value(self.metric, record)
        if value is None:
            return None if record.success else True
        return value >= self.limit_s

    @property
    def requests_needed(self) -> int:
        """With how many requests, none of them bad, the objective is known to hold."""
        n = 1
        while at_most(0, n, self.allowed) > 1.0 - HOLDS:
            n += max(1, n // 50)
        return n


@dataclass(slots=True)
class Evidence:
    """What was seen of one objective: `bad` requests of `n`."""

    objective: Objective
    n: int = 0
    bad: int = 0
    rejected: int = 0  # of the bad ones

    def add(self, record: Attempt) -> bool:
        """Count the request that ended with *record*; returns whether it was bad."""
        bad = self.objective.is_bad(record)
        if bad is None:
            return False
        self.n += 1
        self.bad += bad
        self.rejected += bad and record.status in _REJECTED
        return bad

    @property
    def share(self) -> float:
        """The share of bad requests; 0 without any request."""
        return self.bad / self.n if self.n else 0.0

    @property
    def seems_to_hold(self) -> bool:
        """Whether so far the share is within what is allowed."""
        return self.share <= self.objective.allowed

    @property
    def verdict(self) -> Verdict:
        """What is sure by now."""
        if self.n and at_least(self.bad, self.n, self.objective.allowed) <= 1.0 - BROKEN:
            return "broken"
        if self.n and at_most(self.bad, self.n, self.objective.allowed) <= 1.0 - HOLDS:
            return "holds"
        return "open"

    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval of the share of bad requests."""
        return share_interval(self.bad, self.n, 0.95)


def _value(metric: str, record: Attempt) -> float | None:
    """Return a time of the request: where the user has one, from the planned start."""
    summary = record.request_summary
    if summary and metric in ("ttft", "first_content"):
        return summary.first_token_s if metric == "ttft" else summary.first_content_s
    progress = record.progress
    match metric:
        case "ttft":
            return record.first_token_s
        case "first_content":
            return record.first_content_s
        case "headers":
            return record.headers_s
        case "duration":
            end_s = summary.end_s if summary else record.end_s
            return end_s if record.success else None
        case "gap_p99":
            return progress.gap_p99_s
        case "gap_max":
            return progress.gap_max_s
        case "silence":
            return record.silence_max_s
        case "keepalive_interval":
            return record.keepalive.gap_max_s
    if record.last_token_s is None or record.first_token_s is None or progress.count < 2:
        return None
    return (record.last_token_s - record.first_token_s) / (progress.count - 1)


def parse_objective(text: str) -> Objective:
    """Return the objective in *text*. Raises `ObjectiveError`."""
    match = _TEXT.fullmatch(text)
    if match is None or not match[3] or not match[4]:
        raise ObjectiveError(f"{EXPECTED}, got {text!r}")
    metric, stat, operator, limit = match[1], match[2], match[3], match[4].strip()
    if metric not in (*_RATES, *_TIMES):
        near = difflib.get_close_matches(metric, [*_RATES, *_TIMES], n=1)
        hint = f"; did you mean {near[0]}?" if near else f" (one of {', '.join((*_TIMES, *_RATES))})"
        raise ObjectiveError(f"unknown metric {metric!r}{hint}")
    about = METRICS[metric]
    allowed = _allowed_of(metric, stat)
    wanted = (">", ">=") if about.better == "high" else ("<", "<=")
    if operator not in wanted:
        raise ObjectiveError(f"{metric} has to be {wanted[0]} or {wanted[1]} a limit, got {operator!r}")
    try:
        value = parse_limit(limit, about.kind)
    except QuantityError as error:
        raise ObjectiveError(f"{metric}: {error}") from None
    words = " ".join(text.split())
    if allowed is not None:
        if value <= 0.0:
            raise ObjectiveError(f"{metric}: expected a limit above zero, got {limit!r}")
        return Objective(words, metric, allowed, value)
    share = 1.0 - value if about.better == "high" else value
    if not 0.0 < share < 1.0:
        raise ObjectiveError(f"{metric}: a limit of {limit} can never be shown to hold, or always holds")
    return Objective(words, metric, share)


def _allowed_of(metric: str, stat: str | None) -> float | None:
    """Return the share of requests that may be slower; None for a rate, whose limit says it."""
    if metric in _RATES:
        if stat not in (None, "rate"):
            raise ObjectiveError(f"{metric} is a share and has no {stat}: write {metric} < LIMIT")
        return None
    if stat is None or stat not in QUANTILES:
        got = f"got {stat}" if stat else "there is none"
        raise ObjectiveError(f"{metric}: expected a percentile ({', '.join(QUANTILES)}), {got}")
    return 1.0 - QUANTILES[stat]

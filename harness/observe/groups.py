"""The numbers of one group of streams (a protocol, a scenario, all of them), collected record by record."""

from __future__ import annotations

from collections import Counter
from typing import Any, get_args

from harness.gateways.profile import Keepalive
from harness.observe.buckets import Histogram
from harness.observe.quantiles import Sample
from harness.stream.outcome import CLIENT_ENDED, OUTCOMES, SoftStallClass
from harness.stream.record import Attempt

# The per-stream measures, under the names that gates and reports use.
MEASURES = (
    "ttft", "first_content", "headers", "duration", "tpot", "gap_p99", "gap_max", "silence",
    "keepalive_interval",
)  # fmt: skip
_SOFT = frozenset(get_args(SoftStallClass))


class Group:
    """A group's counts and samples; only measured streams (no warm-up) belong in here."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.finishes: Counter[str] = Counter()
        self.samples = {name: Sample() for name in MEASURES}
        self.stalls: dict[str, Counter[str]] = {"hard": Counter(), "watched": Counter(), "soft": Counter()}
        self.error_events: Counter[str] = Counter()
        self.http_errors: Counter[str] = Counter()
        self.violations: Counter[str] = Counter()
        self.retries: Counter[str] = Counter()
        self.tokens: Counter[str] = Counter()
        self.token_sources: Counter[str] = Counter()
        self.keepalives: Counter[str] = Counter()
        self.events = self.uncertain_events = 0
        self._interval_weight = 0
        self._interval_sum_s = 0.0

    def add(self, record: Attempt) -> None:
        """Add one measured attempt."""
        self.outcomes[record.outcome] += 1
        if record.finish:
            self.finishes[record.finish] += 1
        self._add_times(record)
        self._add_keepalives(record)
        for stall in (record.stall, *record.soft_stalls):
            if stall is not None:
                level = "soft" if stall.class_ in _SOFT else "hard" if stall.fatal else "watched"
                self.stalls[level][stall.class_] += 1
        if record.error is not None and record.error.layer == "stream":
            self.error_events[record.error.type or record.error.code or "none"] += 1
        if record.outcome == "http_error":
            self.http_errors[str(record.status)] += 1
        self.violations.update(record.violations)
        if record.retry.decision == "retry":
            self.retries[record.retry.reason or "none"] += 1
        for kind in ("input", "output", "reasoning", "cached"):
            self.tokens[kind] += getattr(record.tokens, kind) or 0
        self.token_sources[record.tokens.source] += 1
        if record.final and record.request_summary:
            self.tokens["wasted"] += record.request_summary.wasted_tokens
        self.events += record.events
        self.uncertain_events += record.uncertain_events

    def _add_times(self, record: Attempt) -> None:
        # What the client cut short would have come later: at least the time so far.
        at_least = record.end_s if record.outcome in CLIENT_ENDED else None
        samples, progress = self.samples, record.progress
        samples["ttft"].add(record.first_token_s, at_least)
        samples["first_content"].add(record.first_content_s, at_least)
        samples["headers"].add(record.headers_s, at_least)
        samples["duration"].add(record.end_s if record.success else None, at_least)
        tpot = None
        if record.last_token_s is not None and record.first_token_s is not None and progress.count > 1:
            tpot = (record.last_token_s - record.first_token_s) / (progress.count - 1)
        samples["tpot"].add(tpot)
        samples["gap_p99"].add(progress.gap_p99_s)
        samples["gap_max"].add(progress.gap_max_s)
        samples["silence"].add(record.silence_max_s)
        samples["keepalive_interval"].add(record.keepalive.gap_max_s)

    def _add_keepalives(self, record: Attempt) -> None:
        keepalive = record.keepalive
        for name in ("comments", "pings", "late", "violations"):
            self.keepalives[name] += getattr(keepalive, name)
        if keepalive.gap_mean_s is not None:
            weight = max(1, keepalive.comments + keepalive.pings)
            self._interval_weight += weight
            self._interval_sum_s += keepalive.gap_mean_s * weight

    def to_plain(self, gaps: Histogram | None, promise: Keepalive | None) -> dict[str, Any]:
        """Return the group for the summary; *gaps* are its pooled gaps, if known."""
        streams = sum(self.outcomes.values())
        return {
            "streams": streams,
            "outcomes": {name: self.outcomes[name] for name in OUTCOMES if self.outcomes[name]},
            "finishes": dict(self.finishes.most_common()),
            **{name: sample.to_plain() for name, sample in self.samples.items()},
            "inter_token": None if gaps is None else _pooled(gaps),
            "keepalive": {
                **{name: self.keepalives[name] for name in ("comments", "pings", "late", "violations")},
                "interval_mean_s": self._interval_mean(),
                "interval_max_s": max(self.samples["keepalive_interval"].values, default=None),
                "promised_s": None if promise is None else promise.interval_s,
                "promised_kind": None if promise is None else promise.kind,
                "late_after_s": None if promise is None else promise.late_s,
            },
            "stalls": {level: dict(counts.most_common()) for level, counts in self.stalls.items()},
            "error_events": dict(self.error_events.most_common()),
            "http_errors": dict(self.http_errors.most_common()),
            "violations": dict(self.violations.most_common()),
            "aborted": self.outcomes["aborted"],
            "abandoned": self.outcomes["abandoned"],
            "tokens": {
                **{kind: self.tokens[kind] for kind in ("input", "output", "reasoning", "cached", "wasted")},
                "counted_by": dict(self.token_sources),
            },
            "retries": dict(self.retries.most_common()),
            "events": self.events,
            "uncertain_events": self.uncertain_events,
        }

    def _interval_mean(self) -> float | None:
        return round(self._interval_sum_s / self._interval_weight, 6) if self._interval_weight else None


def _pooled(gaps: Histogram) -> dict[str, Any]:
    def rounded(value: float | None) -> float | None:
        return None if value is None else round(value, 6)

    return {
        "n": gaps.count,
        "p50_s": rounded(gaps.quantile(0.5)),
        "p99_s": rounded(gaps.quantile(0.99)),
        "source": "pooled over all gaps from histogram buckets (interpolated; warm-up included)",
    }

"""``summary.json``: a finished run in numbers, from its exact records.

Percentiles are those of `quantiles`, over the measured streams; the warm-up is counted apart. One number is
pooled from the aggregate's buckets, the gaps between tokens, and says so: the records keep no single gap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from harness.gateways.durations import format_duration
from harness.gateways.profile import Limits
from harness.observe.buckets import Histogram
from harness.observe.families import INTER_TOKEN
from harness.observe.groups import Group
from harness.observe.quantiles import P99_NEEDS
from harness.observe.recoveries import Recoveries, arrivals
from harness.observe.state import RunState
from harness.observe.totals import Totals
from harness.observe.watch import Watch, whole_seconds
from harness.stream.describe import describe, failure_name
from harness.stream.outcome import CLIENT_ENDED, OUTCOMES, is_failure
from harness.stream.record import Attempt
from harness.stream.stall import KEPT_SOFT

SCHEMA = "harness.summary/1"

_FAILURES_SHOWN = 50


def build_summary(
    records: Iterable[Attempt],
    run: RunState,
    totals: Totals | None = None,
    *,
    lost_records: int = 0,
    notes: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the summary as plain data; *records* is read once.

    *totals* are the run's own from the merged snapshot, None if only the records are left: what needs them is
    then null. *notes* may be a list that reading the records appends to.
    """
    seen = _Seen(watch=run.on_stall == "watch")
    for record in records:
        seen.add(record)
    protocols = {
        protocol: group.to_plain(_gaps(totals, protocol=protocol), run.keepalive)
        for protocol, group in sorted(seen.protocols.items())
    }
    return {
        "schema": SCHEMA,
        "run": run.run,
        "gateway": run.gateway,
        "simulated": run.simulated,
        "version": run.version,
        "time_scale": run.time_scale,
        "on_stall": run.on_stall,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "duration_s": _duration(run),
        "attempts": sum(seen.outcomes.values()),
        "outcomes": {name: seen.outcomes[name] for name in OUTCOMES if seen.outcomes[name]},
        "requests": seen.requests(totals),
        "conservation": _conservation(sum(seen.outcomes.values()), totals, lost_records),
        "warmup": {
            "attempts": sum(seen.warmup.values()),
            "outcomes": {name: seen.warmup[name] for name in OUTCOMES if seen.warmup[name]},
        },
        "totals": seen.all.to_plain(_gaps(totals), run.keepalive),
        "protocols": protocols,
        "groups": [
            {"protocol": protocol, "scenario": scenario, "model": model}
            | group.to_plain(_gaps(totals, protocol=protocol, scenario=scenario, model=model), run.keepalive)
            for (protocol, scenario, model), group in sorted(seen.groups.items())
        ]
        if len(seen.groups) > len(seen.protocols)
        else [],
        "failures": seen.failures(),
        "watch": seen.watch.to_plain() if seen.watch else [],
        "validity": {
            "valid": run.valid,
            "reasons": [reason.text for reason in run.reasons],
            "codes": [reason.code for reason in run.reasons],
            "threshold_s": run.threshold_s,
        },
        "notes": [*notes, *_notes(run, seen, totals)],
    }


class _Seen:
    """What one pass over the records collects."""

    def __init__(self, watch: bool) -> None:
        self.outcomes: Counter[str] = Counter()
        self.warmup: Counter[str] = Counter()
        self.overfull = 0  # records whose list of soft stalls is full
        self.all = Group()
        self.protocols: dict[str, Group] = {}
        self.groups: dict[tuple[str, str, str], Group] = {}
        self.watch = Watch() if watch else None
        self._request_outcomes: Counter[str] = Counter()
        self._retry_outcomes: Counter[str] = Counter()
        self._recoveries = Recoveries()
        self._waiting: set[str] = set()  # requests whose last line so far says that another follows
        self._failures: Counter[tuple[str, ...]] = Counter()
        self._failures_warmup: Counter[tuple[str, ...]] = Counter()
        self._examples: dict[tuple[str, ...], Attempt] = {}

    def add(self, record: Attempt) -> None:
        """Count one record, warm-up or measured."""
        self.outcomes[record.outcome] += 1
        self.overfull += len(record.soft_stalls) >= KEPT_SOFT
        self._add_request(record)
        if is_failure(record.outcome):
            self._add_failure(record)
        if record.phase == "warmup":
            self.warmup[record.outcome] += 1
            return
        key = (record.protocol, record.scenario, record.model)
        for group in (
            self.all,
            self.protocols.setdefault(record.protocol, Group()),
            self.groups.setdefault(key, Group()),
        ):
            group.add(record)
        if self.watch is not None:
            self.watch.add(record)

    def _add_request(self, record: Attempt) -> None:
        if not record.final:
            self._waiting.add(record.request)
            return
        self._waiting.discard(record.request)
        summary = record.request_summary
        if summary:
            self._request_outcomes[summary.outcome] += 1
            self._retry_outcomes[summary.retry_outcome or "none"] += 1
            self._recoveries.add(record, summary)
        else:
            self._request_outcomes[record.outcome] += 1

    def _add_failure(self, record: Attempt) -> None:
        # Durations and counts differ from stream to stream; what failed is the same.
        error = record.error
        kind = (failure_name(record), str(record.status), (error and (error.type or error.code)) or "")
        self._failures[kind] += 1
        self._failures_warmup[kind] += record.phase == "warmup"
        self._examples.setdefault(kind, record)

    def requests(self, totals: Totals | None) -> dict[str, Any]:
        """Return what became of the requests; one that was stopped before its retry counts as aborted."""
        outcomes = self._request_outcomes + Counter({"aborted": len(self._waiting)})
        return {
            "started": None if totals is None else totals.requests()[0],
            "ended": sum(outcomes.values()),
            "outcomes": {name: outcomes[name] for name in OUTCOMES if outcomes[name]},
            "retry_outcomes": dict(self._retry_outcomes.most_common()),
            "recovered": self._recoveries.to_plain(),
            "arrivals": None if totals is None else arrivals(totals),
        }

    def notes(self) -> list[str]:
        """Return what is worth a sentence about retries."""
        return self._recoveries.notes()

    def failures(self) -> list[dict[str, Any]]:
        """Return the kinds of failure, most frequent first, each with one stream as an example."""
        return [
            {
                "name": kind[0],
                "count": n,
                "in_warmup": self._failures_warmup[kind],
                "example": describe(self._examples[kind]),
                "request": self._examples[kind].request,
            }
            for kind, n in self._failures.most_common(_FAILURES_SHOWN)
        ]


def _gaps(totals: Totals | None, **where: str) -> Histogram | None:
    return None if totals is None else totals.pooled(INTER_TOKEN, **where)


def _duration(run: RunState) -> float | None:
    return None if run.ended_at is None else round(run.ended_at - run.started_at, 3)


def _conservation(recorded: int, totals: Totals | None, lost_records: int) -> dict[str, Any]:
    if totals is None:
        return {"started": None, "ended": None, "open": None, "recorded": recorded, "lost": lost_records,
                "balanced": None}  # fmt: skip
    numbers = totals.conservation()
    return {
        "started": numbers.started,
        "ended": numbers.ended,
        "open": numbers.open,
        "recorded": recorded,
        "lost": numbers.started - numbers.open - recorded,  # has no line, whatever the reason
        "balanced": not numbers.missing and numbers.ended == recorded,
    }


def _notes(run: RunState, seen: _Seen, totals: Totals | None) -> list[str]:
    notes = []
    longest, duration_s = longest_stall_limit(run.limits), _duration(run)
    if longest is not None and duration_s is not None and duration_s < longest:
        notes.append(
            f"run shorter than its own stall limit ({whole_seconds(longest)}): a stream that hung may have "
            "been cut before that could be told"
        )
    notes += seen.notes()
    streams = sum(seen.all.outcomes.values())
    if not streams and seen.warmup:
        notes.append("every stream fell into the warm-up: no percentiles (shorten --warmup or run longer)")
    elif 0 < streams < P99_NEEDS:
        notes.append(f"{streams} streams: a p99 means little below {P99_NEEDS + 1}")
    if cut := sum(seen.all.outcomes[outcome] for outcome in CLIENT_ENDED):
        notes.append(
            f"{cut} streams were ended by the client: percentiles take their times as at least that long "
            "(beyond run: longer than the run can tell)"
        )
    if seen.overfull:
        notes.append(
            f"{seen.overfull:,} streams had {KEPT_SOFT} soft stalls or more: the records keep the first "
            f"{KEPT_SOFT} of each, the metrics count all"
        )
    if totals is not None and (late := totals.health.first_tokens_uncertain):
        notes.append(
            f"{late:,} of {totals.health.first_tokens:,} first tokens were read late: their TTFT may be too "
            f"long, by more than {format_duration(run.threshold_s)}"
        )
    if totals is not None and (planned := arrivals(totals)):
        notes.append(
            f"{planned['planned']:,} starts were planned: {planned['started']:,} began, "
            f"{planned['dropped']:,} found no room and were dropped"
        )
    if totals is not None and (rejected := totals.rejected()):
        notes.append(f"{rejected} measured values were no times (negative or not a number) and are left out")
    return notes


def longest_stall_limit(limits: Limits) -> float | None:
    """Return the longest of the hard limits that tell a stalled stream, seconds; None without any."""
    names = ("headers", "first_byte", "first_token", "progress", "silence")
    return max((s for name in names if (s := getattr(limits, name).fail_s) is not None), default=None)

"""Prometheus rules: ratios that alerts are about, and the alerts, each with what to do in the runbook.

A load tester is absent most of the time, so no alert may fire because nothing is there. What is about a run
asks first whether one is on.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.observe.boards.panels import Json
from harness.observe.boards.queries import HARD, JUDGED
from harness.observe.families import PREFIX

RUNBOOK = "docs/runbook.md"
EVALUATED = "5s"

# The objective that the burn-rate alerts guard: this share of the attempts has its first token this soon.
TTFT_SHARE = 0.99
TTFT_LIMIT_S = "5.0"  # spelled as the exporter spells the bound

_BY = "by (run, gateway, protocol)"
_WINDOWS = ("5m", "30m", "1h", "6h")
# Below so many attempts in five minutes a share says nothing.
_ENOUGH = f"sum {_BY} (increase({PREFIX}attempts_total{{{JUDGED}}}[5m])) >= 20"
_RUN_ON = "on () count(harness:run_on) > 0"


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert. *heading* is the runbook's; `description` holds the number."""

    name: str
    severity: str
    expr: str
    held: str  # how long the condition has to hold
    summary: str
    description: str
    heading: str

    @property
    def anchor(self) -> str:
        """The heading as a link's anchor."""
        return self.heading.lower().replace(" ", "-")


def recording() -> Json:
    """Return the recording rules."""
    rules = [
        {
            "record": "harness:run_on",
            "expr": (
                f"{PREFIX}run_start_timestamp_seconds\n"
                f"unless on (run, gateway) {PREFIX}run_end_timestamp_seconds"
            ),
        },
        _ratio(
            "harness:stalled:ratio_rate5m",
            f'stalls_total{{{HARD},fatal="true"}}',
            f"attempts_total{{{JUDGED}}}",
        ),
        _ratio("harness:error_events:ratio_rate5m", "error_events_total", f"attempts_total{{{JUDGED}}}"),
        _ratio(
            "harness:keepalive_violations:ratio_rate5m",
            'keepalive_deviations_total{severity="violation"}',
            "keepalives_total",
        ),
        *(_missed(window) for window in _WINDOWS),
    ]
    return {"groups": [{"name": "harness-recording", "interval": EVALUATED, "rules": rules}]}


def _ratio(record: str, part: str, whole: str) -> Json:
    return {
        "record": record,
        "expr": f"sum {_BY} (rate({PREFIX}{part}[5m]))\n/ (sum {_BY} (rate({PREFIX}{whole}[5m])) > 0)",
    }


def _missed(window: str) -> Json:
    """Return the share of attempts without a first token in time: late, or failed before it."""
    fast = f'sum {_BY} (rate({PREFIX}time_to_first_token_seconds_bucket{{le="{TTFT_LIMIT_S}"}}[{window}]))'
    every = f"sum {_BY} (rate({PREFIX}attempts_total{{{JUDGED}}}[{window}]))"
    return {
        "record": f"harness:ttft_missed:ratio_rate{window}",
        "expr": f"clamp_min(1 - ({fast} or {every} * 0)\n/ ({every} > 0), 0)",
    }


def _share(record: str, limit: float) -> str:
    return f"{record} > {limit:g}\nand on (run, gateway, protocol) {_ENOUGH}"


def _burn(factor: float, long: str, short: str) -> str:
    limit = factor * (1 - TTFT_SHARE)
    return (
        f"harness:ttft_missed:ratio_rate{long} > {limit:g}\n"
        f"and harness:ttft_missed:ratio_rate{short} > {limit:g}\n"
        f"and on (run, gateway, protocol) {_ENOUGH}"
    )


_WHOSE = "{{ $labels.protocol }} on {{ $labels.gateway }}, run {{ $labels.run }}"
_PERCENT = "{{ $value | humanizePercentage }}"

ALERTS: tuple[Alert, ...] = (
    Alert(
        "HarnessStallRate",
        "critical",
        _share("harness:stalled:ratio_rate5m", 0.01),
        "30s",
        f"Streams stall: {_WHOSE}",
        f"{_PERCENT} of the attempts of the last five minutes were ended by a hard stall limit (alert above"
        " 1 %).",
        "Streams stall",
    ),
    Alert(
        "HarnessKeepaliveViolations",
        "warning",
        "harness:keepalive_violations:ratio_rate5m > 0.01",
        "30s",
        f"Keepalives break the promise: {_WHOSE}",
        f"{_PERCENT} of the keepalives of the last five minutes came later than the profile calls broken "
        "(alert above 1 %).",
        "Keepalives break the promise",
    ),
    Alert(
        "HarnessTtftBurnFast",
        "critical",
        _burn(14.4, "1h", "5m"),
        "30s",
        f"First tokens are late: {_WHOSE}",
        f"{_PERCENT} of the attempts of the last hour had no first token within 5 s, and as many of the last"
        " five minutes: more than 14.4 times what an objective of 99 % allows.",
        "First tokens are late",
    ),
    Alert(
        "HarnessTtftBurnSlow",
        "warning",
        _burn(6, "6h", "30m"),
        "1m",
        f"First tokens are often late: {_WHOSE}",
        f"{_PERCENT} of the attempts of the last six hours had no first token within 5 s, and as many of the"
        " last half hour: more than 6 times what an objective of 99 % allows.",
        "First tokens are late",
    ),
    Alert(
        "HarnessErrorEvents",
        "critical",
        _share("harness:error_events:ratio_rate5m", 0.01),
        "30s",
        f"Errors inside streams: {_WHOSE}",
        f"{_PERCENT} of the attempts of the last five minutes ended with an error inside HTTP 200 (alert"
        " above 1 %).",
        "Errors inside streams",
    ),
    Alert(
        "HarnessGeneratorLag",
        "warning",
        f"(histogram_quantile(0.99, sum by (le, worker) (rate({PREFIX}hub_lag_seconds_bucket[1m]))) > 0.05)\n"
        f"and {_RUN_ON}",
        "20s",
        "The load generator is late: {{ $labels.worker }}",
        "The event loop came round up to {{ $value | humanizeDuration }} late (p99 of the last minute, alert"
        " above 50 ms): latencies of this run may be the generator's own.",
        "The load generator is the bottleneck",
    ),
    Alert(
        "HarnessGeneratorCpu",
        "warning",
        f"({PREFIX}generator_cpu_ratio > 0.9)\nand {_RUN_ON}",
        "20s",
        "The load generator is out of CPU: {{ $labels.worker }}",
        f"The process uses {_PERCENT} of a core (alert above 90 %); it has no more than one.",
        "The load generator is the bottleneck",
    ),
    Alert(
        "HarnessArrivalsDropped",
        "warning",
        f'sum {_BY} (rate({PREFIX}arrivals_total{{result="dropped"}}[1m]))\n'
        f"/ (sum {_BY} (rate({PREFIX}arrivals_total[1m])) > 0) > 0.01",
        "20s",
        f"Planned requests are dropped: {_WHOSE}",
        f"{_PERCENT} of the planned starts of the last minute found no free user (alert above 1 %): less load"
        " is offered than was asked for.",
        "The load generator is the bottleneck",
    ),
    Alert(
        "HarnessWorkerLost",
        "critical",
        f'(sum({PREFIX}workers{{state="missing"}}) > 0)\nand {_RUN_ON}',
        "0s",
        "Workers are missing",
        "{{ $value }} workers do not answer any more: their users are gone, and the run will not be valid.",
        "A worker is lost",
    ),
    Alert(
        "HarnessWorkerSilent",
        "warning",
        f"({PREFIX}worker_report_age_seconds > 10)\nand {_RUN_ON}",
        "0s",
        "A worker does not report: {{ $labels.worker }}",
        "Its last report is {{ $value | humanizeDuration }} old (alert above 10 s; they come every 3 s).",
        "A worker is lost",
    ),
    Alert(
        "HarnessExporterGone",
        "critical",
        # It was there within ten minutes with a run that had begun and not ended, and now it is not.
        f"last_over_time({PREFIX}run_start_timestamp_seconds[10m])\n"
        f"unless on (run, gateway) last_over_time({PREFIX}run_end_timestamp_seconds[10m])\n"
        f"unless on (run, gateway) {PREFIX}run_start_timestamp_seconds",
        "15s",
        "The exporter is gone: run {{ $labels.run }}",
        "Run {{ $labels.run }} on {{ $labels.gateway }} began at {{ $value | humanizeTimestamp }} and was on"
        " when its metrics stopped: the load generator died, or cannot be reached. No other alert of this run"
        " can fire.",
        "The exporter is gone",
    ),
    Alert(
        "HarnessRunInvalid",
        "warning",
        f"{PREFIX}run_valid == 0",
        "0s",
        "The run is not valid: {{ $labels.run }}",
        "Run {{ $labels.run }} on {{ $labels.gateway }} was judged {{ $value }} (not valid), reason "
        "{{ $labels.reason }}: its numbers are neither good nor bad.",
        "The run is not valid",
    ),
)


def alerts(runbook: str = RUNBOOK) -> Json:
    """Return the alert rules; *runbook* is where the runbook can be read."""
    rules = [
        {
            "alert": alert.name,
            "expr": alert.expr,
            **({"for": alert.held} if alert.held != "0s" else {}),
            "labels": {"severity": alert.severity},
            "annotations": {
                "summary": alert.summary,
                "description": alert.description,
                "runbook_url": f"{runbook}#{alert.anchor}",
            },
        }
        for alert in ALERTS
    ]
    return {"groups": [{"name": "harness-alerts", "interval": EVALUATED, "rules": rules}]}

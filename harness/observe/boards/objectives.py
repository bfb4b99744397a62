"""What a run is held against, what is left of its error budget, and whether it counts at all."""

from __future__ import annotations

from harness.observe.boards.layout import Placed, half, small
from harness.observe.boards.panels import BAD, GOOD, WARN, Column, Query, stat, table, thresholds, timeseries
from harness.observe.boards.queries import COMPLETED, JUDGED, RANGE, metric, rate, share, total, within
from harness.observe.families import PREFIX

TTFT = "time_to_first_token_seconds"

# Attempts that count (the client did not end them), and which of them met an objective.
ATTEMPTS = total("attempts_total", JUDGED)
DONE = total("attempts_total", COMPLETED)
FAST = within("$ttft_limit", TTFT)

_BUDGET = "(1 - $objective)"


def _missed(good: str) -> str:
    """Return the share of the attempts that count which are not among *good*."""
    return f"1 - {share(good, ATTEMPTS)}"


def _left(good: str) -> str:
    """Return what is left of the run's error budget: 1 untouched, 0 used up, negative overdrawn."""
    return f"1 - ({_missed(good)}) / {_BUDGET}"


def objectives_of_run() -> list[Placed]:
    """Return what is left of the run's budgets, and how fast they are used."""
    budget = thresholds((0, WARN), (0.25, GOOD), base=BAD)
    judged, done = rate("attempts_total", JUDGED), rate("attempts_total", COMPLETED)
    fast = within("$ttft_limit", TTFT, whole_run=False)
    lines = thresholds((1, "yellow"), (3, WARN), (6, "dark-orange"), (14.4, BAD))

    def left(title: str, what: str, good: str, name: str) -> Placed:
        return small(
            stat(
                title,
                f"Of the run's attempts, a share of 1 - objective may {what}. 100 %: none has; 0 %: all of"
                f" them have; negative: more than allowed. Metrics: `{PREFIX}{name}`,"
                f" `{PREFIX}attempts_total`.",
                "percentunit",
                Query(_left(good), "", "instant"),
                limits=budget,
            )
        )

    return [
        left("TTFT budget left", "miss the TTFT limit", FAST, TTFT),
        left("Success budget left", "fail", DONE, "attempts_total"),
        small(
            stat(
                "TTFT misses left",
                f"Allowed misses minus those seen; negative: overdrawn by so many. Metric: `{PREFIX}{TTFT}`.",
                "locale",
                Query(f"{_BUDGET} * {ATTEMPTS} - ({ATTEMPTS} - ({FAST} or {ATTEMPTS} * 0))", "", "instant"),
                limits=thresholds((0, GOOD), base=BAD),
                decimals=1,
            )
        ),
        small(
            stat(
                "Failures left",
                f"Allowed failures minus those seen. Metric: `{PREFIX}attempts_total`.",
                "locale",
                Query(f"{_BUDGET} * {ATTEMPTS} - ({ATTEMPTS} - ({DONE} or {ATTEMPTS} * 0))", "", "instant"),
                limits=thresholds((0, GOOD), base=BAD),
                decimals=1,
            )
        ),
        half(
            timeseries(
                "Burn rate",
                "How many times faster than allowed the budget is used: 1 just lasts. Lines at 1, 3, 6 and"
                f" 14.4, as alerting has them. Metrics: `{PREFIX}{TTFT}`, `{PREFIX}attempts_total`.",
                "none",
                Query(f"(1 - {share(fast, judged)}) / {_BUDGET}", "TTFT"),
                Query(f"(1 - {share(done, judged)}) / {_BUDGET}", "success"),
                lines=lines,
            )
        ),
    ]


def validity() -> list[Placed]:
    """Return the runs in view, and why they count or not."""
    info = f"last_over_time({metric('run_info')}[{RANGE}])"
    start = f"last_over_time({metric('run_start_timestamp_seconds')}[{RANGE}])"
    end = f"last_over_time({metric('run_end_timestamp_seconds')}[{RANGE}])"
    valid = f"last_over_time({metric('run_valid')}[{RANGE}])"
    return [
        half(
            table(
                "Runs in view",
                f"Metrics: `{PREFIX}run_info`, `{PREFIX}run_start_timestamp_seconds`,"
                f" `{PREFIX}run_end_timestamp_seconds`.",
                {"run": "Run", "gateway": "Gateway", "simulated": "Simulated", "version": "Version"},
                Column(
                    "Began",
                    "dateTimeAsIso",
                    f"sum by (run, gateway, version, simulated) ({info} * on (run, gateway) "
                    f"group_left () ({start} * 1000))",
                ),
                Column(
                    "Lasted",
                    "s",
                    f"sum by (run, gateway, version, simulated) ({info} * on (run, gateway) "
                    f"group_left () ({end} - {start}))",
                ),
            )
        ),
        half(
            table(
                "Validity by reason",
                "1: valid (reason 'none'). 0: not valid, once for each reason. Empty until the end of the"
                f" run. Metric: `{PREFIX}run_valid`.",
                {"run": "Run", "gateway": "Gateway", "reason": "Reason"},
                Column(
                    "Valid",
                    "none",
                    f"min by (run, gateway, reason) ({valid})",
                    thresholds((1, GOOD), base=BAD),
                ),
            )
        ),
    ]

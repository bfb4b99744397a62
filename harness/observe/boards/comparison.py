"""Comparison: two runs, or two gateways, side by side."""

from __future__ import annotations

from harness.observe.boards.health import banner, generator_row
from harness.observe.boards.layout import Placed, Row, board, chart, wide
from harness.observe.boards.panels import Column, Json, Query, bars, table, timeseries
from harness.observe.boards.queries import (
    COMPLETED,
    HARD,
    JUDGED,
    per,
    quantile,
    rate,
    run_quantile,
    share,
    total,
)
from harness.observe.boards.variables import sides, standard
from harness.observe.families import PREFIX

TTFT = "time_to_first_token_seconds"
GAP = "inter_token_latency_seconds"
DURATION = "stream_duration_seconds"
FATAL = 'fatal="true"'

BY = ("$by",)
SIDES = (("A", '$by="$a"'), ("B", '$by="$b"'))


def comparison() -> Json:
    """Return the board."""
    return board(
        "harness-comparison",
        "Harness / Comparison",
        "Two runs or two gateways side by side: choose by which label, and the values A and B. Totals are of"
        " whole runs, so the runs need not have been at the same time. For a verdict with intervals: harness"
        " compare.",
        [*standard(every_run=True), *sides()],
        [
            Row("", [banner()]),
            Row("Everything in view", [_everything()]),
            Row("A against B, whole runs", _totals()),
            Row("A against B, over time", _over_time()),
            generator_row(),
        ],
    )


def _everything() -> Placed:
    judged = total("attempts_total", JUDGED, by=BY)
    stalled = total("stalls_total", HARD, FATAL, by=BY)
    tokens = total("tokens_total", 'kind="output"', by=BY)
    return wide(
        table(
            "Whole runs by $by",
            "A row per value of the chosen label. Percentiles are interpolated inside their bucket. Metrics:"
            f" `{PREFIX}attempts_total`, `{PREFIX}{TTFT}`, `{PREFIX}{GAP}`, `{PREFIX}stalls_total`,"
            f" `{PREFIX}tokens_total`.",
            {"run": "Run", "gateway": "Gateway"},
            Column("Attempts", "locale", total("attempts_total", by=BY)),
            Column("Completed", "percentunit", share(total("attempts_total", COMPLETED, by=BY), judged)),
            Column("TTFT p50", "s", run_quantile(0.5, TTFT, by=BY)),
            Column("TTFT p95", "s", run_quantile(0.95, TTFT, by=BY)),
            Column("TTFT p99", "s", run_quantile(0.99, TTFT, by=BY)),
            Column("Gap p99", "s", run_quantile(0.99, GAP, by=BY)),
            Column("Stalled", "percentunit", share(stalled, judged)),
            Column("Errors in streams", "percentunit", share(total("error_events_total", by=BY), judged)),
            Column("Tokens per attempt", "suffix: tok", per(tokens, judged)),
        )
    )


def _totals() -> list[Placed]:
    def pair(title: str, about: str, unit: str, queries: list[Query]) -> Placed:
        return chart(bars(title, f"{about} Whole runs.", unit, *queries))

    def percentiles(name: str) -> list[Query]:
        return [
            Query(run_quantile(q, name, side), f"{label} {which}", "instant")
            for q, which in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"))
            for label, side in SIDES
        ]

    def shares(name: str, *matchers: str) -> list[Query]:
        return [
            Query(
                share(total(name, side, *matchers), total("attempts_total", side, JUDGED)), label, "instant"
            )
            for label, side in SIDES
        ]

    return [
        pair("TTFT", f"A is $a, B is $b. Metric: `{PREFIX}{TTFT}`.", "s", percentiles(TTFT)),
        pair("Gap between tokens", f"A is $a, B is $b. Metric: `{PREFIX}{GAP}`.", "s", percentiles(GAP)),
        pair(
            "Duration of streams",
            f"A is $a, B is $b. Metric: `{PREFIX}{DURATION}`.",
            "s",
            percentiles(DURATION),
        ),
        pair(
            "Completed",
            f"A is $a, B is $b. Metric: `{PREFIX}attempts_total`.",
            "percentunit",
            shares("attempts_total", COMPLETED),
        ),
        pair(
            "Stalled",
            f"A is $a, B is $b. Metric: `{PREFIX}stalls_total`.",
            "percentunit",
            shares("stalls_total", HARD, FATAL),
        ),
        pair(
            "Errors in streams",
            f"A is $a, B is $b. Metric: `{PREFIX}error_events_total`.",
            "percentunit",
            shares("error_events_total"),
        ),
    ]


def _over_time() -> list[Placed]:
    def both(title: str, about: str, unit: str, queries: list[Query]) -> Placed:
        return chart(timeseries(title, about, unit, *queries, dashed=["B.*"]))

    return [
        both(
            "TTFT p95",
            f"A is $a, B (dashed) is $b. Metric: `{PREFIX}{TTFT}`.",
            "s",
            [Query(quantile(0.95, TTFT, side), label) for label, side in SIDES],
        ),
        both(
            "Completed per second",
            f"A is $a, B (dashed) is $b. Metric: `{PREFIX}attempts_total`.",
            "reqps",
            [Query(rate("attempts_total", side, COMPLETED), label) for label, side in SIDES],
        ),
        both(
            "Outcomes that are failures",
            f"A is $a, B (dashed) is $b. Metric: `{PREFIX}attempts_total`.",
            "reqps",
            [
                Query(
                    rate("attempts_total", side, JUDGED, 'outcome!="completed"', by=("outcome",)),
                    f"{label} {{{{outcome}}}}",
                )
                for label, side in SIDES
            ],
        ),
    ]

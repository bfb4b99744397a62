"""Errors and retries: what went wrong, and did trying again help?"""

from __future__ import annotations

from harness.observe.boards.health import banner, generator_row
from harness.observe.boards.layout import Placed, Row, board, chart, half, small
from harness.observe.boards.panels import (
    BAD,
    GOOD,
    WARN,
    Column,
    Json,
    Query,
    stat,
    table,
    thresholds,
    timeseries,
)
from harness.observe.boards.queries import COMPLETED, JUDGED, per, quantile, rate, share, total
from harness.observe.boards.variables import standard
from harness.observe.families import PREFIX

FIRST = 'retry_outcome="not_needed"'
NOT_OK = 'status!~"2..|none"'
WASTED = 'kind="wasted"'

_REQUESTS = total("requests_total", JUDGED)
_ATTEMPTS = total("attempts_total", JUDGED)


def errors() -> Json:
    """Return the board."""
    return board(
        "harness-errors",
        "Harness / Errors and retries",
        "What went wrong, where in the stream, and whether trying again helped. Most failures of a streaming"
        " gateway arrive inside HTTP 200.",
        standard(),
        [
            Row("", [banner()]),
            Row("", _numbers()),
            Row("Outcomes", _outcomes()),
            Row("Errors", _errors()),
            Row("Retries", _retries()),
            generator_row(),
        ],
    )


def _numbers() -> list[Placed]:
    success = thresholds((0.95, WARN), (0.99, GOOD), base=BAD)

    def number(title: str, about: str, unit: str, expr: str, limits: Json | None = None) -> Placed:
        decimals = 2 if unit == "percentunit" else 0 if unit == "locale" else None
        return small(
            stat(
                title,
                f"{about} Whole run.",
                unit,
                Query(expr, "", "instant"),
                limits=limits,
                decimals=decimals,
            )
        )

    def seen(name: str, *matchers: str) -> str:
        return f"{total(name, *matchers)} or {_ATTEMPTS} * 0"

    return [
        number(
            "First-attempt success",
            f"Of the requests that the client did not end. Metric: `{PREFIX}requests_total`.",
            "percentunit",
            share(total("requests_total", FIRST), _REQUESTS),
            success,
        ),
        number(
            "Final success",
            f"After all retries: what the users saw. Metric: `{PREFIX}requests_total`.",
            "percentunit",
            share(total("requests_total", COMPLETED), _REQUESTS),
            success,
        ),
        number(
            "Retries",
            f"Attempts that were followed by another one. Metric: `{PREFIX}retries_total`.",
            "locale",
            seen("retries_total"),
        ),
        number(
            "Attempts per request",
            f"1 without retries. Metric: `{PREFIX}request_attempts`.",
            "none",
            per(total("request_attempts_sum"), total("request_attempts_count")),
        ),
        number(
            "Errors in streams",
            f"Inside HTTP 200. Metric: `{PREFIX}error_events_total`.",
            "locale",
            seen("error_events_total"),
            thresholds((1, BAD)),
        ),
        number(
            "HTTP errors",
            f"Statuses other than 2xx. Metric: `{PREFIX}attempts_total`.",
            "locale",
            seen("attempts_total", NOT_OK),
            thresholds((1, BAD)),
        ),
        number(
            "Tokens wasted",
            f"Generated, billed and thrown away by retries, of all output. Metric: `{PREFIX}tokens_total`.",
            "percentunit",
            share(total("tokens_total", WASTED), total("tokens_total", 'kind="output"')),
            thresholds((0.01, WARN), (0.05, BAD)),
        ),
        number(
            "Protocol violations",
            f"Breaches that did not change the outcome. Metric: `{PREFIX}protocol_violations_total`.",
            "locale",
            seen("protocol_violations_total"),
            thresholds((1, WARN)),
        ),
    ]


def _outcomes() -> list[Placed]:
    return [
        half(
            timeseries(
                "Outcomes",
                f"How attempts ended. Metric: `{PREFIX}attempts_total`.",
                "reqps",
                Query(rate("attempts_total", by=("outcome",)), "{{outcome}}"),
                stacked=True,
            )
        ),
        half(
            table(
                "Outcomes by protocol",
                f"Attempts of this run. Metric: `{PREFIX}attempts_total`.",
                {"protocol": "Protocol", "outcome": "Outcome", "status": "HTTP status"},
                Column("Attempts", "locale", total("attempts_total", by=("protocol", "outcome", "status"))),
            )
        ),
    ]


def _errors() -> list[Placed]:
    return [
        chart(
            timeseries(
                "Errors in streams by type and phase",
                "before_first_token: the user saw nothing yet, a retry is free; mid_stream: what was"
                f" generated is lost and billed. Metric: `{PREFIX}error_events_total`.",
                "reqps",
                Query(rate("error_events_total", by=("error_type", "phase")), "{{error_type}} {{phase}}"),
                stacked=True,
            )
        ),
        chart(
            timeseries(
                "HTTP errors by status",
                f"Metric: `{PREFIX}attempts_total`.",
                "reqps",
                Query(rate("attempts_total", NOT_OK, by=("status",)), "{{status}}"),
                stacked=True,
            )
        ),
        chart(
            table(
                "Protocol violations by rule",
                f"Whole run. Metric: `{PREFIX}protocol_violations_total`.",
                {"protocol": "Protocol", "rule": "Rule"},
                Column("Count", "locale", total("protocol_violations_total", by=("protocol", "rule"))),
            )
        ),
    ]


def _retries() -> list[Placed]:
    requests = rate("requests_total", JUDGED)
    return [
        chart(
            timeseries(
                "First attempt and final success",
                "The distance between the lines is what retries save, and what they cost is below. Metric: "
                f"`{PREFIX}requests_total`.",
                "percentunit",
                Query(share(rate("requests_total", FIRST), requests), "first attempt"),
                Query(share(rate("requests_total", COMPLETED), requests), "in the end"),
            )
        ),
        chart(
            timeseries(
                "Retries by reason",
                f"Metric: `{PREFIX}retries_total`.",
                "reqps",
                Query(rate("retries_total", by=("reason",)), "{{reason}}"),
                stacked=True,
            )
        ),
        chart(
            timeseries(
                "Waits before retries",
                f"Metric: `{PREFIX}retry_wait_seconds`.",
                "s",
                Query(quantile(0.5, "retry_wait_seconds"), "p50"),
                Query(quantile(0.95, "retry_wait_seconds"), "p95"),
            )
        ),
        half(
            timeseries(
                "Wasted tokens",
                "Generated and billed, then thrown away because the request was sent again. Metric: "
                f"`{PREFIX}tokens_total`.",
                "suffix: tok/s",
                Query(rate("tokens_total", WASTED, by=("protocol",)), "{{protocol}}"),
                stacked=True,
            )
        ),
        half(
            table(
                "Requests by what became of them",
                f"Whole run. Metric: `{PREFIX}requests_total`.",
                {"protocol": "Protocol", "outcome": "Outcome", "retry_outcome": "Retries"},
                Column(
                    "Requests", "locale", total("requests_total", by=("protocol", "outcome", "retry_outcome"))
                ),
            )
        ),
    ]

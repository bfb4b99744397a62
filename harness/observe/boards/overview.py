"""Run overview: is this run good?"""

from __future__ import annotations

from harness.observe.boards.health import banner, generator_row
from harness.observe.boards.layout import Placed, Row, board, chart, small
from harness.observe.boards.objectives import ATTEMPTS, DONE, FAST, TTFT, objectives_of_run, validity
from harness.observe.boards.panels import (
    BAD,
    GOOD,
    WARN,
    Json,
    Query,
    bars,
    mapping,
    stat,
    thresholds,
    timeseries,
)
from harness.observe.boards.queries import (
    COMPLETED,
    HARD,
    RANGE,
    metric,
    now,
    quantile,
    rate,
    run_quantile,
    share,
    total,
)
from harness.observe.boards.variables import objectives, standard
from harness.observe.families import PREFIX


def overview() -> Json:
    """Return the board."""
    return board(
        "harness-overview",
        "Harness / Run overview",
        "Is this run good? Offered against achieved load, time to first token, outcomes, errors, objectives, "
        "and whether the numbers can be trusted.",
        [*standard(), *objectives()],
        [
            Row("", [banner()]),
            Row("", _numbers()),
            Row("Load", _load()),
            Row("Latency", _latency()),
            Row("Outcomes", _outcomes()),
            Row("Objectives of this run", objectives_of_run()),
            Row("Validity", validity()),
            generator_row(),
        ],
    )


def _numbers() -> list[Placed]:
    valid = f"min(last_over_time({metric('run_valid')}[{RANGE}]))"
    return [
        small(
            stat(
                "Valid",
                "Whether the run's numbers can be trusted. It is judged at the end of the run; an invalid"
                " run has neither passed nor failed. The reasons are in the row Validity. Metric:"
                f" `{PREFIX}run_valid`.",
                "none",
                Query(valid, "", "instant"),
                none="not judged yet",
                mappings=[mapping("1", "valid", "green"), mapping("0", "INVALID", "red")],
            )
        ),
        small(
            stat(
                "Requests",
                f"Requests of this run that ended, over all attempts. Metric: `{PREFIX}requests_total`.",
                "locale",
                Query(total("requests_total"), "", "instant"),
                decimals=0,
            )
        ),
        small(
            stat(
                "Completed",
                "Attempts that completed, of those that the client did not end itself. Metric: "
                f"`{PREFIX}attempts_total`.",
                "percentunit",
                Query(share(DONE, ATTEMPTS), "", "instant"),
                limits=thresholds((0.95, WARN), (0.99, GOOD), base=BAD),
                decimals=2,
            )
        ),
        small(
            stat(
                "TTFT p95",
                "Time to first token over the whole run, all protocols together; interpolated inside a"
                f" bucket. Metric: `{PREFIX}{TTFT}`.",
                "s",
                Query(run_quantile(0.95, TTFT), "", "instant"),
            )
        ),
        small(
            stat(
                "Longest silence now",
                "Longest time without any byte among the streams that are open now. Metric: "
                f"`{PREFIX}oldest_silence_seconds`.",
                "s",
                Query(f"max({metric('oldest_silence_seconds')})", "", "instant"),
            )
        ),
        small(
            stat(
                "Stalled",
                f"Streams of this run that a hard limit ended. Metric: `{PREFIX}stalls_total`.",
                "locale",
                Query(f"{total('stalls_total', HARD, FATAL)} or {ATTEMPTS} * 0", "", "instant"),
                limits=thresholds((1, BAD)),
                decimals=0,
            )
        ),
        small(
            stat(
                "Errors in streams",
                "Errors that arrived inside HTTP 200 in this run: no status code shows them. Metric: "
                f"`{PREFIX}error_events_total`.",
                "locale",
                Query(f"{total('error_events_total')} or {ATTEMPTS} * 0", "", "instant"),
                limits=thresholds((1, BAD)),
                decimals=0,
            )
        ),
        small(
            stat(
                "TTFT objective met",
                "Share of attempts with a first token within the chosen limit. One that failed before it has "
                f"missed it. Exact: the limit is a bound of the histogram. Metric: `{PREFIX}{TTFT}`.",
                "percentunit",
                Query(share(FAST, ATTEMPTS), "", "instant"),
                limits=thresholds((0.9, WARN), (0.95, GOOD), base=BAD),
                decimals=2,
            )
        ),
    ]


FATAL = 'fatal="true"'


def _load() -> list[Placed]:
    return [
        chart(
            timeseries(
                "Offered and achieved load",
                "Offered: planned starts, dropped ones too (open arrivals only). Started and achieved:"
                " attempts that ended, and those that completed. Where offered and achieved part, something"
                f" is full: look at the load generator first. Metrics: `{PREFIX}arrivals_total`,"
                f" `{PREFIX}attempts_total`.",
                "reqps",
                Query(rate("arrivals_total"), "offered"),
                Query(rate("attempts_total"), "ended"),
                Query(rate("attempts_total", COMPLETED), "completed"),
                dashed=["offered"],
            )
        ),
        chart(
            timeseries(
                "Open streams by phase",
                "'silent': output began and is now overdue beyond the warning limit. Metric: "
                f"`{PREFIX}open_streams`.",
                "short",
                Query(now("open_streams", by=("phase",)), "{{phase}}"),
                stacked=True,
            )
        ),
        chart(
            timeseries(
                "Users and workers",
                f"Metrics: `{PREFIX}users`, `{PREFIX}workers` (none in a run of one process).",
                "short",
                Query(f"max({PREFIX}users)", "users"),
                Query(f"sum by (state) ({PREFIX}workers)", "workers {{state}}"),
                right={"workers .*": "short"},
            )
        ),
    ]


def _latency() -> list[Placed]:
    def by_protocol(q: float, name: str) -> Placed:
        return chart(
            timeseries(
                f"TTFT {name} by protocol",
                "From the moment before the request was written to the first visible output of any kind."
                f" Streams that never got that far are not in it. Metric: `{PREFIX}{TTFT}`.",
                "s",
                Query(quantile(q, TTFT, by=("protocol",)), "{{protocol}}"),
            )
        )

    gap = "inter_token_latency_seconds"
    return [
        *(by_protocol(q, name) for q, name in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"))),
        chart(
            timeseries(
                "On the way to the first token, p95",
                "Headers, first byte of the body (a keepalive counts), first output, first text. The"
                f" distance between two lines is where the time goes. Metrics: `{PREFIX}time_to_…_seconds`.",
                "s",
                Query(quantile(0.95, "time_to_headers_seconds"), "headers"),
                Query(quantile(0.95, "time_to_first_byte_seconds"), "first byte"),
                Query(quantile(0.95, TTFT), "first token"),
                Query(quantile(0.95, "time_to_first_content_seconds"), "first text"),
            )
        ),
        chart(
            timeseries(
                "Gap between tokens",
                f"Pooled over all streams. Metric: `{PREFIX}{gap}`.",
                "s",
                Query(quantile(0.5, gap), "p50"),
                Query(quantile(0.99, gap), "p99"),
            )
        ),
        chart(
            timeseries(
                "Duration of streams",
                "Every stream that sent a byte, however it ended. Metric:"
                f" `{PREFIX}stream_duration_seconds`.",
                "s",
                Query(quantile(0.5, "stream_duration_seconds"), "p50"),
                Query(quantile(0.95, "stream_duration_seconds"), "p95"),
            )
        ),
    ]


def _outcomes() -> list[Placed]:
    return [
        chart(
            timeseries(
                "Outcomes",
                f"How attempts ended. Only 'completed' is a success. Metric: `{PREFIX}attempts_total`.",
                "reqps",
                Query(rate("attempts_total", by=("outcome",)), "{{outcome}}"),
                stacked=True,
            )
        ),
        chart(
            timeseries(
                "Errors in streams by type",
                f"As the gateway named them, inside HTTP 200. Metric: `{PREFIX}error_events_total`.",
                "reqps",
                Query(rate("error_events_total", by=("error_type",)), "{{error_type}}"),
                stacked=True,
            )
        ),
        chart(
            bars(
                "What became of the requests",
                "not_needed: the first attempt did it; recovered: a retry did; exhausted: retries were used"
                " up; not_retryable: no retry could help; none: the client ended it. Whole run. Metric:"
                f" `{PREFIX}requests_total`.",
                "locale",
                Query(total("requests_total", by=("retry_outcome",)), "{{retry_outcome}}", "instant"),
            )
        ),
    ]

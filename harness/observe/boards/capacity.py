"""Capacity planning: how much load until users notice, and how far away is that?"""

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
from harness.observe.boards.queries import (
    COMPLETED,
    JUDGED,
    RANGE,
    now,
    per,
    quantile,
    rate,
    share,
    within,
)
from harness.observe.boards.variables import objectives, standard
from harness.observe.families import PREFIX

TTFT = "time_to_first_token_seconds"
LITTLE = "stream_duration_seconds"

# A search measures whole mixes of protocols and models, so only run and gateway choose among its series.
CHOSEN = 'run=~"$run",gateway=~"$gateway"'


def _searched(name: str, by: str = "") -> str:
    inner = f"last_over_time({PREFIX}{name}{{{CHOSEN}}}[{RANGE}])"
    return f"max by ({by}) ({inner})" if by else f"max({inner})"


def capacity() -> Json:
    """Return the board."""
    return board(
        "harness-capacity",
        "Harness / Capacity planning",
        "How much load until users notice: from a capacity search, or from any run whose load grows.",
        [*standard(), *objectives()],
        [
            Row("", [banner()]),
            Row("", _numbers()),
            Row("Capacity search", _search()),
            Row("Any ramp: load against what users see", _ramp()),
            Row("Cross-check", _little()),
            generator_row(),
        ],
    )


_FAST_PER_S = within("$ttft_limit", TTFT, whole_run=False)


def _numbers() -> list[Placed]:
    knee = _searched("capacity_knee")
    steps, goodput = _searched("capacity_step_load"), _searched("capacity_step_goodput")
    offered = rate("attempts_total")

    def number(
        title: str,
        about: str,
        unit: str,
        query: Query,
        limits: Json | None = None,
        worst: str = "",
        none: str = "no data",
    ) -> Placed:
        return small(stat(title, about, unit, query, limits=limits, worst=worst, none=none))

    return [
        number(
            "Knee",
            "The highest load that held every objective, in the search's unit: requests per second, or"
            f" users. Metric: `{PREFIX}capacity_knee`.",
            "short",
            Query(knee, "", "instant"),
            none="no search",
        ),
        number(
            "Highest step",
            f"The highest load that the search offered. Metric: `{PREFIX}capacity_step_load`.",
            "short",
            Query(steps, "", "instant"),
            none="no search",
        ),
        number(
            "Best goodput",
            "Requests per second that met every objective, best step. Metric:"
            f" `{PREFIX}capacity_step_goodput`.",
            "reqps",
            Query(goodput, "", "instant"),
            none="no search",
        ),
        number(
            "Headroom",
            "1 - load / knee, where the load is that of the last minutes in requests per second. Only for a"
            f" knee in that unit. Negative: beyond it. Metrics: `{PREFIX}capacity_knee`,"
            f" `{PREFIX}attempts_total`.",
            "percentunit",
            Query(f"1 - {per(offered, knee)}"),
            thresholds((0, WARN), (0.2, GOOD), base=BAD),
            none="no search",
        ),
        number(
            "Attempts per second",
            f"Highest in view. Metric: `{PREFIX}attempts_total`.",
            "reqps",
            Query(offered),
            worst="max",
        ),
        number(
            "Open streams",
            f"Highest in view. Metric: `{PREFIX}open_streams`.",
            "short",
            Query(now("open_streams")),
            worst="max",
        ),
        number(
            "Output tokens/s",
            f"Highest in view. Metric: `{PREFIX}tokens_total`.",
            "suffix: tok/s",
            Query(rate("tokens_total", 'kind="output"')),
            worst="max",
        ),
        number(
            "Rejected with 429",
            "Share of the attempts, highest in view: a quota, not saturation. Metric:"
            f" `{PREFIX}attempts_total`.",
            "percentunit",
            Query(share(rate("attempts_total", 'status="429"'), offered)),
            thresholds((0.001, WARN), (0.01, BAD)),
            worst="max",
        ),
    ]


def _search() -> list[Placed]:
    load, goodput = _searched("capacity_step_load", "step"), _searched("capacity_step_goodput", "step")
    return [
        half(
            timeseries(
                "Steps of the search",
                "What each step offered and how much of it met every objective; the dashed line is the knee."
                f" Metrics: `{PREFIX}capacity_step_load`, `{PREFIX}capacity_step_goodput`,"
                f" `{PREFIX}capacity_knee`.",
                "short",
                Query(f"max({PREFIX}capacity_step_load{{{CHOSEN}}})", "highest load"),
                Query(f"max({PREFIX}capacity_step_goodput{{{CHOSEN}}})", "best goodput"),
                Query(f"max({PREFIX}capacity_knee{{{CHOSEN}}})", "knee"),
                dashed=["knee"],
            )
        ),
        half(
            table(
                "Load against goodput",
                "A row per step. Goodput that stops growing with the load is the knee. The share is goodput"
                f" per load. Metrics: `{PREFIX}capacity_step_load`, `{PREFIX}capacity_step_goodput`.",
                {"step": "Step"},
                Column("Load", "short", load),
                Column("Goodput", "reqps", goodput),
                Column("Goodput / load", "percentunit", per(goodput, load)),
                Column(
                    "Of the knee",
                    "percentunit",
                    f"{load} / on () group_left () ({_searched('capacity_knee')} > 0)",
                ),
            )
        ),
    ]


def _ramp() -> list[Placed]:
    judged = rate("attempts_total", JUDGED)
    return [
        chart(
            timeseries(
                "Load and goodput",
                "Goodput: attempts with a first token within the chosen limit. Where it leaves the load, the"
                f" objective breaks. Metrics: `{PREFIX}arrivals_total`, `{PREFIX}attempts_total`,"
                f" `{PREFIX}{TTFT}`, `{PREFIX}users`.",
                "reqps",
                Query(rate("arrivals_total"), "offered"),
                Query(rate("attempts_total"), "ended"),
                Query(_FAST_PER_S, "goodput"),
                Query(f"max({PREFIX}users)", "users"),
                right={"users": "short"},
                dashed=["offered"],
            )
        ),
        chart(
            timeseries(
                "TTFT under that load",
                f"The right axis is the load. Metrics: `{PREFIX}{TTFT}`, `{PREFIX}open_streams`.",
                "s",
                Query(quantile(0.5, TTFT), "p50"),
                Query(quantile(0.95, TTFT), "p95"),
                Query(quantile(0.99, TTFT), "p99"),
                Query(now("open_streams"), "open streams"),
                right={"open streams": "short"},
                dashed=["open streams"],
            )
        ),
        chart(
            timeseries(
                "Failures under that load",
                "Rejections (429) are a quota, 5xx and stalls are saturation. Metric: "
                f"`{PREFIX}attempts_total`.",
                "percentunit",
                Query(share(rate("attempts_total", 'status="429"'), judged), "429"),
                Query(share(rate("attempts_total", 'status=~"5.."'), judged), "5xx"),
                Query(share(rate("attempts_total", 'outcome="stalled"'), judged), "stalled"),
                Query(f"1 - {share(rate('attempts_total', COMPLETED), judged)}", "all failures"),
            )
        ),
        half(
            timeseries(
                "Tokens per second",
                f"Counted when a stream ends. Metric: `{PREFIX}tokens_total`.",
                "suffix: tok/s",
                Query(rate("tokens_total", by=("kind",)), "{{kind}}"),
            )
        ),
        half(
            timeseries(
                "Output tokens per attempt",
                f"Falls when answers are cut. Metrics: `{PREFIX}tokens_total`, `{PREFIX}attempts_total`.",
                "suffix: tok",
                Query(per(rate("tokens_total", 'kind="output"'), judged), "output tokens"),
            )
        ),
    ]


def _little() -> list[Placed]:
    open_streams = now("open_streams")
    # Rate times mean duration: the counts cancel, and what is left is stream seconds per second.
    expected = rate(f"{LITTLE}_sum")
    return [
        half(
            timeseries(
                "Little's law: open streams",
                "In a steady state open streams = rate × mean duration. Two lines that part for longer than"
                " a stream lasts: the load is not steady, or something is not counted. Metrics:"
                f" `{PREFIX}open_streams`, `{PREFIX}{LITTLE}`.",
                "short",
                Query(open_streams, "counted"),
                Query(expected, "rate × duration"),
                dashed=["rate .*"],
            )
        ),
        half(
            timeseries(
                "Little's law: counted per expected",
                f"About 1 in a steady state. Metrics: `{PREFIX}open_streams`, `{PREFIX}{LITTLE}`.",
                "none",
                Query(per(open_streams, expected), "ratio"),
                lines=thresholds((1, WARN), base="text"),
            )
        ),
    ]

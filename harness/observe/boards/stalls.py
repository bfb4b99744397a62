"""Stalls and keepalives: is a silent stream thinking or stuck?"""

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
    bars,
    heatmap,
    stat,
    table,
    thresholds,
    timeseries,
)
from harness.observe.boards.queries import (
    HARD,
    JUDGED,
    RANGE,
    RATE,
    metric,
    most,
    now,
    quantile,
    rate,
    share,
    summed,
    total,
)
from harness.observe.boards.variables import standard
from harness.observe.families import PREFIX

GAP = "inter_token_latency_seconds"
INTERVAL = "keepalive_interval_seconds"
FATAL, RECOVERED = 'fatal="true"', 'fatal="false"'

_ALL = total("attempts_total", JUDGED)


def stalls() -> Json:
    """Return the board."""
    return board(
        "harness-stalls",
        "Harness / Stalls and keepalives",
        "Is a silent stream thinking or stuck? Keepalives keep a dead stream looking alive: no read timeout"
        " ever fires. This board tells output, signs of life and silence apart.",
        standard(),
        [
            Row("", [banner()]),
            Row("", _numbers()),
            Row("Silence", _silence()),
            Row("Tokens and keepalives", _intervals()),
            Row("Stalls", _stalls()),
            Row("Thinking or dead", _waits()),
            generator_row(),
        ],
    )


def _count(title: str, about: str, name: str, *matchers: str, bad: bool = True) -> Placed:
    return small(
        stat(
            title,
            f"{about} Whole run. Metric: `{PREFIX}{name}`.",
            "locale",
            Query(f"{total(name, *matchers)} or {_ALL} * 0", "", "instant"),
            limits=thresholds((1, BAD)) if bad else None,
            decimals=0,
        )
    )


def _numbers() -> list[Placed]:
    return [
        small(
            stat(
                "Oldest silence now",
                "Longest time without any byte among the open streams. Rises by a second each second while a "
                f"stream is dead. Metric: `{PREFIX}oldest_silence_seconds`.",
                "s",
                Query(most(metric("oldest_silence_seconds")), "", "instant"),
            )
        ),
        small(
            stat(
                "Oldest wait now",
                "Longest time without output among the open streams. High while the silence is low:"
                f" keepalives only, thinking or stuck. Metric: `{PREFIX}oldest_progress_gap_seconds`.",
                "s",
                Query(most(metric("oldest_progress_gap_seconds")), "", "instant"),
            )
        ),
        small(
            stat(
                "Silent streams now",
                "Open streams whose output began and is overdue beyond the warning limit. Metric: "
                f"`{PREFIX}open_streams`.",
                "locale",
                Query(now("open_streams", 'phase="silent"'), "", "instant"),
                limits=thresholds((1, WARN)),
                decimals=0,
            )
        ),
        _count("Stalled", "Streams that a hard limit ended.", "stalls_total", HARD, FATAL),
        _count(
            "Recovered",
            "Passed a hard limit, were watched, and came back or ended by themselves (--on-stall watch).",
            "stalls_total",
            HARD,
            RECOVERED,
            bad=False,
        ),
        _count(
            "Keepalive violations",
            "Intervals beyond what the profile calls broken.",
            "keepalive_deviations_total",
            'severity="violation"',
        ),
        small(
            stat(
                "Promised keepalive",
                "The interval that the gateway's profile promises, time scale applied. Metric: "
                f"`{PREFIX}keepalive_promised_seconds`.",
                "s",
                Query(
                    most(f"last_over_time({metric('keepalive_promised_seconds', over=RANGE)})"), "", "instant"
                ),
                none="no promise",
            )
        ),
        small(
            stat(
                "Waiting covered",
                "Of the time that streams waited for output, the share in which keepalives kept coming."
                f" Whole run. Metric: `{PREFIX}wait_seconds_total`.",
                "percentunit",
                Query(
                    share(total("wait_seconds_total", 'kind="thinking"'), total("wait_seconds_total")),
                    "",
                    "instant",
                ),
            )
        ),
    ]


def _silence() -> list[Placed]:
    return [
        half(
            timeseries(
                "Oldest silence and oldest wait for output",
                "A sawtooth is normal. Silence that climbs on is a dead stream; a wait that climbs over a"
                f" flat silence is kept alive without output. Metrics: `{PREFIX}oldest_silence_seconds`,"
                f" `{PREFIX}oldest_progress_gap_seconds`.",
                "s",
                Query(most(metric("oldest_silence_seconds"), "protocol"), "silence {{protocol}}"),
                Query(most(metric("oldest_progress_gap_seconds"), "protocol"), "output {{protocol}}"),
                dashed=["silence .*"],
            )
        ),
        half(
            timeseries(
                "Longest silence per stream",
                "Counted from the stream's first byte; keepalives break a silence. Metric: "
                f"`{PREFIX}longest_silence_seconds`.",
                "s",
                Query(quantile(0.5, "longest_silence_seconds"), "p50"),
                Query(quantile(0.95, "longest_silence_seconds"), "p95"),
                Query(quantile(0.99, "longest_silence_seconds"), "p99"),
            )
        ),
    ]


def _intervals() -> list[Placed]:
    def buckets(name: str) -> str:
        return summed(f"increase({metric(name + '_bucket', over=RATE)})", "le")

    return [
        chart(
            heatmap(
                "Gaps between tokens",
                "How many gaps of which length. A second band far above the first is where streams pause."
                f" Metric: `{PREFIX}{GAP}`.",
                buckets(GAP),
            )
        ),
        chart(
            heatmap(
                "Keepalive intervals",
                "One band at the promised interval is right; a band above it is late, scatter is no promise."
                f" Metric: `{PREFIX}{INTERVAL}`.",
                buckets(INTERVAL),
            )
        ),
        chart(
            timeseries(
                "Keepalive interval against the promise",
                f"Metrics: `{PREFIX}{INTERVAL}`, `{PREFIX}keepalive_promised_seconds`.",
                "s",
                Query(most(metric("keepalive_promised_seconds")), "promised"),
                Query(quantile(0.5, INTERVAL), "p50"),
                Query(quantile(0.99, INTERVAL), "p99"),
                dashed=["promised"],
            )
        ),
        half(
            timeseries(
                "Keepalives",
                f"Comments, and pings (events that carry no output). Metric: `{PREFIX}keepalives_total`.",
                "cps",
                Query(rate("keepalives_total", by=("kind",)), "{{kind}}"),
            )
        ),
        half(
            timeseries(
                "Keepalives beyond the promise",
                "Share of the keepalives that came late, or so late that the profile calls it broken."
                f" Metric: `{PREFIX}keepalive_deviations_total`.",
                "percentunit",
                *(
                    Query(
                        share(
                            rate("keepalive_deviations_total", f'severity="{severity}"'),
                            rate("keepalives_total"),
                        ),
                        severity,
                    )
                    for severity in ("late", "violation")
                ),
            )
        ),
    ]


def _stalls() -> list[Placed]:
    return [
        chart(
            timeseries(
                "Stalls by class",
                f"Hard ones and warnings, as they happen. Metric: `{PREFIX}stalls_total`.",
                "cps",
                Query(rate("stalls_total", by=("stall_class",)), "{{stall_class}}"),
                stacked=True,
            )
        ),
        chart(
            table(
                "Stalls of this run",
                "fatal true: it ended the stream. false: a warning, or a stream that was watched on. Mean is"
                f" how long they lasted. Metrics: `{PREFIX}stalls_total`, `{PREFIX}stall_duration_seconds`.",
                {"stall_class": "Class", "fatal": "Fatal"},
                Column("Count", "locale", total("stalls_total", by=("stall_class", "fatal"))),
                Column(
                    "Mean",
                    "s",
                    f"{total('stall_duration_seconds_sum', by=('stall_class', 'fatal'))} / "
                    f"({total('stall_duration_seconds_count', by=('stall_class', 'fatal'))} > 0)",
                ),
            )
        ),
        chart(
            bars(
                "Stalls that recovered",
                "Hard limits that were passed by streams that then went on (--on-stall watch): a shorter"
                f" limit would have cut them. Whole run. Metric: `{PREFIX}stalls_total`.",
                "locale",
                Query(
                    total("stalls_total", HARD, RECOVERED, by=("stall_class",)), "{{stall_class}}", "instant"
                ),
            )
        ),
    ]


def _waits() -> list[Placed]:
    return [
        half(
            timeseries(
                "Waiting for output: thinking or dead",
                "Seconds of waiting per second, of the streams that ended: 'thinking' while keepalives kept"
                f" coming, 'dead' while nothing came at all. Metric: `{PREFIX}wait_seconds_total`.",
                "short",
                Query(rate("wait_seconds_total", by=("kind",)), "{{kind}}"),
                stacked=True,
            )
        ),
        half(
            timeseries(
                "Share of the waiting that keepalives covered",
                "A gateway that sends keepalives for ever reads 100 % here also when it is stuck: see the"
                f" stalls of the class keepalive_only. Metric: `{PREFIX}wait_seconds_total`.",
                "percentunit",
                Query(
                    share(
                        rate("wait_seconds_total", 'kind="thinking"', by=("protocol",)),
                        rate("wait_seconds_total", by=("protocol",)),
                    ),
                    "{{protocol}}",
                ),
                lines=thresholds((0.9, GOOD), base="text"),
            )
        ),
    ]

"""``docs/metrics.md``: every metric with kind, labels, meaning and buckets, from the one list of them."""

from __future__ import annotations

from harness.observe import buckets
from harness.observe.families import FAMILIES, PREFIX, Family
from harness.observe.labels import STREAM_LABELS
from harness.stream.outcome import OUTCOMES, STALL_CLASSES

# What OpenTelemetry's conventions for generative AI call the same thing, and where the two differ.
OPENTELEMETRY: tuple[tuple[str, str, str], ...] = (
    (
        "time_to_first_token_seconds",
        "gen_ai.client.operation.time_to_first_chunk",
        (
            "theirs ends with the first chunk, also an empty or role-only one; ours with the first visible"
            " output"
        ),
    ),
    (
        "inter_token_latency_seconds",
        "gen_ai.client.operation.time_per_output_chunk",
        "theirs has 14 buckets that double; ours 32, and only events that carry output",
    ),
    ("stream_duration_seconds", "gen_ai.client.operation.duration", "ours only of streams that sent a byte"),
    ("tokens_total", "gen_ai.client.token.usage", "theirs is a histogram per operation, ours a counter"),
    (
        "model (label)",
        "gen_ai.request.model",
        "as asked for; the model that answered is no label",
    ),
    ("gateway (label)", "gen_ai.provider.name", "ours is the profile, 'sim:' before it if it was played"),
    ("error_type (label)", "error.type", "ours for errors inside a stream, bounded"),
)

_INTRO = f"""\
# Metrics

Every metric of the exporter (`--metrics-port`, default 9646 on 127.0.0.1), with the prefix `{PREFIX}`.
HELP and TYPE of all of them are there from the first scrape, samples when there is something to say.

Counters and histograms begin at zero with each run and never go back, so for a whole run the last value
is the exact count: `last_over_time({PREFIX}requests_total{{run="…"}}[1h])`. Over time use `rate`. The
current run and the one before it are kept.

Most carry the *stream labels* {", ".join(f"`{label}`" for label in STREAM_LABELS)}; a gateway that
begins with `sim:` was played by the simulator. Label values that a server or a user chooses are bounded
(error types 50, models 100, statuses 60, rules 200, reasons 50 per run): what comes after that is
`other`.

Verdicts never come from these numbers: gates read the exact records of each attempt. A quantile of a
histogram is interpolated inside a bucket; the bounds are such that common objectives (1 s, 2.5 s, 5 s)
are exact counts.
"""


def metrics_page() -> str:
    """Return the page."""
    parts = [
        _INTRO,
        _values(),
        *(_entry(family) for family in FAMILIES.values()),
        _buckets(),
        _opentelemetry(),
    ]
    return "\n".join(parts)


def _values() -> str:
    return (
        "## Values of labels\n\n"
        f"- `outcome`: {', '.join(OUTCOMES)}\n"
        f"- `stall_class`: {', '.join(STALL_CLASSES)}\n"
        "- `retry_outcome`: not_needed, recovered, exhausted, not_retryable, deadline, none\n"
        "- `phase` of open streams: connecting, waiting, streaming, silent\n\n"
        "## The metrics\n"
    )


def _entry(family: Family) -> str:
    extra = [label for label in family.labels if label not in STREAM_LABELS]
    streams = len(family.labels) - len(extra) == len(STREAM_LABELS)
    own = ", ".join(f"`{label}`" for label in (extra if streams else family.labels))
    labels = f"the stream labels{', ' + own if own else ''}" if streams else own or "none"
    lines = [
        f"### `{PREFIX}{family.name}`\n",
        f"{family.kind.capitalize()}. Labels: {labels}.\n",
        f"{family.help}\n",
    ]
    if family.bounds:
        scaled = " × time scale" if family.scales else ""
        lines.append(f"Buckets: [{_name(family.bounds)}](#buckets){scaled}.\n")
    return "\n".join(lines)


_SETS = {
    "first token": buckets.FIRST_TOKEN,
    "gap": buckets.GAP,
    "silence": buckets.SILENCE,
    "keepalive": buckets.KEEPALIVE,
    "duration": buckets.DURATION,
    "stall": buckets.STALL,
    "lag": buckets.LAG,
    "retry wait": buckets.RETRY_WAIT,
    "attempts": buckets.ATTEMPTS,
}


def _name(bounds: buckets.Bounds) -> str:
    return next(name for name, known in _SETS.items() if known == bounds)


def _buckets() -> str:
    rows = [f"| {name} | {' '.join(f'{bound:g}' for bound in bounds)} |" for name, bounds in _SETS.items()]
    return "\n".join(
        [
            "## Buckets\n",
            (
                "Upper bounds in seconds (`attempts`: a number). A moment at which something is due is never"
                " a bound: keepalives\ndue every 10 s arrive between 10.00 and 10.05 s, so the bounds around"
                " them are 9.5 and 10.5.\n"
            ),
            "| set | bounds |",
            "| --- | --- |",
            *rows,
            "",
        ]
    )


def _opentelemetry() -> str:
    rows = [f"| `{ours}` | `{theirs}` | {difference} |" for ours, theirs, difference in OPENTELEMETRY]
    return "\n".join(
        [
            "## Names in OpenTelemetry\n",
            "| here | OpenTelemetry, generative AI | difference |",
            "| --- | --- | --- |",
            *rows,
            "",
        ]
    )

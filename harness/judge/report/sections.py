"""The sections of one run's report, in the order in which questions come up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from harness.gateways.durations import format_duration
from harness.judge.evidence import Cells
from harness.judge.metrics import METRICS, QUANTILES, TIMES
from harness.judge.quantities import format_share, format_value
from harness.judge.report import charts
from harness.judge.report.markup import Html, join, legend, section, table, tag
from harness.judge.report.picture import Picture
from harness.judge.report.streams import worst
from harness.judge.sample import Estimate, Sample
from harness.judge.verdict import WORDS

_STATS = ("p50", "p90", "p95", "p99", "max")
# What is drawn as a curve; the table has them all.
_DRAWN = (
    ("ttft", "time to first token"),
    ("duration", "duration"),
    ("gap_max", "longest gap between tokens"),
)

_RETRIED = {
    "recovered": "requests that a further attempt recovered",
    "exhausted": "requests that failed although sending them again could help, with no attempt left",
    "not_retryable": "requests that failed in a way that sending them again cannot help",
    "deadline": "requests that failed when the time for attempts was spent",
}
_SEVERITY = {"hard": "ended the stream", "watched": "watched on", "soft": "warning"}


def all_sections(picture: Picture) -> list[Html]:
    """Return the sections that have something to say."""
    made = [
        tested(picture), gates(picture), outcomes(picture), latencies(picture), timeline(picture),
        stalls(picture), keepalives(picture), cuts(picture), retries(picture), generator(picture),
    ]  # fmt: skip
    return [one for one in made if one]


def tested(picture: Picture) -> Html:
    """What was run, and how."""
    run = picture.facts.run
    options = run.get("options") if isinstance(run.get("options"), dict) else {}
    assert isinstance(options, dict)
    models = run.get("models") if isinstance(run.get("models"), dict) else {}
    assert isinstance(models, dict)
    versions = run.get("versions") if isinstance(run.get("versions"), dict) else {}
    assert isinstance(versions, dict)
    started = picture.facts.started_at
    rows = [
        ("gateway", f"{picture.facts.gateway}{' (simulated)' if picture.simulated else ''}"),
        ("address", str(run.get("base_url") or "")),
        ("protocols", ", ".join(picture.evidence.labels("protocol"))),
        (
            "models",
            ", ".join(sorted({str(m) for m in models.values()} or set(picture.evidence.labels("model")))),
        ),
        ("scenarios", ", ".join(name for name in picture.evidence.labels("scenario") if name != "default")),
        ("started", f"{datetime.fromtimestamp(started, UTC):%d %B %Y, %H:%M:%S} UTC" if started else ""),
        ("load", _load(options)),
        ("measured", f"{picture.evidence.records:,} attempts, {picture.evidence.warmup:,} of them warm-up"),
        ("retries", str(options.get("retry") or "")),
        ("time scale", f"{picture.facts.time_scale:g}" if picture.facts.time_scale != 1.0 else ""),
        ("seed", str(run.get("seed", ""))),
        ("tags", ", ".join(f"{key}={value}" for key, value in picture.facts.tags.items())),
        ("versions", ", ".join(f"{key} {value}" for key, value in versions.items())),
    ]
    cells = [(name, value) for name, value in rows if value]
    body = [tag("tr", tag("td", name), tag("td", value, css="left")) for name, value in cells]
    return section("What was tested", tag("table", tag("tbody", *body), css="facts"))


def gates(picture: Picture) -> Html:
    """The verdict, gate by gate."""
    verdict = picture.verdict
    if verdict is None:
        return Html("")
    entries = [entry for entry in verdict.get("gates", []) if isinstance(entry, dict)]
    ranks = {word: place for place, word in enumerate(WORDS)}
    entries.sort(key=lambda entry: ranks.get(entry.get("verdict", ""), 99))
    rows = [
        (
            tag("span", str(entry.get("verdict", "")).replace("_", " "), css=f"badge {entry.get('verdict')}"),
            join([tag("b", str(entry.get("id", ""))), tag("div", str(entry.get("why", "")), css="who")]),
            _measure(entry), str(entry.get("reason", "")), f"{entry.get('op')} {entry.get('limit_text')}",
            f"{entry.get('n', 0):,}",
        )
        for entry in entries
    ]  # fmt: skip
    head = ("verdict", "gate", "measure", "found", "limit", "n")
    about = "Shown as measured, and not counted: the run is invalid." if verdict.get("invalid") else ""
    return section(
        "Gates", tag("p", str(verdict.get("sentence", ""))), table(head, rows, left=4), about=about
    )


def outcomes(picture: Picture) -> Html:
    """How streams ended."""
    by_protocol = {name: _outcomes(cells) for name, cells in picture.protocols.items()}
    if not by_protocol:
        return section("How answers ended", tag("p", "Nothing was measured."))
    total: Counter[str] = Counter()
    for counts in by_protocol.values():
        total.update(counts)
    bars = []
    for name, counts in by_protocol.items():
        done = format_share(counts["completed"] / sum(counts.values()))
        bars += [
            tag("h3", f"{name}: {sum(counts.values()):,} requests, {done} completed"),
            charts.outcome_bar(counts),
        ]
    classes = charts.outcome_classes(total)
    names = [f"{name} ({total[name]:,})" for name, _ in classes]
    parts: list[Html] = [*bars, legend((css, name) for (_, css), name in zip(classes, names, strict=True))]
    if picture.failures:
        rows = [(f.name, f.example, f.request, f"{f.count:,}") for f in picture.failures]
        parts += [tag("h3", "Kinds of failure, each with one example"),
                  table(("kind", "what happened", "request", "attempts"), rows, left=3)]  # fmt: skip
    return section("How answers ended", *parts, about="Requests by their last attempt; warm-up left out.")


def latencies(picture: Picture) -> Html:
    """Distributions and percentiles per protocol."""
    if not picture.protocols:
        return Html("")
    samples = {
        name: {metric: cells.sample(metric, "attempt") for metric in TIMES}
        for name, cells in picture.protocols.items()
    }
    parts = []
    for metric, words in _DRAWN:
        drawn = charts.shares_that_got_there({name: by[metric] for name, by in samples.items()}, words)
        parts += [tag("h3", words[0].upper() + words[1:]), drawn] if drawn else []
    rows = []
    for metric in TIMES:
        shown = [(name, by[metric]) for name, by in samples.items() if len(by[metric])]
        for place, (name, sample) in enumerate(shown):
            rows.append((metric if not place else "", name, *_statistics(sample), f"{len(sample):,}"))
    head = ("measure", "protocol", *_STATS, "streams")
    return section(
        "How long it took", *parts, tag("h3", "Percentiles per stream"), table(head, rows, left=2),
        about="Streams that failed before they had a value count as never; those cut by the run's end as at "
        "least so long. A percentile over successes alone would make a run look fast whose slow half hung.",
    )  # fmt: skip


def timeline(picture: Picture) -> Html:
    """Load, first tokens and failures over time."""
    drawn = charts.over_time(picture)
    return section("Over time", drawn, about="The warm-up is included here.") if drawn else Html("")


def stalls(picture: Picture) -> Html:
    """What hung, and the worst of it."""
    rows = [
        (class_.replace("_", " "), _SEVERITY[level], f"{count:,}")
        for level, counts in picture.stalls.items()
        for class_, count in counts.most_common()
    ]
    if not rows:
        return section("Stalls", tag("p", "No stream was overdue beyond a limit."))
    return section(
        "Stalls", table(("what was missing", "severity", "streams"), rows, left=2),
        tag("h3", f"The {len(picture.worst)} longest waits"), worst(picture.worst),
    )  # fmt: skip


def keepalives(picture: Picture) -> Html:
    """Signs of life against what the gateway promises."""
    promise = picture.facts.run.get("keepalive")
    if not len(picture.intervals):
        if isinstance(promise, dict) and picture.evidence.cells:
            interval = format_duration(float(promise.get("interval_s") or 0.0))
            return section(
                "Keepalives", tag("p", f"Promised every {interval}; no stream lasted for two of them.")
            )
        return Html("")
    rules = []
    if isinstance(promise, dict):
        for key, words, css in (("interval_s", "promised", "promise"), ("late_s", "late", "late"),
                                ("violation_s", "promise broken", "broken")):  # fmt: skip
            if isinstance(promise.get(key), int | float):
                rules.append((float(promise[key]), f"{words}: {format_duration(float(promise[key]))}", css))
    counts = picture.keepalive
    said = (
        f"{counts['comments']:,} comments and {counts['pings']:,} pings; {counts['late']:,} came late, "
        f"{counts['violations']:,} broke the promise."
    )
    return section(
        "Keepalives", tag("p", said),
        charts.histogram(picture.intervals, "longest interval between keepalives of a stream", "s4", rules),
    )  # fmt: skip


def cuts(picture: Picture) -> Html:
    """When connections were cut, and whether a timer did it."""
    n = len(picture.cut_ages)
    if not n:
        return Html("")
    said = []
    for values, what in ((picture.cut_silences, "of silence"), (picture.cut_ages, "of age")):
        found = charts.crowd(values)
        if found is not None:
            at, count = found
            said.append(tag("p", tag("b", f"{count:,} of {n:,} cuts came at {charts.short(at)} {what}."),
                            " That many at one moment point to a timer."))  # fmt: skip
    if not said:
        said = [tag("p", f"{n:,} cuts at no common age or silence: nothing points to a timeout in between.")]
    known = [(place, words, "rule") for place, words in charts.TIMEOUTS]
    drawn = []
    for values, what in ((picture.cut_ages, "age of the stream when it was cut"),
                         (picture.cut_silences, "silence before the cut")):  # fmt: skip
        if len(values):
            reach = max(values)
            rules = [rule for rule in known if rule[0] <= reach * 2]
            drawn += [tag("h3", what[0].upper() + what[1:]), charts.histogram(values, what, "s2", rules)]
    return section(
        "Cuts", *said, *drawn, about="Streams that ended without their end: cut, truncated, no response."
    )


def retries(picture: Picture) -> Html:
    """What was sent again, and what it cost."""
    outcomes = {k: n for k, n in picture.retry_outcomes.items() if k not in ("none", "not_needed")}
    if not picture.retries and not outcomes and not picture.wasted_tokens:
        return Html("")
    rows = [(f"sent again: {reason}", f"{n:,}") for reason, n in picture.retries.most_common()]
    rows += [(_RETRIED.get(name, name), f"{n:,}") for name, n in sorted(outcomes.items())]
    if picture.wasted_tokens:
        rows.append(("output tokens thrown away", f"{picture.wasted_tokens:,}"))
    return section("Retries", table(("what", "count"), rows))


def generator(picture: Picture) -> Html:
    """Whether the load generator kept up: if not, nothing else on the page counts."""
    clockwork = picture.evidence.clockwork
    reasons = [reason.text for reason in picture.judged.invalid]
    said = [tag("p", "The load generator kept up: its numbers can be trusted.")] if not reasons else [
        tag("p", tag("b", "This run is invalid: "), "; ".join(reasons), css="note")
    ]  # fmt: skip
    share = clockwork.events_uncertain / clockwork.events if clockwork.events else 0.0
    clocks = ", ".join(f"{n:,} attempts by the {name} clock" for name, n in picture.clocks.most_common())
    late = f"{format_share(share)} of them read too late to know within 5 ms when they came"
    said.append(tag("p", f"{clockwork.events:,} events, {late}; {clocks}."))
    notes = dict.fromkeys([*picture.notes, *(str(note) for note in picture.facts.summary.get("notes", []))])
    said += [tag("p", note, css="note") for note in notes]
    return section("Health of the load generator", *said, charts.health(picture))


def _load(options: Mapping[str, Any]) -> str:
    parts = []
    if options.get("num_users"):
        parts.append(f"{options['num_users']:,} users")
    if options.get("arrivals") not in (None, "", "closed"):
        parts.append(f"{options['arrivals']} arrivals at {options.get('rate')}")
    if options.get("run_time"):
        parts.append(f"for {format_duration(float(options['run_time']))}")
    return ", ".join(parts)


def _measure(entry: Mapping[str, Any]) -> str:
    stat = entry.get("stat")
    name = str(entry.get("metric", ""))
    name += f" {stat}" if stat not in ("rate", "value") else ""
    where = entry.get("where") or {}
    limited = ", ".join(f"{key} {value}" for key, value in where.items())
    return f"{name}, per {entry.get('view')}{f', {limited}' if limited else ''}"


def _outcomes(cells: Cells) -> Counter[str]:
    total: Counter[str] = Counter()
    for cell in cells:
        total.update(cell.outcomes)
    return total


def _statistics(sample: Sample) -> list[str]:
    found = []
    for stat in _STATS:
        estimate: Estimate = sample.largest() if stat == "max" else sample.quantile(QUANTILES[stat])
        value = format_value(estimate.value, METRICS["ttft"].kind)
        found.append(f"≥ {value}" if estimate.at_least else value)
    return found

"""Series from what was observed, and their text: fast enough that a scrape does not disturb the measurement.

`prometheus_client` needs about 13 µs per series; in the process that reads the streams a scrape of 10,000
series would hold up every read for 130 ms. The text here is the same to the byte (tests compare the two) and
costs a twentieth, because all label text but `le` is written once per histogram.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate

from prometheus_client.utils import floatToGoString

from harness.observe import families as f
from harness.observe.buckets import Histogram
from harness.observe.families import FAMILIES, PREFIX, Family
from harness.observe.labels import Labels
from harness.observe.snapshot import Snapshot
from harness.observe.state import Observed, RunState
from harness.observe.totals import OPEN_PHASES, LabelValues, OpenStreams, Totals

Value = float | Histogram
Series = Iterable[tuple[LabelValues, Value]]

_LINES_PER_PAUSE = 500


def series(observed: Observed) -> Iterator[tuple[Family, Series]]:
    """Yield every family, also those without a sample, with its series."""
    snapshot = Snapshot.from_plain(observed.snapshot)
    gauges = _gauges(observed, snapshot)
    for name, family in FAMILIES.items():
        found: list[tuple[LabelValues, Value]] = []
        for totals in snapshot.runs:
            found += totals.counters.get(name, {}).items()
            found += totals.histograms.get(name, {}).items()
        found += snapshot.histograms.get(name, {}).items()
        found += gauges.get(name, {}).items()
        yield family, found


def _gauges(observed: Observed, snapshot: Snapshot) -> dict[str, dict[LabelValues, float]]:
    found: dict[str, dict[LabelValues, float]] = {family.name: {} for family in FAMILIES.values()}
    for name, values in snapshot.gauges.items():
        found[name].update(values)
    promises = {
        state.run: state.keepalive.interval_s for state in observed.runs if state.keepalive is not None
    }
    for totals in snapshot.runs:
        _add_open(found, totals)
        if totals.run in promises:
            found[f.KEEPALIVE_PROMISED.name].update(dict.fromkeys(totals.started, promises[totals.run]))
    nodes = observed.nodes
    found[f.USERS.name][()] = nodes.users
    found[f.WORKERS.name].update({(state,): n for state, n in nodes.workers.items()})
    found[f.REPORT_AGE.name].update({(worker,): age for worker, age in nodes.report_ages_s.items()})
    for state in observed.runs:
        _add_run(found, state)
    return found


def _add_open(found: dict[str, dict[LabelValues, float]], totals: Totals) -> None:
    # Every set of labels that ever had a stream: a gauge that vanishes with the last one is no zero.
    for labels in totals.started:
        streams = totals.open.get(labels, OpenStreams())
        for phase, n in zip(OPEN_PHASES, streams.phases, strict=True):
            found[f.OPEN_STREAMS.name][*labels, phase] = n
        found[f.OLDEST_SILENCE.name][labels] = streams.oldest_silence_s
        found[f.OLDEST_PROGRESS_GAP.name][labels] = streams.oldest_progress_gap_s


def _add_run(found: dict[str, dict[LabelValues, float]], state: RunState) -> None:
    simulated = "true" if state.simulated else "false"
    found[f.RUN_INFO.name][state.run, state.gateway, state.version, simulated] = 1
    found[f.RUN_START.name][state.run, state.gateway] = state.started_at
    if state.ended_at is not None:
        found[f.RUN_END.name][state.run, state.gateway] = state.ended_at
    everything = Labels(state.run, "all", state.gateway, "all", "all")
    for step, load, goodput in state.capacity_steps:
        found[f.CAPACITY_LOAD.name][*everything, str(step)] = load
        found[f.CAPACITY_GOODPUT.name][*everything, str(step)] = goodput
    if state.capacity_knee is not None:
        step, load = state.capacity_knee
        found[f.CAPACITY_KNEE.name][*everything, str(step)] = load
    if state.valid is not None:
        codes = ["none"] if state.valid else [reason.code for reason in state.reasons] or ["unknown"]
        for code in codes:
            found[f.RUN_VALID.name][state.run, state.gateway, code] = 1 if state.valid else 0


def text(observed: Observed, openmetrics: bool, pause: Callable[[], None] = lambda: None) -> str:
    """Return the exposition: Prometheus text, or OpenMetrics.

    *pause* is called every few hundred lines, so that the caller can let others run.
    """
    lines: list[str] = []
    due = _LINES_PER_PAUSE
    for family, found in series(observed):
        lines += head_lines(family, openmetrics)
        for written in sample_lines(family, found):
            lines += written
            if len(lines) > due:
                due = len(lines) + _LINES_PER_PAUSE
                pause()
    if openmetrics:
        lines.append("# EOF")
    return "\n".join(lines) + "\n"


def head_lines(family: Family, openmetrics: bool) -> tuple[str, str]:
    """Return HELP and TYPE."""
    name, documentation = PREFIX + family.name, family.help.replace("\\", r"\\").replace("\n", r"\n")
    if openmetrics:
        name, documentation = metric_name(family), documentation.replace('"', r"\"")
    return f"# HELP {name} {documentation}", f"# TYPE {name} {family.kind}"


def metric_name(family: Family) -> str:
    """Return the name of *family* as OpenMetrics has it: a counter's is without ``_total``."""
    return PREFIX + (family.name.removesuffix("_total") if family.kind == "counter" else family.name)


def sample_lines(family: Family, found: Series) -> Iterator[list[str]]:
    """Yield the lines of each series."""
    name = PREFIX + family.name
    order = sorted(range(len(family.labels)), key=family.labels.__getitem__)
    before = [i for i in order if family.labels[i] < "le"]  # labels are written in the order of their names
    after = [i for i in order if family.labels[i] > "le"]
    for labels, value in found:
        head = ",".join(f'{family.labels[i]}="{_escape(labels[i])}"' for i in before)
        tail = ",".join(f'{family.labels[i]}="{_escape(labels[i])}"' for i in after)
        inner = ",".join(part for part in (head, tail) if part)
        braced = f"{{{inner}}}" if inner else ""
        if isinstance(value, Histogram):
            opening = f"{name}_bucket{{{head}," if head else f"{name}_bucket{{"
            closing = f",{tail}}} " if tail else "} "
            cumulative = list(accumulate(value.counts))
            written = [
                f'{opening}le="{bound}"{closing}{_number(n)}'
                for bound, n in zip(bounds_text(value.bounds), cumulative, strict=True)
            ]
            written.append(f"{name}_count{braced} {_number(cumulative[-1])}")
            written.append(f"{name}_sum{braced} {_number(value.sum)}")
            yield written
        else:
            yield [f"{name}{braced} {_number(value)}"]


_BOUNDS_TEXT: dict[tuple[float, ...], tuple[str, ...]] = {}


def bounds_text(bounds: tuple[float, ...]) -> tuple[str, ...]:
    """Return the values of `le` for *bounds*, the last being ``+Inf``."""
    known = _BOUNDS_TEXT.get(bounds)
    if known is None:
        known = _BOUNDS_TEXT[bounds] = (*map(floatToGoString, bounds), "+Inf")
    return known


def _number(value: float) -> str:
    if isinstance(value, int) and 0 <= value < 1_000_000:
        return f"{value}.0"  # what the call below returns, sooner
    return str(floatToGoString(value))  # type: ignore[no-untyped-call]


def _escape(value: str) -> str:
    if "\\" in value or "\n" in value or '"' in value:
        return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    return value


def labelled(family: Family, values: LabelValues) -> Mapping[str, str]:
    """Return the label values under their names."""
    return dict(zip(family.labels, values, strict=True))

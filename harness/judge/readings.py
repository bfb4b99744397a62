"""What one stream says about each per-stream metric: a value, at least so much, never, or nothing.

* *waiting* (`ttft first_content headers duration`): a failure that never got there says never; a stream that
  the client ended first says "at least as long as it was open". A failure *after* the moment keeps its
  value.
* *pacing* (`tpot gap_p99 gap_max silence keepalive_interval`): only a stream that flowed has one. A hang
  says never for what was missing when it hung (a stream that hung on keepalives kept its keepalives); a
  stream that the client ended says at least what it had, its last wait included.

A completed stream without a value (one token has no gap, a tool call no text) says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.judge.metrics import REQUEST_TIMES, TIMES
from harness.judge.sample import Sample
from harness.stream.outcome import CLIENT_ENDED
from harness.stream.record import Attempt, RequestSummary

Samples = Mapping[str, Sample]

# Stalls in which bytes, and so keepalives, kept coming: the silence and the intervals are what was measured.
_ALIVE = frozenset({"keepalive_only_pre", "keepalive_only_mid", "over_total"})


def new_samples(metrics: tuple[str, ...] = TIMES) -> dict[str, Sample]:
    """Return an empty sample for each metric."""
    return {name: Sample() for name in metrics}


def add_attempt(samples: Samples, record: Attempt) -> None:
    """Add one stream to the samples of `TIMES`."""
    outcome = record.outcome
    done = outcome == "completed"
    cut_s = record.end_s if outcome in CLIENT_ENDED else None
    for name, value in (
        ("ttft", record.first_token_s),
        ("first_content", record.first_content_s),
        ("headers", record.headers_s),
        ("duration", record.end_s if done else None),
    ):
        if value is not None:
            samples[name].add(value)
        elif not done:
            _missed(samples[name], cut_s)
    if cut_s is not None:
        _add_paces_of_cut(samples, record)
    elif outcome == "stalled":
        _add_paces_of_stalled(samples, record)
    else:
        _add_paces(samples, record)


def add_request(samples: Samples, outcome: str, summary: RequestSummary) -> None:
    """Add one request, as its user saw it, to the samples of `REQUEST_TIMES`."""
    done = outcome == "completed"
    cut_s = summary.end_s if outcome in CLIENT_ENDED else None
    values = (summary.first_token_s, summary.first_content_s, summary.end_s if done else None)
    for name, value in zip(REQUEST_TIMES, values, strict=True):
        if value is not None:
            samples[name].add(value)
        elif not done:
            _missed(samples[name], cut_s)


def meets(record: Attempt, slo: Mapping[str, float]) -> bool:
    """Return whether the stream completed within every limit of *slo* (seconds by metric, inclusive)."""
    if record.outcome != "completed":
        return False
    for name, limit in slo.items():
        value = value_of(record, name)
        # No gap at all is within any limit of gaps; text or headers that never came are not.
        if value is None and name in ("ttft", "first_content", "headers"):
            return False
        if value is not None and value > limit:
            return False
    return True


def value_of(record: Attempt, metric: str) -> float | None:
    """Return the value of *metric* in a completed stream, seconds; None if it has none."""
    match metric:
        case "ttft":
            return record.first_token_s
        case "first_content":
            return record.first_content_s
        case "headers":
            return record.headers_s
        case "duration":
            return record.end_s
        case "tpot":
            return _tpot(record)
        case "gap_p99":
            return record.progress.gap_p99_s
        case "gap_max":
            return record.progress.gap_max_s
        case "silence":
            return record.silence_max_s
    return record.keepalive.gap_max_s


def _missed(sample: Sample, cut_s: float | None) -> None:
    if cut_s is not None:
        sample.cut.append(cut_s)
    else:
        sample.lost += 1


def _add_paces(samples: Samples, record: Attempt) -> None:
    """Add a stream that ended by itself, well or not: what it measured is what it was."""
    progress = record.progress
    for name, value in (
        ("tpot", _tpot(record)),
        ("gap_p99", progress.gap_p99_s),
        ("gap_max", progress.gap_max_s),
        ("silence", record.silence_max_s),
        ("keepalive_interval", record.keepalive.gap_max_s),
    ):
        if value is not None:
            samples[name].add(value)


def _add_paces_of_stalled(samples: Samples, record: Attempt) -> None:
    alive = record.stall is not None and record.stall.class_ in _ALIVE
    flowing = record.stall is not None and record.stall.class_ == "over_total"
    values = (
        ("tpot", _tpot(record)),
        ("gap_p99", record.progress.gap_p99_s),
        ("gap_max", record.progress.gap_max_s),
    )
    for name, value in values:
        if not flowing:
            samples[name].lost += 1
        elif value is not None:
            samples[name].add(value)
    for name, value in (
        ("silence", record.silence_max_s),
        ("keepalive_interval", record.keepalive.gap_max_s),
    ):
        if not alive:
            samples[name].lost += 1
        elif value is not None:
            samples[name].add(value)


def _add_paces_of_cut(samples: Samples, record: Attempt) -> None:
    progress, first_s = record.progress, record.first_token_s
    waiting_s = record.end_s - record.last_token_s if record.last_token_s is not None else 0.0
    # If the next token had come at that moment, this had been the time per token; it came later or never.
    samples["tpot"].cut.append(
        (record.end_s - first_s) / max(1, progress.count) if first_s is not None else 0.0
    )
    samples["gap_p99"].cut.append(progress.gap_p99_s or 0.0)
    samples["gap_max"].cut.append(max(progress.gap_max_s or 0.0, waiting_s))
    samples["silence"].cut.append(max(record.silence_max_s or 0.0, record.silence_end_s or 0.0))
    if record.keepalive.gap_max_s is not None:
        samples["keepalive_interval"].cut.append(record.keepalive.gap_max_s)


def _tpot(record: Attempt) -> float | None:
    count = record.progress.count
    if count < 2 or record.first_token_s is None or record.last_token_s is None:
        return None
    return (record.last_token_s - record.first_token_s) / (count - 1)

"""``verdict.json``, schema ``harness.verdict/1``: everything that was judged, as plain data."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from harness import __version__
from harness.judge.verdict import Result, Verdict

SCHEMA = "harness.verdict/1"


def to_json(verdict: Verdict) -> bytes:
    """Return the verdict as JSON."""
    return msgspec.json.format(msgspec.json.encode(to_plain(verdict)), indent=2) + b"\n"


def to_plain(verdict: Verdict) -> dict[str, Any]:
    """Return the verdict as plain data."""
    counts = verdict.counts
    return {
        "schema": SCHEMA,
        "verdict": verdict.word,
        "exit_code": verdict.exit_code,
        "sentence": verdict.sentence,
        "run": verdict.run,
        "gateway": verdict.gateway,
        "simulated": verdict.simulated,
        "time_scale": verdict.time_scale,
        "started_at": verdict.started_at,
        "version": __version__,
        "gates_file": verdict.gates.source,
        "scenario": verdict.gates.scenario,
        "machine_class": verdict.machine_class,
        "warmup_s": verdict.gates.warmup_s,
        "cooldown_s": verdict.gates.cooldown_s,
        "valid": not verdict.invalid,
        "invalid": [{"code": reason.code, "text": reason.text} for reason in verdict.invalid],
        "stopped_early": verdict.stopped_early,
        "records": {
            "read": counts.records,
            "warmup": counts.warmup,
            "outside": counts.outside,
            "attempts_measured": counts.streams,
            "requests_measured": counts.requests,
        },
        "notes": list(verdict.notes),
        "gates": [gate_to_plain(result) for result in verdict.results],
    }


def gate_to_plain(result: Result) -> dict[str, Any]:
    """Return one gate's result; values in seconds, shares, counts or tokens per second."""
    gate, estimate, against = result.gate, result.estimate, result.against
    return {
        "id": gate.id,
        "verdict": result.word,
        "blocking": result.blocking,
        "reason": result.reason,
        "why": gate.why,
        "metric": gate.metric,
        "stat": gate.stat,
        "unit": {"time": "s", "rate": "share", "count": "requests", "speed": "tokens/s"}[gate.about.kind],
        "view": gate.view,
        "where": dict(gate.where),
        "op": gate.op,
        "limit": gate.limit,
        "limit_text": gate.limit_text,
        "decide": gate.decide,
        "severity": gate.severity,
        "failed": gate.failed,
        "value": finite(estimate.value) if estimate else None,
        "bound": _bound(result),
        "n": estimate.n if estimate else 0,
        "failed_before": estimate.lost if estimate else 0,
        "unfinished_before": estimate.cut if estimate else 0,
        "min_samples": gate.min_samples,
        "confidence": gate.confidence,
        "low": finite(estimate.low) if estimate else None,
        "high": finite(estimate.high) if estimate else None,
        "baseline": None
        if against is None
        else {
            "method": gate.method,
            "runs": against.runs,
            "median": finite(against.median),
            "ratio": finite(against.ratio),
            "low": finite(against.low),
            "high": finite(against.high),
            "p": against.p,
        },
        "line": gate.line,
    }


def _bound(result: Result) -> str | None:
    """Say how the value is meant: exactly, as a lower bound, or as never reached (the value is null then)."""
    if result.estimate is None:
        return None
    if math.isinf(result.estimate.value):
        return "never"
    return "at_least" if result.estimate.at_least else "exact"


def finite(value: float | None) -> float | None:
    """Return *value* as JSON can say it:

    Null for an infinite one; nine digits, for seconds to the nanosecond.
    """
    return None if value is None or math.isinf(value) else float(f"{value:.9g}")

"""Statements about how soon the first word comes. Seconds of a model, which no time scale touches."""

from __future__ import annotations

from harness.judge.check.observation import Case, Observation
from harness.judge.check.verdict import Verdict, fine
from harness.stream.assemble import quantile

_SECOND_S = 1.0


def first_word(case: Case) -> Verdict:
    """The median first word of models that do not reason comes within a second; the others are reported."""
    verdicts = [_within_a_second(case.of((name,))) for name in ("fast", "no-reasoning")]
    verdict = min(verdicts, key=lambda v: ("broken", "kept", "not observed").index(v.status))
    others = [s.record.first_content_s for s in case.of(("healthy",), "chat") if s.record.first_content_s]
    if not others:
        return verdict
    usual = case.profile.endpoints["chat"].model or "the usual model"
    told = f"; {usual}: {quantile(sorted(others), 0.5):.3f} s"
    return Verdict(verdict.status, verdict.reason + told, verdict.evidence)


def fast_model(case: Case) -> Verdict:
    """The fast model's median first word comes within a second."""
    return _within_a_second(case.of(("fast",)))


def without_reasoning(case: Case) -> Verdict:
    """With reasoning switched off none is counted, and the median first word comes within a second."""
    streams = case.of(("no-reasoning",))
    reasoned = [s for s in streams if s.record.tokens.reasoning]
    if reasoned:
        lines = tuple(s.evidence(fine(f"{s.record.tokens.reasoning} reasoning tokens")) for s in reasoned[:5])
        return Verdict("broken", f"{len(reasoned)} of {len(streams)} streams counted reasoning tokens", lines)
    return _within_a_second(streams)


def _within_a_second(streams: list[Observation]) -> Verdict:
    timed = [(s, s.record.first_content_s) for s in streams if s.record.first_content_s is not None]
    if not timed:
        return Verdict("not observed", "no stream of such a model had a first word")
    times = sorted(at_s for _, at_s in timed)
    p50_s, p95_s = quantile(times, 0.5), quantile(times, 0.95)
    slowest = sorted(timed, key=lambda pair: -pair[1])[:3]
    lines = tuple(s.evidence(fine("first word", at_s=at_s)) for s, at_s in slowest)
    reason = f"first word of {len(times)} streams: median {p50_s:.3f} s, p95 {p95_s:.3f} s"
    return Verdict("kept" if p50_s < _SECOND_S else "broken", reason, lines)

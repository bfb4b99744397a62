"""Statements about models that hang: that the gateway notices in time, retries, or says so."""

from __future__ import annotations

from harness.judge.check.observation import Case, Observation
from harness.judge.check.verdict import Seen, Verdict, fine, wrong

_MISSING = "no model hung, and only a simulated upstream can be asked for one that does"
_SLACK_S = 0.03
# Whole answers to the prompt that the stuck model was asked, too.
_SAME_PROMPT = ("healthy", "no-usage", "resume")


def noticed(case: Case) -> Verdict:
    """The gateway acts between the profile's two limits of progress after the last output."""
    limits = case.profile.limits.progress
    low_s, high_s = limits.warn_s or 0.0, limits.fail_s
    if high_s is None:
        return Verdict("not testable here", "the profile has no limit of progress")

    def test(stream: Observation) -> Seen | None:
        last_s = stream.record.last_token_s if stream.record.last_token_s is not None else 0.0
        waited_s = stream.record.end_s - last_s
        told = f"{waited_s:.3f} s after the last output, where it should act after {low_s:g} to {high_s:g} s"
        if stream.record.outcome == "stalled":
            alive = f"{len(stream.comments)} comments kept it alive"
            return wrong(f"nothing happened for {waited_s:.3f} s; {alive}", at_s=last_s)
        if stream.record.outcome in ("completed", "abandoned", "aborted"):
            return None
        return Seen(
            low_s - _SLACK_S <= waited_s <= high_s + _SLACK_S, f"{stream.record.outcome} {told}", at_s=last_s
        )

    return case.each(("stuck-before", "stuck-within"), test, missing=_MISSING)


def retried(case: Case) -> Verdict:
    """The client sees one good stream, no text twice, and comments while it waits."""
    promised = case.profile.keepalive

    def test(stream: Observation) -> Seen | None:
        if stream.record.outcome != "completed":
            return None
        waited_s = stream.record.first_token_s or 0.0
        whole = {s.text for s in case.of(_SAME_PROMPT, stream.protocol) if s.record.outcome == "completed"}
        if whole and stream.text not in whole:
            return wrong(f"not the answer that others got, but {stream.text[:40]!r} … {stream.text[-40:]!r}")
        before = sum(at_s < waited_s for at_s, _ in stream.comments)
        if promised is not None and before < int(waited_s / promised.violation_s):
            return wrong(f"{before} comments in {waited_s:.3f} s of waiting")
        return fine(f"one whole answer after {waited_s:.3f} s and {before} comments")

    return case.each(("stuck-once",), test, missing=_MISSING)


def is_an_error(case: Case) -> Verdict:
    """A model that stays stuck ends in an error, never in silence or a clean end."""

    def test(stream: Observation) -> Seen | None:
        outcome = stream.record.outcome
        if outcome in ("completed", "abandoned", "aborted"):
            return None
        error = stream.record.error
        told = f"{outcome}: {error.message}" if error else outcome
        if outcome == "stalled":
            told = f"no end, only {len(stream.comments)} comments"
        return Seen(outcome in ("error_event", "http_error"), told, at_s=stream.record.end_s)

    return case.each(("stuck-before", "stuck-within"), test, missing=_MISSING)

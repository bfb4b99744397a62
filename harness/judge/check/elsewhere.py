"""Statements that streams alone cannot show: bills, pages that are not public, matters of taste.

Where a bill would decide, the evidence is what to compare it with.
"""

from __future__ import annotations

from harness.judge.check.observation import Case
from harness.judge.check.verdict import Verdict, fine


def documentation(what: str, case: Case) -> Verdict:
    """A statement that promises nothing about the wire."""
    return Verdict("not testable here", what)


def partial_is_billed(case: Case) -> Verdict:
    """What was generated before an interruption is billed."""
    broken = [s for s in case.observations if s.record.outcome in ("error_event", "cut", "truncated")]
    lines = tuple(
        s.evidence(fine(f"{s.record.progress.count} token events before the end: as many output tokens and "
                        "the input once, should be on the bill"))
        for s in broken[:5]
    )  # fmt: skip
    return Verdict("not testable here", "compare with the usage of the account", lines)


def leaving(case: Case) -> Verdict:
    """Leaving stops the generation, and only what was generated until then is counted."""
    lines = tuple(
        s.evidence(fine(f"left after {s.record.progress.count} token events: about as many completion tokens "
                        "should be on the bill, not the whole answer", at_s=s.record.end_s))
        for s in case.of(("leave",))
        if s.record.outcome == "abandoned"
    )  # fmt: skip
    return Verdict("not testable here", "compare with the usage of the account", lines)

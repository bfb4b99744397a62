"""Whether a gateway keeps what its documents promise: statements, what has to be seen, and the judges.

Everything here reads what was recorded of streams; it makes no request. `situations` says what has to be
asked, `catalogue` which statement is judged by what, `report` how the findings are shown.
"""

from harness.judge.check.catalogue import CHECKS, Check, Promise, UnknownPromiseError, judge, promises_of
from harness.judge.check.observation import Case, Observation
from harness.judge.check.situations import SITUATIONS, Situation, Step, steps_for
from harness.judge.check.verdict import Finding, Verdict

__all__ = [
    "CHECKS",
    "SITUATIONS",
    "Case",
    "Check",
    "Finding",
    "Observation",
    "Promise",
    "Situation",
    "Step",
    "UnknownPromiseError",
    "Verdict",
    "judge",
    "promises_of",
    "steps_for",
]

"""Whether a finished run may be judged at all: what its summary says, and what its records show.

An invalid run has neither passed nor failed. Two of its causes depend on the tightest limit among the gates
and can be counted again from the records: arrival times that are uncertain, and requests that began late.
"""

from __future__ import annotations

from harness.gateways.durations import format_duration
from harness.judge.evidence import Evidence
from harness.judge.facts import RunFacts
from harness.judge.gates import Gates
from harness.observe.aggregate import MIN_THRESHOLD_S
from harness.observe.state import Reason
from harness.observe.validity import TOLERATED

# The share of the tightest latency limit by which a time may be off: a tenth of what would be worth arguing
# about.
_OF_LIMIT = 0.05
_RECOUNTED = frozenset({"uncertain_events", "late_arrivals"})


def threshold_s(gates: Gates) -> float:
    """Return by how many seconds a time may be off before it counts: 5 ms, or 5 % of the tightest limit."""
    return max(MIN_THRESHOLD_S, _OF_LIMIT * (gates.tightest_latency_s or 0.0))


def why_invalid(facts: RunFacts, evidence: Evidence, beyond_s: float, torn: bool = False) -> list[Reason]:
    """Return every reason why the run must not be judged; none if it may.

    *beyond_s* is the threshold with which *evidence* was collected; *torn* says that the last line was cut
    off.
    """
    reasons = []
    validity = facts.summary.get("validity", {})
    told_s = validity.get("threshold_s", MIN_THRESHOLD_S)
    # What was counted as it happened, with this very threshold, is exact; records give an upper limit only.
    recount = not facts.summary or abs(beyond_s - told_s) > 1e-9
    if validity.get("valid") is False:
        told = zip(validity.get("codes", []), validity.get("reasons", []), strict=False)
        reasons += [Reason(code, text) for code, text in told if not (recount and code in _RECOUNTED)]
    if recount and not (validity.get("valid") is True and beyond_s > told_s):
        reasons += _recounted(evidence, beyond_s)
    reasons += _records(facts, evidence, torn)
    return reasons


def _recounted(evidence: Evidence, beyond_s: float) -> list[Reason]:
    clockwork, limit = evidence.clockwork, format_duration(beyond_s)
    reasons = []
    if clockwork.events_uncertain > TOLERATED * clockwork.events:
        share = 100 * clockwork.events_uncertain / clockwork.events
        text = (
            f"{share:.1f} % of {clockwork.events:,} events were read so late that their arrival is uncertain "
            f"by more than {limit} (worst {format_duration(clockwork.uncertain_max_s)})"
        )
        reasons.append(Reason("uncertain_events", text))
    if clockwork.started_late > TOLERATED * clockwork.started:
        share = 100 * clockwork.started_late / clockwork.started
        text = f"{share:.1f} % of {clockwork.started:,} requests began more than {limit} later than planned"
        reasons.append(Reason("late_arrivals", text))
    return reasons


def _records(facts: RunFacts, evidence: Evidence, torn: bool) -> list[Reason]:
    reasons = []
    if len(evidence.runs) > 1:
        names = ", ".join(f"{name} ({count:,})" for name, count in evidence.runs.most_common(3))
        reasons.append(
            Reason("mixed_runs", f"attempts.jsonl holds records of {len(evidence.runs)} runs: {names}")
        )
    if evidence.repeated:
        text = f"attempts.jsonl holds {evidence.repeated:,} records for the second time"
        reasons.append(Reason("repeated_records", text))
    counted = facts.summary.get("attempts")
    if isinstance(counted, int) and counted != evidence.records + torn:
        text = f"summary.json counts {counted:,} attempts, attempts.jsonl holds {evidence.records:,}"
        reasons.append(Reason("lost_records", text))
    return reasons

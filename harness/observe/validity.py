"""Whether a run's numbers can be trusted: a pure function from counts to reasons.

An invalid run has neither passed nor failed: it was the load generator that was late, or something was lost.
All counts are exact ("p99 beyond T" is "more than 1 % beyond T"), none comes from a bucket.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.gateways.durations import format_duration
from harness.observe.aggregate import MIN_THRESHOLD_S
from harness.observe.state import Reason
from harness.observe.totals import Conservation, Health

# The share of events, waits, arrivals or drops that a run may have off: what "p99" means.
TOLERATED = 0.01


@dataclass(frozen=True, slots=True)
class Validity:
    """The verdict; `valid` is None if there was nothing to judge."""

    valid: bool | None
    reasons: tuple[Reason, ...]


def judge(
    health: Health,
    conservation: Conservation,
    *,
    lost_records: int = 0,
    dead_workers: Sequence[str] = (),
    threshold_s: float = MIN_THRESHOLD_S,
) -> Validity:
    """Return whether a run with these counts is valid, and every reason why not."""
    limit = format_duration(threshold_s)
    reasons: list[Reason] = []

    def say(code: str, *sentence: str) -> None:
        reasons.append(Reason(code, " ".join(sentence)))

    if _too_many(health.events_uncertain, health.events):
        say(
            "uncertain_events",
            f"{_share(health.events_uncertain, health.events)} of {health.events:,} events were read so late",
            f"that their arrival is uncertain by more than {limit}",
            f"(worst {format_duration(health.uncertain_max_s)})",
        )
    user_clock = _too_many(health.attempts_user_clock, health.attempts)
    if user_clock and _too_many(health.hub_waits_late, health.hub_waits):
        say(
            "hub_lag",
            f"without the kernel's time stamps, this process was late by more than {limit} in",
            f"{_share(health.hub_waits_late, health.hub_waits)} of {health.hub_waits:,} checks",
        )
    started = health.arrivals - health.arrivals_dropped
    if _too_many(health.arrivals_late, started):
        say(
            "late_arrivals",
            f"{_share(health.arrivals_late, started)} of {started:,} requests began more than {limit} later",
            "than planned",
        )
    if _too_many(health.arrivals_dropped, health.arrivals):
        say(
            "dropped_arrivals",
            f"{_share(health.arrivals_dropped, health.arrivals)} of {health.arrivals:,} planned starts were",
            "dropped because no user was free",
        )
    if lost_records:
        say("lost_records", f"{lost_records:,} records could not be written")
    if dead_workers:
        say("dead_workers", f"{len(dead_workers)} workers died or went missing:", ", ".join(dead_workers))
    if broken := conservation.check():
        say("conservation", broken)
    if not reasons and not conservation.started:
        return Validity(None, (Reason("nothing", "nothing was measured: no attempt started"),))
    return Validity(not reasons, tuple(reasons))


def _too_many(part: int, whole: int) -> bool:
    return part > TOLERATED * whole


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %"

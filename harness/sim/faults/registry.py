"""The table of faults and the decorator that enters one.

A fault is a generator over a `Script`: it tells the answer, spoiling what it is about.

    @fault("truncate", "half of the answer, then a clean end", outcome="truncated")
    def truncate(script: Script) -> Plan:
        yield from script.opening()
        yield from script.tokens(script.half)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.sim.plan import Plan
from harness.sim.script import Script

Outcome = str | Callable[[Script], str]


@dataclass(frozen=True, slots=True)
class Fault:
    """Something the simulated gateway can do."""

    name: str
    about: str
    """One line for people."""
    plan: Callable[[Script], Plan]
    outcome: Outcome
    """What a right client with the profile's limits records."""
    before_stream: bool
    """It acts before there is any stream: it takes no slot, and is played without `stream` too."""

    sequence: tuple[str, ...] = ()
    """If given, a client's attempts get these faults, one after the other; the plan is the last one's."""

    def outcome_for(self, script: Script) -> str:
        """Return the outcome that this fault has for the request of *script*."""
        return self.outcome if isinstance(self.outcome, str) else self.outcome(script)


FAULTS: dict[str, Fault] = {}


def fault(
    name: str, about: str, outcome: Outcome = "completed", before_stream: bool = False
) -> Callable[[Callable[[Script], Plan]], Callable[[Script], Plan]]:
    """Enter the decorated plan into the table under *name*."""

    def enter(plan: Callable[[Script], Plan]) -> Callable[[Script], Plan]:
        if name in FAULTS:
            raise ValueError(f"two faults are called {name}")
        FAULTS[name] = Fault(name, about, plan, outcome, before_stream)
        return plan

    return enter


def sequence(name: str, about: str, names: tuple[str, ...]) -> None:
    """Enter a name for the sequence *names*, whose faults may be entered later."""

    def plan(script: Script) -> Plan:
        return FAULTS[names[-1]].plan(script)

    def outcome(script: Script) -> str:
        return FAULTS[names[-1]].outcome_for(script)

    FAULTS[name] = Fault(name, about, plan, outcome, before_stream=False, sequence=names)

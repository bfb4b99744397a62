"""Judges a finished run:

Records and facts in, verdict out. The one entry for the command and for Locust's end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.judge.baseline import reference
from harness.judge.evidence import Evidence, Window, collect
from harness.judge.facts import RunFacts, read_facts
from harness.judge.gatefile import read_gates
from harness.judge.gates import Gate, Gates
from harness.judge.gating import judge_gate
from harness.judge.machine import machine_class as this_machine
from harness.judge.numbers import RunNumbers, numbers_of
from harness.judge.relative import Reference
from harness.judge.trust import threshold_s, why_invalid
from harness.judge.verdict import Counts, Result, Verdict, failed
from harness.observe.results import ATTEMPTS, read_records
from harness.observe.state import Reason


@dataclass(frozen=True, slots=True)
class Judged:
    """A run that was read:

    Its evidence under a gate file, why it is invalid, what has to be said about it.
    """

    facts: RunFacts
    evidence: Evidence
    invalid: tuple[Reason, ...]
    notes: tuple[str, ...]

    def numbers(self, gates: Gates | None = None) -> RunNumbers:
        """Return the run as its numbers."""
        facts = self.facts
        return RunNumbers(
            run=facts.name,
            started_at=facts.started_at,
            gateway=facts.gateway,
            simulated=facts.simulated or self.evidence.simulated,
            time_scale=facts.time_scale,
            version=str(facts.run.get("versions", {}).get("harness", "")),
            tags=facts.tags,
            numbers=numbers_of(self.evidence, gates),
        )


def judge_run(
    folder: Path,
    gates: Gates | Path | str,
    baseline_file: Path | str | None = None,
    *,
    repeats: Sequence[Path] = (),
    machine_class: str | None = None,
    stopped: tuple[str, str] | None = None,
) -> Verdict:
    """Return the verdict on the finished run in *folder*.

    *baseline_file* takes the place of the files that gates name. *repeats* are further runs of the same
    build, for gates with `method = "mann_whitney"`. *machine_class* defaults to this machine's. *stopped*
    says that a gate's abort ended the run early: its id and why; the gate has then failed. Raises
    `GateFileError` (exit 23), `BaselineError`, and `ResultsError` if there is nothing to judge or it cannot
    be read.
    """
    gates = gates if isinstance(gates, Gates) else read_gates(gates)
    judged = read_run(folder, gates)
    evidence, facts = judged.evidence, judged.facts
    machine = machine_class or this_machine()
    references = _References(gates, baseline_file, machine, judged, repeats)
    results = []
    for gate in gates.gates:
        result = judge_gate(gate, evidence, references.of(gate))
        if stopped is not None and stopped[0] == gate.id and result.word != "fail":
            result = failed(gate, f"ended the run early: {stopped[1]}", result.estimate)
        results.append(_unless_killed(result, facts))
    return Verdict(
        folder=folder,
        run=facts.name,
        gateway=facts.gateway if facts.gateway != "?" else ", ".join(evidence.labels("gateway")) or "?",
        simulated=facts.simulated or evidence.simulated,
        time_scale=facts.time_scale,
        started_at=facts.started_at,
        gates=gates,
        results=tuple(results),
        invalid=judged.invalid,
        counts=_counts(evidence),
        machine_class=machine,
        notes=(*judged.notes, *references.notes),
        stopped_early=stopped[1] if stopped else None,
    )


def read_run(folder: Path, gates: Gates | None = None) -> Judged:
    """Read the run in *folder*, cut and counted as *gates* say. Raises `ResultsError`."""
    facts = read_facts(folder)
    notes: list[str] = []
    beyond_s = threshold_s(gates) if gates else threshold_s(Gates("", ()))
    window = _window(folder, facts, gates) if gates and (gates.warmup_s or gates.cooldown_s) else None
    wanted = (
        any(gate.view == "request" and gate.about.kind == "time" for gate in gates.gates) if gates else False
    )
    evidence = Evidence(gates.slo if gates else None, window, beyond_s, request_times=wanted)
    collect(read_records(folder / ATTEMPTS, notes), evidence)
    torn = bool(notes)
    if facts.killed:
        notes.append(
            "no summary.json: the run was killed before its end; streams that were open then are in no "
            "record, so it can fail but not pass"
        )
    elif not facts.summary:
        notes.append("no summary.json: whether records were lost or workers died is not known")
    if evidence.outside:
        notes.append(f"{evidence.outside:,} attempts in the gate file's warm-up or cool-down were left out")
    return Judged(facts, evidence, tuple(why_invalid(facts, evidence, beyond_s, torn)), tuple(notes))


def _window(folder: Path, facts: RunFacts, gates: Gates) -> Window:
    """Return the measured window: the load goes from the run's start to the last planned request."""
    began = facts.started_at
    if began is not None and not gates.cooldown_s:  # no need to read everything twice
        return Window(began + gates.warmup_s)
    first, last = float("inf"), float("-inf")
    for record in read_records(folder / ATTEMPTS):
        first, last = min(first, record.scheduled_at), max(last, record.scheduled_at)
    # The last planned request itself is measured if there is no cool-down.
    ends = last - gates.cooldown_s if gates.cooldown_s else float("inf")
    return Window((first if began is None else began) + gates.warmup_s, ends)


class _References:
    """What the relative gates compare with; the run's numbers are made only if there is such a gate."""

    def __init__(
        self, gates: Gates, given: Path | str | None, machine: str, judged: Judged, repeats: Sequence[Path]
    ) -> None:
        self._gates, self._given, self._machine = gates, given, machine
        self.notes: list[str] = []
        relative = any(gate.baseline is not None for gate in gates.gates)
        self._run = judged.numbers(gates) if relative else None
        self._repeats = [read_run(folder, gates) for folder in repeats] if relative else []
        for other in self._repeats:
            if other.invalid:
                why = "; ".join(reason.text for reason in other.invalid)
                self.notes.append(f"run {other.facts.name} is invalid and was left out: {why}")
        self._numbers = [other.numbers(gates) for other in self._repeats if not other.invalid]

    def of(self, gate: Gate) -> Reference | None:
        if gate.baseline is None or self._run is None:
            return None
        path = self._path(gate.baseline)
        if path is None:
            found = Reference(missing="no baseline was given: name one with --baseline FILE")
        else:
            found = reference(gate, path, self._gates.scenario, self._machine, self._run, self._numbers)
        if found.missing:
            self.notes.append(f"gate {gate.id!r} was SKIPPED: {found.missing}")
        return found

    def _path(self, named: str) -> Path | None:
        if self._given is not None:
            return Path(self._given)
        if named == "given":
            return None
        # As the gate file says it: beside the gate file, so that a checkout can stand anywhere.
        return Path(self._gates.source).parent / named


def _unless_killed(result: Result, facts: RunFacts) -> Result:
    if not facts.killed or result.word != "pass":
        return result
    reason = f"{result.reason}; but the run was killed, and what was open then is unknown"
    return replace(result, word="inconclusive", reason=reason, blocking=result.gate.severity == "fail")


def _counts(evidence: Evidence) -> Counts:
    cells = evidence.cells.values()
    return Counts(
        records=evidence.records,
        warmup=evidence.warmup,
        outside=evidence.outside,
        streams=sum(cell.streams for cell in cells),
        requests=sum(sum(cell.outcomes.values()) for cell in cells),
    )

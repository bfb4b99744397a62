"""A regression counts only if a second run shows it too: chance rarely strikes the same gate twice."""

from __future__ import annotations

from dataclasses import replace

from harness.judge.verdict import Result, Verdict


def confirm(first: Verdict, second: Verdict) -> Verdict:
    """Return the verdict of *first* in the light of *second*, a rerun of the same build under the same gates.

    A relative gate that failed in the first run and not in the second is a warning that says so. A rerun
    that is invalid proves nothing: the first verdict stands, with a note.
    """
    if second.invalid:
        note = f"the rerun {second.run} is invalid and confirms nothing: {second.invalid[0].text}"
        return replace(first, notes=(*first.notes, note))
    again = {result.gate.id: result for result in second.results}
    results = tuple(_confirmed(result, again[result.gate.id], second.run) for result in first.results)
    return replace(first, results=results, notes=(*first.notes, f"run once more to confirm: {second.run}"))


def _confirmed(result: Result, again: Result, run: str) -> Result:
    if result.word != "fail" or result.gate.baseline is None:
        return result
    if again.word == "fail":
        return replace(result, reason=f"{result.reason}; confirmed by run {run}: {again.value_text}")
    reason = f"{result.reason}; NOT confirmed by run {run}: {again.word}, {again.value_text}"
    return replace(result, word="warn", blocking=False, reason=reason)

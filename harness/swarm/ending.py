"""The end of a run: validity, summary, and the table on the console."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from harness.observe.results import ATTEMPTS, SUMMARY, ResultsError, read_records
from harness.observe.snapshot import Snapshot
from harness.observe.state import RunState
from harness.observe.summary import build_summary
from harness.observe.table import print_summary
from harness.observe.validity import judge
from harness.swarm.keeping import Keeper


def finish_run(
    keeper: Keeper,
    state: RunState,
    snapshot: Mapping[str, Any],
    dead_workers: Sequence[str] = (),
    *,
    tolerate: bool = False,
) -> dict[str, Any]:
    """Close the files, judge the run's validity, write `summary.json`, and return the summary.

    With *tolerate* the loss of *dead_workers* is noted, and does not make the run invalid.
    """
    keeper.close()
    totals = Snapshot.from_plain(snapshot).run(state.run)
    validity = judge(
        totals.health,
        totals.conservation(),
        lost_records=keeper.lost,
        dead_workers=() if tolerate else dead_workers,
        threshold_s=state.threshold_s,
    )
    state.valid, state.reasons = validity.valid, tuple(validity.reasons)
    notes: list[str] = []
    if keeper.attempts.error is not None:
        notes.append(f"{keeper.lost} records could not be written: {keeper.attempts.error}")
    if tolerate and dead_workers:
        notes.append(f"lost workers, tolerated: {', '.join(dead_workers)}")
    summary = build_summary(
        read_records(keeper.folder.path / ATTEMPTS, notes),
        state,
        totals,
        lost_records=keeper.lost,
        notes=notes,
    )
    try:
        keeper.folder.write_json(SUMMARY, summary)
    except ResultsError as error:
        summary["notes"].append(str(error))
    return summary


def show_run(keeper: Keeper, summary: Mapping[str, Any], file: TextIO) -> None:
    """Print the table of a finished run."""
    folder = keeper.folder.path
    print_summary(summary, [f"{folder}/  (harness show {folder})"], file)

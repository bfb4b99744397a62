"""The end of a run: validity, summary, and the table on the console."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TextIO

from harness.observe.results import ATTEMPTS, SUMMARY, ResultsError, read_records
from harness.observe.snapshot import Snapshot
from harness.observe.state import RunState
from harness.observe.summary import build_summary
from harness.observe.table import print_summary
from harness.observe.totals import Totals
from harness.observe.validity import Validity, judge
from harness.swarm.keeping import Keeper


@dataclass(frozen=True, slots=True)
class Losses:
    """What a run lost with its workers: who and when, as words, and how many streams were open in them."""

    workers: tuple[str, ...] = ()
    streams: int = 0


def finish_run(
    keeper: Keeper,
    state: RunState,
    snapshot: Mapping[str, Any],
    losses: Losses = Losses(),
    *,
    tolerate: bool = False,
) -> dict[str, Any]:
    """Close the files, judge the run's validity, write `summary.json`, and return the summary.

    With *tolerate* a loss of workers is noted, and does not make the run invalid.
    """
    keeper.close()
    totals = Snapshot.from_plain(snapshot).run(state.run)
    validity = validity_of(totals, losses, state.threshold_s, lost_records=keeper.lost, tolerate=tolerate)
    state.valid, state.reasons = validity.valid, tuple(validity.reasons)
    notes: list[str] = []
    if keeper.attempts.error is not None:
        notes.append(f"{keeper.lost} records could not be written: {keeper.attempts.error}")
    if tolerate and losses.workers:
        notes.append(f"lost workers, tolerated: {', '.join(losses.workers)}")
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


def validity_of(
    totals: Totals, losses: Losses, threshold_s: float, *, lost_records: int = 0, tolerate: bool = False
) -> Validity:
    """Return whether a run with these totals is valid, at its end or as it stands.

    Streams that went with a worker are accounted for: what they do to the run is the worker's loss.
    """
    numbers = totals.conservation()
    return judge(
        totals.health,
        numbers._replace(started=numbers.started - losses.streams),
        lost_records=lost_records,
        dead_workers=() if tolerate else losses.workers,
        threshold_s=threshold_s,
    )


def show_run(keeper: Keeper, summary: Mapping[str, Any], file: TextIO) -> None:
    """Print the table of a finished run."""
    folder = keeper.folder.path
    print_summary(summary, [f"{folder}/  (harness show {folder})"], file)

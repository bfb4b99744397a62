"""``metrics.jsonl``: what the exporter would have shown, every few seconds of a run, kept for later.

A Prometheus that was not there can be given it afterwards (`openmetrics`). The records of the attempts cannot
replace it: they keep no single gap, and nothing of the load generator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from harness.observe.results import LineFile, ResultsError
from harness.observe.snapshot import Snapshot
from harness.observe.state import Nodes, Observed, RunState, Source

METRICS = "metrics.jsonl"
INTERVAL_S = 5.0  # as the scrape interval that the boards are made for


class Moment(msgspec.Struct, frozen=True):
    """What was observed of one run at one moment (Unix seconds)."""

    at: float
    snapshot: dict[str, Any]
    runs: list[RunState]
    nodes: Nodes

    def observed(self) -> Observed:
        """Return it as readers take it."""
        return Observed(self.snapshot, self.runs, self.nodes)


class History:
    """Writes the moments of the run *run*; what cannot be written is lost and disturbs nothing.

    *source* is asked for the numbers, *clock* for the time in Unix seconds.
    """

    def __init__(self, path: Path, run: str, source: Source, clock: Callable[[], float]) -> None:
        self._run = run
        self._source = source
        self._clock = clock
        self._due = 0.0
        self._file: LineFile | None = None
        try:
            self._file = LineFile(path)
        except ResultsError:
            pass  # the records are what counts, and whoever writes them has said so

    def tick(self) -> None:
        """Write a moment if one is due."""
        now = self._clock()
        if now >= self._due:
            self._due = now + INTERVAL_S
            self._write(now)

    def close(self) -> None:
        """Write the last moment. Closing twice is harmless."""
        if self._file is not None:
            self._write(self._clock())
            self._file.close()
            self._file = None

    def _write(self, now: float) -> None:
        if self._file is None:
            return
        seen = self._source()
        totals = Snapshot.from_plain(seen.snapshot)
        totals.runs = [run for run in totals.runs if run.run == self._run]
        states = [state for state in seen.runs if state.run == self._run]
        moment = Moment(now, totals.to_plain(), states, seen.nodes)
        self._file.append(msgspec.json.encode(moment))
        self._file.flush()


def read_history(path: Path) -> Iterator[Moment]:
    """Yield the moments in the file *path*; a last line that a killed run left cut off is left out.

    Raises `ResultsError` if the file cannot be read or is not one.
    """
    decoder = msgspec.json.Decoder(Moment)
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    yield decoder.decode(line)
                except msgspec.DecodeError as error:
                    if line.endswith(b"\n"):
                        raise ResultsError(f"{path}, line {number}: not a moment: {error}") from None
    except OSError as error:
        raise ResultsError(f"cannot read {path} ({error.strerror or error})") from None

"""``timelines.jsonl``: the streams worth explaining, as times and kinds of what arrived, without any text.

Failed and soft-stalled streams are written as they end, up to a bound. The slowest of the healthy ones are
known only at the end, so the candidates wait in two small heaps.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from harness.observe.results import LineFile
from harness.stream.outcome import is_failure
from harness.stream.record import Attempt

MOST_WRITTEN = 1_000
SLOWEST = 20

Timeline = Callable[[], Mapping[str, Any]]


class TimelineLog(LineFile):
    """The writer. `skipped` counts failed and soft-stalled streams beyond the bound."""

    def __init__(self, path: Path, bound: int = MOST_WRITTEN, slowest: int = SLOWEST) -> None:
        super().__init__(path)
        self.skipped = 0
        self._room = bound
        self._slowest = slowest
        self._tie = count()  # two equal times must not be told apart by comparing timelines
        self._late: dict[str, list[tuple[float, int, dict[str, Any]]]] = {
            "slow_first_token": [],
            "slow_gap": [],
        }

    def add(self, record: Attempt, timeline: Timeline) -> None:
        """Write, keep as a candidate, or leave an ended stream; *timeline* is called only if needed."""
        failed = is_failure(record.outcome)
        if failed or record.stall is not None or record.soft_stalls:
            if self._room:
                self._room -= 1
                self.append(_encode(_line(record, timeline(), "failed" if failed else "stalled")))
            else:
                self.skipped += 1
            return
        made: Mapping[str, Any] | None = None
        for why, value in (
            ("slow_first_token", record.first_token_s),
            ("slow_gap", record.progress.gap_max_s),
        ):
            heap = self._late[why]
            if value is None or not self._slowest or (len(heap) >= self._slowest and value <= heap[0][0]):
                continue
            made = timeline() if made is None else made
            heapq.heappush(heap, (value, next(self._tie), _line(record, made, why)))
            if len(heap) > self._slowest:
                heapq.heappop(heap)

    def close(self) -> None:
        """Write the slowest streams, slowest first and each once, and close the file."""
        written: set[tuple[str, int]] = set()
        for heap in self._late.values():
            for _, _, line in sorted(heap, key=lambda item: -item[0]):
                key = (line["request"], line["attempt"])
                if key not in written:
                    written.add(key)
                    self.append(_encode(line))
            heap.clear()
        super().close()


def _line(record: Attempt, timeline: Mapping[str, Any], why: str) -> dict[str, Any]:
    return {
        "request": record.request,
        "attempt": record.attempt,
        "protocol": record.protocol,
        "outcome": record.outcome,
        "why": why,
        "t": [round(t, 6) for t in timeline["t"]],
        "kind": list(timeline["kind"]),
        "dropped": timeline["dropped"],
    }


_encode = msgspec.json.Encoder().encode

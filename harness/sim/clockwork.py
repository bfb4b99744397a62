"""One heap for everything that is due, whatever the number of streams.

A coroutine or a loop timer per stream costs more than the token it waits for. Here an entry is an
action that says when it wants to be called again; the owner arms one timer for the earliest. The
clock comes in from outside, so tests run hours in microseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush, heapreplace

Clock = Callable[[], float]
Action = Callable[[float], "float | None"]
"""Called with the time (s); returns the next time it is due, or None when it is finished."""


class Clockwork:
    """Runs actions when they are due.

    *clock* gives monotonic seconds; *wake* is told the time when an entry becomes the earliest.
    """

    __slots__ = ("_floor", "_heap", "_order", "_wake", "clock")

    def __init__(self, clock: Clock, wake: Callable[[float], None] | None = None) -> None:
        self.clock = clock
        self._wake = wake
        self._heap: list[tuple[float, int, Action]] = []
        self._order = 0
        self._floor = float("-inf")

    def at(self, due: float, action: Action) -> None:
        """Call *action* at *due*, or as soon after as the owner runs the clockwork."""
        # The running number settles ties: actions cannot be compared, and first come is first served.
        self._order += 1
        # Nothing may slip in before the entry that is running: it is still on top of the heap (see `run`).
        heappush(self._heap, (max(due, self._floor), self._order, action))
        if self._wake is not None and self._heap[0][1] == self._order:
            self._wake(due)

    def earliest(self) -> float | None:
        """Return when the next action is due, None if there is none."""
        return self._heap[0][0] if self._heap else None

    def run(self, most: int = 256) -> None:
        """Run what is due now, at most *most* actions, so that sockets get their turn under overload."""
        heap, clock = self._heap, self.clock
        for _ in range(most):
            if not heap:
                return
            due, _order, action = heap[0]
            now = clock()
            if due > now:
                return
            self._floor = due
            try:
                again = action(now)
            except BaseException:
                heappop(heap)
                raise
            finally:
                self._floor = float("-inf")
            # Replacing the top costs half of taking it off and putting it back.
            if again is None:
                heappop(heap)
            else:
                self._order += 1
                heapreplace(heap, (again, self._order, action))

"""How many generations run at once, and what happens to the next one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

Start = Callable[[], None]


class Capacity:
    """Slots for generations: unlimited, or *slots* with a queue in order of arrival."""

    def __init__(self, slots: int | None = None, queue: bool = False) -> None:
        self._slots = slots
        self._queues = queue
        self._running = 0
        self._waiting: deque[tuple[object, Start]] = deque()

    def enter(self, who: object, start: Start) -> bool | None:
        """Start *who* now (True), let it wait and start later (False), or refuse it (None)."""
        if self._slots is None or self._running < self._slots:
            self._running += 1
            start()
            return True
        if not self._queues:
            return None
        self._waiting.append((who, start))
        return False

    def leave(self, who: object) -> None:
        """Take *who* out, whether it ran or waited; the next in the queue starts."""
        for entry in self._waiting:
            if entry[0] is who:
                self._waiting.remove(entry)
                return
        self._running -= 1
        if self._waiting and self._slots is not None and self._running < self._slots:
            _, start = self._waiting.popleft()
            self._running += 1
            start()

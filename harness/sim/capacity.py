"""How many generations run at once, and what happens to the next one."""

from __future__ import annotations

from collections.abc import Callable

Start = Callable[[], None]


class Capacity:
    """Slots for generations: unlimited, or *slots* with a queue in order of arrival."""

    def __init__(self, slots: int | None = None, queue: bool = False) -> None:
        self._slots = slots
        self._queues = queue
        self._running = 0
        self._waiting: dict[object, Start] = {}  # in order of arrival

    def enter(self, who: object, start: Start) -> bool | None:
        """Start *who* now (True), let it wait and start later (False), or refuse it (None)."""
        if self._slots is None or self._running < self._slots:
            self._running += 1
            start()
            return True
        if not self._queues:
            return None
        self._waiting[who] = start
        return False

    def leave(self, who: object) -> None:
        """Take *who* out, whether it ran or waited; the next in the queue starts."""
        if self._waiting.pop(who, None) is not None:
            return
        self._running -= 1
        if self._waiting and self._slots is not None and self._running < self._slots:
            start = self._waiting.pop(next(iter(self._waiting)))
            self._running += 1
            start()

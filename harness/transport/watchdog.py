"""One timer for one attempt: it asks the session again whenever a limit may be due."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from gevent.hub import Hub

from harness.transport.sink import StreamSink

if TYPE_CHECKING:
    from gevent._types import _TimerWatcher

# A limit that is due but does not fire is asked again after this, not at once for ever.
_BREATH_S = 1e-3


class Watchdog:
    """Calls *on_due* when the session's deadline has come, with how late the timer itself was, in seconds.

    Limits mostly move away as bytes arrive, so the timer is left alone then; when it rings too
    early it is set again. Only a deadline that came nearer (`urgency`) needs a look in between.
    """

    __slots__ = ("_due", "_loop", "_on_due", "_session", "_timer", "urgency")

    def __init__(self, hub: Hub, session: StreamSink, on_due: Callable[[float], None]) -> None:
        self._loop = hub.loop
        self._session = session
        self._on_due: Callable[[float], None] | None = on_due
        self._timer: _TimerWatcher | None = None
        self._due = float("inf")
        self.urgency = session.urgency
        self.look()

    def hand_over(self, on_due: Callable[[float], None]) -> None:
        """Call *on_due* from now on, and look again."""
        self._on_due = on_due
        self.look()

    def look(self) -> None:
        """Set the timer to an earlier moment if the deadline has come nearer."""
        self.urgency = self._session.urgency
        due = self._session.deadline()
        if due is not None and due < self._due and self._on_due is not None:
            self._set(due, due - time.monotonic())

    def again(self, delay_s: float = 0.0) -> None:
        """Set the timer for the present deadline, but not before *delay_s* from now."""
        if self._on_due is None:
            return
        self.urgency = self._session.urgency
        due = self._session.deadline()
        if due is None:
            self._stop()
        else:
            now = time.monotonic()
            self._set(max(due, now + delay_s), max(due - now, delay_s, _BREATH_S))

    def cancel(self) -> None:
        """Never call *on_due* again."""
        self._on_due = None
        self._stop()

    def _set(self, due: float, delay_s: float) -> None:
        self._stop()
        self._due = due
        self._timer = self._loop.timer(max(delay_s, 0.0))
        self._timer.start(self._ring)

    def _stop(self) -> None:
        self._due = float("inf")
        if self._timer is not None:
            self._timer.stop()
            self._timer.close()
            self._timer = None

    def _ring(self) -> None:
        now = time.monotonic()
        late_s = now - self._due
        due = self._session.deadline()
        if due is None or due > now or self._on_due is None:
            self.again()
        else:
            self._stop()
            self._on_due(late_s)

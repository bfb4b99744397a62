"""The live view of one stream on a terminal: where it is, what came, how long it has been silent."""

from __future__ import annotations

from time import monotonic
from types import TracebackType
from typing import Any

import gevent
from rich.console import Group
from rich.live import Live
from rich.text import Text

from harness.gateways import format_duration
from harness.load.exchange import Call
from harness.load.run import SIMULATOR_HEADER
from harness.observe.table import console_for, safe
from harness.stream import Session
from harness.wire.signals import ERROR, KEEPALIVE, PROGRESS, TERMINAL

_FRAME_S = 0.1
_STRIP = 72

# One sign per tenth of a second, the strongest thing that came in it.
_SIGNS = (
    (ERROR, "!", "bold red"),
    (TERMINAL, "■", "bold green"),
    (PROGRESS, "▮", "green"),
    (KEEPALIVE, "·", "cyan"),
)

_LEGEND = "▮ token  · keepalive  ▫ other event  ! error  ■ end; 0.1 s each, now at the right"

_PHASES = {
    "connect": "connecting",
    "before_headers": "waiting for headers",
    "before_first_byte": "headers came, waiting for the first byte",
    "before_first_token": "waiting for the first token",
    "mid_stream": "streaming",
    "after_terminal": "ended, waiting for the connection to close",
}


class LiveView:
    """Shows *session* while the block runs; nothing if *quiet* or if stdout is no terminal."""

    def __init__(self, session: Session, call: Call, *, quiet: bool) -> None:
        self._session = session
        self._call = call
        console = console_for()
        self._live = (
            None
            if quiet or not console.is_terminal
            else Live(console=console, auto_refresh=False, transient=True)
        )
        self._painter: Any = None

    def __enter__(self) -> LiveView:
        if self._live is not None:
            self._live.start()
            self._painter = gevent.spawn(self._paint, self._live)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._painter.kill()
            self._live.stop()

    def _paint(self, live: Live) -> None:
        while True:
            width = min(_STRIP, live.console.width - 1)
            live.update(picture(self._session, self._call, monotonic(), width), refresh=True)
            gevent.sleep(_FRAME_S)


def picture(session: Session, call: Call, now: float, width: int = _STRIP) -> Group:
    """Return what the view shows at *now* (monotonic seconds); *width* is that of the strip."""
    pace = session.pace
    simulated = SIMULATOR_HEADER in session.response_headers
    head = Text.assemble(
        (f"{call.protocol} ", "bold"), safe(call.url), "  ", (_PHASES[session.phase], "bold"),
        f"  {format_duration(now - session.zero)}", ("  SIMULATED" if simulated else "", "bold magenta"),
    )  # fmt: skip
    counts = Text(
        f"{session.progress_count:,} tokens · {pace.comments} comments · {pace.pings} pings", style="dim"
    )
    waits = Text()
    for name, moment, limit in (
        ("last byte", session.last_byte, session.limits.silence.fail_s),
        ("last token", session.last_progress, session.limits.progress.fail_s),
    ):
        if moment is not None:
            age_s = now - moment
            style = "red" if limit is not None and age_s > limit / 2 else "yellow" if age_s > 1.0 else "green"
            bound = f" of {format_duration(limit)}" if limit is not None else ""
            waits.append(f"{name} {format_duration(age_s)} ago{bound}   ", style=style)
    return Group(head, counts, waits, strip(session, now, width), Text(_LEGEND, style="dim"))


def strip(session: Session, now: float, width: int = _STRIP) -> Text:
    """Return the last seconds as a strip of signs, newest at the right."""
    cells = [0] * width
    seen = [False] * width
    trace = session.trace
    for moment, code in zip(reversed(trace.moments), reversed(trace.codes), strict=False):
        place = width - 1 - int((now - moment) / _FRAME_S)
        if place < 0:
            break
        if place < width:
            cells[place] |= code or KEEPALIVE  # 0 is a comment
            seen[place] = True
    text = Text()
    for code, any_ in zip(cells, seen, strict=True):
        sign, style = next(((s, c) for flag, s, c in _SIGNS if code & flag), ("▫" if any_ else " ", "dim"))
        text.append(sign, style=style)
    return text

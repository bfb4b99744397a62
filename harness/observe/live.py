"""The streams that are open at this moment: how many in which phase, and the oldest silence among them.

Computed when somebody asks, from the sessions themselves: a gauge that is only set by events cannot rise
while nothing happens, and nothing happening is what it is for.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from harness.observe.labels import Labels
from harness.observe.totals import OPEN_PHASES, OpenStreams

_CONNECTING, _WAITING, _STREAMING, _SILENT = range(len(OPEN_PHASES))

_PHASES = {
    "connect": _CONNECTING,
    "before_headers": _WAITING,
    "before_first_byte": _WAITING,
    "before_first_token": _WAITING,
    "mid_stream": _STREAMING,
    "after_terminal": _STREAMING,
}


class OpenStream(Protocol):
    """What is read of a session, open or just ended. Times are monotonic seconds."""

    @property
    def phase(self) -> str: ...
    @property
    def opened(self) -> float: ...
    @property
    def t0(self) -> float | None: ...
    @property
    def last_byte(self) -> float | None: ...
    @property
    def last_progress(self) -> float | None: ...
    @property
    def slow_after_s(self) -> float | None: ...
    @property
    def keepalive_gaps(self) -> list[tuple[str, float]]: ...
    @property
    def thinking_s(self) -> float: ...
    @property
    def dead_s(self) -> float: ...
    @property
    def uncertainties(self) -> list[float]: ...
    @property
    def soft_stall_counts(self) -> Mapping[str, int]: ...
    @property
    def first_token_window_s(self) -> float: ...


class WatchedStream(OpenStream, Protocol):
    """A session whose gaps and timeline are read by the driver and handed on."""

    @property
    def gaps(self) -> array[float]: ...
    def timeline(self) -> dict[str, Any]: ...


def open_streams(sessions: Iterable[tuple[Labels, OpenStream]], now: float) -> dict[Labels, OpenStreams]:
    """Return the open streams by labels as they are at *now* (monotonic seconds).

    Silence counts from the last byte. A stream without any is silent since its request was written, or
    since it was opened: a gateway that accepts requests and never answers has to show as well. After the
    terminal nothing more is expected, so such a stream is neither silent nor without progress.
    """
    found: dict[Labels, OpenStreams] = {}
    for labels, session in sessions:
        streams = found.get(labels)
        if streams is None:
            streams = found[labels] = OpenStreams()
        phase = session.phase
        index = _PHASES.get(phase, _STREAMING)
        if phase == "after_terminal":
            streams.phases[index] += 1
            continue
        began = session.opened if session.t0 is None else session.t0
        silence = now - (began if session.last_byte is None else session.last_byte)
        gap = now - (began if session.last_progress is None else session.last_progress)
        if index == _STREAMING and session.slow_after_s is not None and gap > session.slow_after_s:
            index = _SILENT
        streams.phases[index] += 1
        streams.oldest_silence_s = max(streams.oldest_silence_s, silence)
        streams.oldest_progress_gap_s = max(streams.oldest_progress_gap_s, gap)
    return found

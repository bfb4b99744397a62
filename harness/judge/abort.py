"""Ends a hopeless run early: a sliding window over the newest records, judged again and again.

It knows no Locust and no clock of its own: the caller feeds it records as they end, asks it every two
seconds or so, and stops the run when told to. It is never too early: not before `after`, not on fewer
streams than the gate needs, and only when the limit was broken at every look for as long as `sustained`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from harness.gateways.durations import format_duration
from harness.judge.evidence import Cell, Cells, Evidence, Key
from harness.judge.gates import WHERE, Abort, Gate, Gates
from harness.judge.gating import judge_cells
from harness.judge.verdict import Result
from harness.stream.record import Attempt

# The window moves in steps of this: records are counted once, as they come, and a look only adds slices up.
_SLICE_S = 2.0


@dataclass(frozen=True, slots=True)
class Stop:
    """The run is to be ended because of the gate with this id; `reason` is one sentence."""

    gate_id: str
    reason: str


class AbortWatch:
    """The watch over one run.

    *clock* returns seconds that only grow; the run begins when this object is made.
    """

    def __init__(self, gates: Gates, clock: Callable[[], float]) -> None:
        self._watched = [(gate, gate.abort) for gate in gates.gates if gate.abort is not None]
        self._slo, self._clock, self._began = gates.slo, clock, clock()
        self._keep_s = max((abort.window_s for _, abort in self._watched), default=0.0)
        self._request_times = any(gate.view == "request" for gate, _ in self._watched)
        self._slices: deque[tuple[float, Evidence]] = deque()
        self._broken_since: dict[str, float] = {}

    @property
    def watches(self) -> bool:
        """Whether any gate can end the run; without one nothing has to be fed or asked."""
        return bool(self._watched)

    def add(self, record: Attempt) -> None:
        """Count a record that just ended: about 5 µs."""
        if not self._watched:
            return
        now = self._clock()
        if not self._slices or now >= self._slices[-1][0] + _SLICE_S:
            self._slices.append((now, Evidence(self._slo, request_times=self._request_times)))
            while self._slices[0][0] < now - self._keep_s - _SLICE_S:
                self._slices.popleft()
        self._slices[-1][1].add(record)

    def check(self, waiting: Iterable[tuple[Key, float]] = ()) -> Stop | None:
        """Return why the run is to be ended now, or None.

        *waiting* are the streams that have no token yet: protocol, gateway, scenario and model, and for how
        many seconds. Without them a gateway that hangs altogether ends no stream and so looks like no load.
        """
        now, open_now = self._clock(), list(waiting)
        for gate, abort in self._watched:
            if now - self._began < abort.after_s:
                continue
            result = self._judge(gate, abort, now, open_now)
            if result.word not in ("fail", "warn"):
                self._broken_since.pop(gate.id, None)
                continue
            since = self._broken_since.setdefault(gate.id, now)
            if now - since >= abort.sustained_s:
                held = format_duration(now - since)
                return Stop(gate.id, f"{gate}: {result.reason}, for {held} on end")
        return None

    def _judge(self, gate: Gate, abort: Abort, now: float, waiting: list[tuple[Key, float]]) -> Result:
        cells = Cells(
            cell
            for began, evidence in self._slices
            if began > now - abort.window_s - _SLICE_S
            for cell in evidence.select(gate.where)
        )
        if gate.metric in ("ttft", "first_content"):
            wanted = [(WHERE.index(key), value) for key, value in gate.where.items()]
            held = Cell()
            for key, waited_s in waiting:
                if all(key[i] == value for i, value in wanted):
                    held.streams += 1
                    held.attempts[gate.metric].cut.append(waited_s)
                    if gate.metric in held.requests:
                        held.requests[gate.metric].cut.append(waited_s)
            cells += [held] if held.streams else []
        return judge_cells(gate, cells, abort.window_s)

"""Makes the requests of `harness check` and records what came: a few at a time, with progress to watch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import monotonic, time

import gevent
from gevent.pool import Pool
from rich.console import Console
from rich.live import Live
from rich.text import Text

from harness.gateways import format_duration
from harness.judge.check import Observation, Step
from harness.load.exchange import Call, new_request_id, open_session, perform, prepare
from harness.load.prompts import Prompt
from harness.load.run import SIMULATOR_HEADER
from harness.load.settings import Settings
from harness.stream import Identity, Retry, Session, assemble
from harness.transport import HarnessTransport

_FRAME_S = 0.5

# How a simulated upstream is told what to play.
FAULT_HEADER = "X-Harness-Fault"
MODEL_PREFIX = "sim-"


@dataclass(slots=True)
class Asker:
    """Asks one gateway. `provoke`: how its upstream is told what to play, None if it cannot be told."""

    settings: Settings
    provoke: str | None = None
    plays: dict[str, str] = field(default_factory=dict)
    """Situation to fault, where the user wants another one than usual."""
    parallel: int = 3
    simulated: bool = False
    seen: list[Observation] = field(default_factory=list)
    _under_way: dict[str, float] = field(default_factory=dict)
    _epoch: float = field(default_factory=lambda: time() - monotonic())

    def ask_all(self, steps: Sequence[Step], console: Console) -> None:
        """Take all *steps*: those that measure speed one by one, at the end; the others a few at a time."""
        total = len(self.seen) + len(steps)
        painter = None
        live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        if live is not None:
            live.start()
            painter = gevent.spawn(self._paint, live, total)
        pool = Pool(self.parallel)
        try:
            together = sorted((s for s in steps if not s.situation.alone), key=self._longest_first)
            for _ in pool.imap_unordered(self.ask, together, maxsize=self.parallel):
                pass
            for step in steps:
                if step.situation.alone:
                    self.ask(step)
        finally:
            pool.kill()
            if painter is not None and live is not None:
                painter.kill()
                live.stop()

    def ask(self, step: Step) -> Observation:
        """Make one request, wait for its end, and keep what was seen."""
        call = self._call(step)
        chunks: list[tuple[float, bytes]] = []
        transport = HarnessTransport(self.settings.transport)

        def take(data: bytes) -> None:
            last = session.last_byte
            chunks.append((0.0 if last is None else last - session.zero, data))
            leaves_after = step.situation.leaves_after
            if leaves_after and session.progress_count >= leaves_after:
                gevent.spawn(transport.abort)

        session = open_session(self.settings, call, on_bytes=take)
        name = f"{step.situation.name} {step.protocol}"
        self._under_way[name] = session.opened
        try:
            perform(transport, call, 1, session)
        finally:
            transport.close()
            self._under_way.pop(name, None)
        if not chunks and session.body:  # an answer that is no stream
            ended_at = session.ended_at or session.zero
            chunks.append((ended_at - session.zero, bytes(session.body)))
        self.simulated = self.simulated or SIMULATOR_HEADER in session.response_headers
        record = assemble(
            session, self._identity(call, session), self._epoch, retry=Retry("none"), final=True
        )
        seen = Observation(
            situation=step.situation.name,
            protocol=step.protocol,
            record=record,
            headers=dict(session.response_headers),
            chunks=tuple(chunks),
            request_body=call.body,
            url=call.url,
        )
        self.seen.append(seen)
        return seen

    def _call(self, step: Step) -> Call:
        situation = step.situation
        headers, model = dict(situation.headers), step.model or None
        fault = self.plays.get(situation.name, situation.fault)
        if fault and self.provoke == "header":
            headers[FAULT_HEADER] = fault
        elif fault and self.provoke == "model":
            model = MODEL_PREFIX + fault
        settings = self.settings
        if not situation.key:  # not even one of the user's own headers may hold it
            settings = replace(settings, keys=(), headers=_keyless(settings.headers))
        return prepare(
            settings,
            step.protocol,
            Prompt.of(situation.prompt),
            request=new_request_id("check-"),
            key=settings.keys[0] if settings.keys else None,
            nonce=None,
            model=model,
            max_tokens=situation.max_tokens,
            extra_body=situation.extra_body,
            headers=headers,
        )

    def _identity(self, call: Call, session: Session) -> Identity:
        name = self.settings.profile.name
        return Identity(
            run="check",
            request=call.request,
            attempt=1,
            protocol=call.protocol,
            gateway=f"sim:{name}" if self.simulated else name,
            simulated=self.simulated,
            scenario="default",
            model=call.model,
            worker="local",
            phase="measure",
            scheduled_at=self._epoch + session.opened,
        )

    def _longest_first(self, step: Step) -> float:
        return -step.situation.seconds(self.settings.profile)

    def _paint(self, live: Live, total: int) -> None:
        while True:
            now = monotonic()
            running = ", ".join(
                f"{name} {format_duration(round(now - since, 1))}" for name, since in self._under_way.items()
            )
            line = Text.assemble((f"{len(self.seen)} of {total} requests", "bold"), f"  {running}")
            live.update(line, refresh=True)
            gevent.sleep(_FRAME_S)


def _keyless(headers: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple(pair for pair in headers if pair[0].lower() not in ("authorization", "x-api-key"))

"""From a request to what is played: the simulated gateway itself, without sockets."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from harness.gateways import Profile
from harness.sim import plain
from harness.sim.capacity import Capacity
from harness.sim.choice import Chooser
from harness.sim.clockwork import Clockwork
from harness.sim.dialects import Dialect, DialectError, dialect
from harness.sim.dialogues import DIALOGUES, Dialogue
from harness.sim.dialogues.base import Identity
from harness.sim.faults import FAULTS
from harness.sim.heads import STREAM_TYPE, answer, head
from harness.sim.http import HttpRequest
from harness.sim.mix import UnknownFaultError
from harness.sim.pace import Pace, Schedule
from harness.sim.plan import Plan
from harness.sim.playback import Beat, Link, Playback
from harness.sim.request import Asked, BadRequestError, read_request
from harness.sim.routing import COUNT_TOKENS, HEALTH, MODELS, Router
from harness.sim.script import Circumstances, Script
from harness.sim.truth import TruthLine, TruthLog
from harness.sim.vendor import http_error
from harness.sim.verdict import Verdict

# A gateway that promises no keepalive still sends them while it stalls: otherwise `stall-mid` would be
# `stall-mid-dead`. Seconds before scaling.
_UNPROMISED_INTERVAL_S = 10.0
_UNPROMISED_TEXT = "keepalive"


@dataclass(frozen=True, slots=True)
class Setup:
    """How the gateway is to behave."""

    profile: Profile
    """Scaled already."""
    dialect: str
    seed: int
    pace: Pace


@dataclass
class _RefusedError(Exception):
    status: int
    message: str


class SimulatedGateway:
    """Answers requests by playing plans."""

    def __init__(
        self,
        setup: Setup,
        chooser: Chooser,
        capacity: Capacity,
        truth: TruthLog,
        clockwork: Clockwork,
        wall_clock: Callable[[], float],
    ) -> None:
        self.clockwork = clockwork
        self.verdict = Verdict()
        self._setup = setup
        self._chooser = chooser
        self._capacity = capacity
        self._truth = truth
        self._wall_clock = wall_clock
        self._router = Router(setup.profile)
        self._ids = random.Random(f"ids {setup.seed}")
        self._open: set[Playback] = set()
        self._dialects: dict[str, Dialect] = {}
        self._dialect(setup.dialect)

    def serve(self, request: HttpRequest, link: Link) -> Playback | None:
        """Answer *request* on *link*: at once (None), or by the playback that is returned."""
        suffix = f"{self._ids.getrandbits(96):024x}"
        headers = self._headers(f"req_{suffix}")
        fault, target = self._router.find(request.url)
        protocol = target if target in DIALOGUES else ("messages" if target == COUNT_TOKENS else "chat")
        try:
            whole = self._static(request, target, headers)
            if whole is None:
                asked = self._read(request, protocol, fault)
                if target != COUNT_TOKENS:
                    identity = Identity(suffix, asked.model, int(self._wall_clock()), self._id_prefix)
                    return self._play(asked, identity, headers, link, request.chunked_allowed)
                whole = plain.token_count(asked.prompt_tokens, headers)
        except _RefusedError as refused:
            whole = self._error(refused.status, protocol, headers, refused.message)
        except (BadRequestError, DialectError, UnknownFaultError) as error:
            whole = self._error(400, protocol, headers, str(error))
        link.write(whole)
        link.finish()
        return None

    def _static(self, request: HttpRequest, target: str | None, headers: dict[str, str]) -> bytes | None:
        """Return the answer if the address alone decides it. Raises `_RefusedError`."""
        if target is None:
            raise _RefusedError(404, f"There is nothing at {request.url}.")
        method = "GET" if target in (MODELS, HEALTH) else "POST"
        if request.method != method:
            headers["Allow"] = method
            raise _RefusedError(405, f"Use {method} here.")
        if target == HEALTH:
            return answer(200, headers, b'{"status":"ok"}')
        if target == MODELS:
            only = request.url.partition("?")[0].partition("/models/")[2]
            return plain.models(self._setup.profile, only, headers)
        return None

    def stop(self) -> None:
        """End all open streams, so that the truth log is complete."""
        now = self.clockwork.clock()
        for playback in list(self._open):
            playback.stop(now)

    def error_answer(self, status: int, message: str) -> bytes:
        """Return the answer to bytes that are no request."""
        return self._error(status, "chat", self._headers("req_none") | {"Connection": "close"}, message)

    def _read(self, request: HttpRequest, protocol: str, fault: str) -> Asked:
        endpoint = self._setup.profile.endpoints.get(protocol)
        model = (endpoint.model if endpoint else None) or "sim"
        return read_request(protocol, fault, request.headers, request.body, self._setup.pace, model)

    def _play(
        self, asked: Asked, identity: Identity, headers: dict[str, str], link: Link, chunked: bool
    ) -> Playback:
        spelling = self._dialect(asked.dialect or self._setup.dialect)
        now = self.clockwork.clock()
        line = TruthLine(
            asked.request, asked.attempt, asked.protocol, asked.fault, "http_error", self._wall_clock()
        )
        try:
            fault = FAULTS[self._chooser.choose(asked)]
        except UnknownFaultError:
            self._log(asked, line)
            raise
        line.fault = fault.name
        if not asked.preflight:
            self.verdict.begins(asked.who, asked.first, now)
        dialogue = DIALOGUES[asked.protocol](
            identity, spelling.accent, asked.include_usage, asked.prompt_tokens
        )
        script = self._script(asked, dialogue, headers)
        head_bytes, beat = self._stream_head(headers, chunked), self._beat(spelling)

        def make(plan: Plan, outcome: str, takes_slot: bool) -> Playback:
            def over(playback: Playback, line: TruthLine) -> None:
                self._open.discard(playback)
                self._log(asked, line)
                if not asked.preflight:
                    self.verdict.ends(asked.who, line.outcome, script.told_wait_s, self.clockwork.clock())
                if takes_slot:
                    self._capacity.leave(playback)

            playback = Playback(
                plan, outcome, line, link, self.clockwork, beat, head_bytes, chunked, now, over
            )
            self._open.add(playback)
            return playback

        if not asked.stream and not fault.before_stream:
            playback = make(
                plain.whole_answer(dialogue, asked.pace, script.finish, headers), "completed", False
            )
            playback.start(now)
            return playback
        plan, outcome = spelling.apply(fault.plan(script)), fault.outcome_for(script)
        if fault.before_stream or asked.preflight:
            playback = make(plan, outcome, False)
            playback.start(now)
            return playback
        playback = make(plan, outcome, True)
        entered = self._capacity.enter(playback, lambda: playback.start(self.clockwork.clock()))
        if entered is None:
            self._open.discard(playback)
            playback = make(script.refuses(429, Retry_After="1"), "http_error", False)
            playback.start(now)
        elif not entered:
            playback.open_early(now)
        return playback

    def _script(self, asked: Asked, dialogue: Dialogue, headers: dict[str, str]) -> Script:
        circumstances = Circumstances(
            protocol=asked.protocol,
            profile=self._setup.profile,
            limits=self._setup.profile.limits_for(asked.model),
            attempt=asked.attempt,
            wall_s=self._wall_clock(),
            own_headers=headers,
            request_id=headers["X-Request-Id"],
        )
        schedule = Schedule(asked.pace, self._ids.getrandbits(32) if asked.pace.jitter else 0)
        return Script(
            circumstances, dialogue, schedule, asked.pace.tokens, "length" if asked.capped else "stop"
        )

    def _log(self, asked: Asked, line: TruthLine) -> None:
        if asked.stream and not asked.preflight:
            self._truth.add(line)

    def _error(self, status: int, protocol: str, headers: dict[str, str], message: str) -> bytes:
        body = http_error(self._setup.profile.name, protocol, status, headers["X-Request-Id"], message)
        return answer(status, headers, body)

    def _headers(self, request_id: str) -> dict[str, str]:
        return {
            "X-Harness-Sim": self._setup.profile.name,
            "X-Request-Id": request_id,
            "Request-Id": request_id,
        }

    @property
    def _id_prefix(self) -> str:
        return "hx" if self._setup.profile.name == "sabiuco" else ""

    def _stream_head(self, headers: dict[str, str], chunked: bool) -> bytes:
        """Return the head of a streaming answer, without the blank line: a plan may add to it."""
        framing = {"Transfer-Encoding": "chunked"} if chunked else {"Connection": "close"}
        common = {"Content-Type": STREAM_TYPE, "Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        return head(200, {**common, **framing, **headers})[:-2]

    def _beat(self, spelling: Dialect) -> Beat:
        promised = self._setup.profile.keepalive
        if promised is not None:
            comment = f": {promised.text}\n\n".encode()
            return Beat(
                spelling.spell(comment), promised.interval_s, promised.kind == "periodic", promised=True
            )
        comment = f": {_UNPROMISED_TEXT}\n\n".encode()
        interval_s = _UNPROMISED_INTERVAL_S * self._setup.profile.time_scale
        return Beat(spelling.spell(comment), interval_s, periodic=False, promised=False)

    def _dialect(self, text: str) -> Dialect:
        found = self._dialects.get(text)
        if found is None:
            found = dialect(text, role_with_text=self._setup.profile.name == "hopbase")
            if len(self._dialects) > 100:
                # The text comes from clients; the cache must not grow with their inventions.
                self._dialects.clear()
            self._dialects[text] = found
        return found

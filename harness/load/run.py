"""One run on one node: starts requests, takes their records, and hands both to who counts and keeps them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec
from msgspec import structs

from harness.load.abandon import Leave
from harness.load.budget import Spending
from harness.load.exchange import Call
from harness.load.hiding import hide, hide_in_error, hide_in_record, secrets_in
from harness.load.open_loop import OpenLoop
from harness.load.settings import Settings
from harness.observe.aggregate import Aggregate, Labels
from harness.observe.labels import NONE
from harness.stream import Attempt, Identity, RequestSummary, Retry, Session, assemble
from harness.stream.outcome import RetryOutcome, is_failure
from harness.stream.record import Tokens
from harness.stream.retry import decide

if TYPE_CHECKING:
    from harness.load.users import StreamUser

SIMULATOR_HEADER = "x-harness-sim"


class Sink(Protocol):
    """Where records go: a results folder, or the master."""

    def add(
        self, record: Attempt, timeline: Callable[[], dict[str, Any]], content: dict[str, Any] | None
    ) -> None:
        """Take an ended attempt; *content* is what ``--save-content`` keeps of it. Never raises."""


class NoSink:
    """Keeps nothing: for a run without results."""

    def add(
        self, record: Attempt, timeline: Callable[[], dict[str, Any]], content: dict[str, Any] | None
    ) -> None:
        """Forget the record."""


@dataclass(slots=True)
class Request:
    """A request under way: what it asks, when it was planned (monotonic seconds), in which phase."""

    call: Call
    scenario: str
    scheduled: float
    phase: Literal["warmup", "measure"]
    content: Any = None
    leave: Leave | None = None
    wasted_tokens: int = 0
    wasted_source: Literal["usage", "events"] | None = None

    def waste(self, tokens: Tokens) -> None:
        """Count output that was thrown away; a sum with one guess in it is a guess."""
        if tokens.output:
            self.wasted_tokens += tokens.output
            self.wasted_source = "events" if self.wasted_source == "events" else tokens.source


class Run:
    """The context of one run, from Start to verdict.

    `epoch` turns monotonic seconds into unix seconds; it is taken once, so that a step of the wall
    clock during the run moves nothing. *on_simulated* hears of it when an answer says that it comes
    from a simulator and the settings did not know; `on_over`, if set, hears once why nothing more is to
    be asked: a budget is spent, or a replay has come to its end. *first_user* sets the users of this
    process apart from those of others.
    """

    def __init__(
        self,
        name: str,
        settings: Settings,
        aggregate: Aggregate,
        sink: Sink | None = None,
        on_simulated: Callable[[], None] | None = None,
        first_user: int = 0,
    ) -> None:
        self.name = name
        self.settings = settings
        self.aggregate = aggregate
        self.sink: Sink = sink or NoSink()
        self.started = time.monotonic()
        self.epoch = time.time() - self.started
        self._on_simulated = on_simulated
        self._users = first_user
        self.on_over: Callable[[str], None] | None = None
        self.spending = Spending(settings.budget)
        self._open_loop: OpenLoop | None = None
        self._random = random.Random(settings.seed + first_user)
        aggregate.begin_run(
            name,
            started_at=self.epoch + self.started,
            time_scale=settings.time_scale,
            threshold_s=settings.tolerance_s,
        )

    def next_user(self) -> int:
        """Return the number of a new user, from *first_user* on: with the seed it decides what they ask."""
        self._users += 1
        return self._users - 1

    def settings_of(self, scenario: str) -> Settings:
        """Return the settings of *scenario*; the run's own if no scenario has that name."""
        return self.settings.scenarios.get(scenario, self.settings)

    @property
    def open_loop(self) -> OpenLoop:
        """The arrivals of this process; the first user that offers some starts them."""
        if self._open_loop is None:
            seed = f"{self.settings.seed}-{self.aggregate.worker}"
            self._open_loop = OpenLoop(self.settings.load, seed, self._count_arrival, self._replayed)
        return self._open_loop

    def arrived(self, labels: Labels, late_s: float) -> None:
        """Count an arrival that became a request, *late_s* after its planned start."""
        self.aggregate.arrival(labels, True, late_s)

    def may_begin(self) -> bool:
        """Return whether the budget has room for one more request, and count it."""
        begins = self.spending.request()
        self._look_at_budget()
        return begins

    def _look_at_budget(self) -> None:
        if self.spending.reason is not None:
            self._over(self.spending.reason)

    def _over(self, why: str) -> None:
        if self.on_over is not None:
            on_over, self.on_over = self.on_over, None
            on_over(why)

    def _replayed(self) -> None:
        self._over(f"the log was replayed: {len(self.settings.load.orders):,} requests")

    def _count_arrival(self, user: StreamUser, late_s: float | None) -> None:
        """Count an arrival that never became a request; its labels are as good as they are known."""
        protocol = user.protocol or NONE
        model = self.settings_of(user.scenario).models.get(protocol, NONE)
        labels = Labels(self.name, protocol, self.settings.gateway, user.scenario, model)
        self.aggregate.arrival(labels, late_s is not None, late_s or 0.0)

    def answered(self, session: Session) -> None:
        """Look at the first of an answer: a simulator names itself, and nothing is simulated silently.

        What was counted before is renamed, so that no number of a run stays under the real name.
        """
        if not self.settings.simulated and SIMULATOR_HEADER in session.response_headers:
            self.settings = replace(self.settings, simulated=True)
            self.aggregate.rename_gateway(self.name, self.settings.gateway)
            if self._on_simulated is not None:
                self._on_simulated()

    def labels(self, request: Request) -> Labels:
        """Return the labels under which *request* is counted."""
        call = request.call
        return Labels(self.name, call.protocol, self.settings.gateway, request.scenario, call.model)

    def begin(self, call: Call, scenario: str, scheduled: float, content: Any = None) -> Request:
        """Start a request."""
        warming_up = scheduled - self.started < self.settings.warmup_s
        request = Request(call, scenario, scheduled, "warmup" if warming_up else "measure", content)
        self.aggregate.request_started(self.labels(request))
        return request

    def finish(
        self, request: Request, attempt: int, session: Session, labels: Labels, raw: bytes | None
    ) -> Attempt:
        """Take an ended *session*: returns its record, counted and kept; it says whether a retry follows.

        *labels* are those of the attempt's start.
        """
        identity = Identity(
            run=self.name,
            request=request.call.request,
            attempt=attempt,
            protocol=request.call.protocol,
            gateway=self.settings.gateway,
            simulated=self.settings.simulated,
            scenario=request.scenario,
            model=request.call.model,
            worker=self.aggregate.worker,
            phase=request.phase,
            scheduled_at=self.epoch + request.scheduled,
        )
        secrets = secrets_in(request.call)
        hide_in_error(session, secrets)
        record = assemble(session, identity, self.epoch, retry=Retry("none"), final=True)
        record = hide_in_record(record, secrets)
        verdict = decide(
            self.settings_of(request.scenario).retry,
            record,
            session.response_headers,
            elapsed_s=time.monotonic() - request.scheduled,
            wall=time.time(),
            draw=self._random.random(),
        )
        if is_failure(record.outcome):
            request.waste(record.tokens)
        final = verdict.retry.decision != "retry"
        record = structs.replace(
            record,
            retry=verdict.retry,
            final=final,
            request_summary=summarise(record, session, request, verdict.outcome) if final else msgspec.UNSET,
        )
        self.aggregate.attempt_ended(labels, session, record)
        self.spending.answered((record.tokens.input or 0) + (record.tokens.output or 0))
        self._look_at_budget()
        content = None
        if raw is not None:
            content = {
                "request": record.request,
                "attempt": attempt,
                "protocol": record.protocol,
                "prompt": request.content,
                "stream": hide(raw.decode("utf-8", "replace"), secrets),
            }
        self.sink.add(record, session.timeline, content)
        return record


def summarise(
    record: Attempt, session: Session, request: Request, outcome: RetryOutcome | None
) -> RequestSummary:
    """Return the request as its user saw it: its last attempt, with times from the planned start."""
    late_s = session.zero - request.scheduled

    def seen(offset_s: float | None) -> float | None:
        return None if offset_s is None else round(offset_s + late_s, 6)

    return RequestSummary(
        attempts=record.attempt,
        outcome=record.outcome,
        retry_outcome=outcome,
        first_token_s=seen(record.first_token_s),
        first_content_s=seen(record.first_content_s),
        end_s=round(record.end_s + late_s, 6),
        wasted_tokens=request.wasted_tokens,
        wasted_source=request.wasted_source,
    )

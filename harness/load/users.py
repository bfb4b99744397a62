"""Locust users that stream: one class per protocol, and the base for a locustfile of one's own."""

from __future__ import annotations

from locust import User, task
from locust.exception import StopUser
from locust.user.task import LOCUST_STATE_RUNNING, LOCUST_STATE_STOPPING, LOCUST_STATE_WAITING

import random
from collections.abc import Callable
from time import monotonic
from typing import Any

import gevent

from harness.load.abandon import LeavingSession, choose
from harness.load.answers import text_of
from harness.load.arrivals import Order
from harness.load.exchange import new_request_id, open_session, perform, prepare
from harness.load.lengths import words
from harness.load.prompts import Prompt
from harness.load.run import Request, Run
from harness.load.settings import Settings, UsageError
from harness.stream import Attempt
from harness.stream.describe import failure_name
from harness.stream.outcome import BACK_OFF, CLIENT_ENDED
from harness.transport import HarnessTransport

# Nothing was streamed: wait this long before the next request, or a dead gateway is hammered.
BACK_OFF_S = 1.0

# What --save-content, and the next turn of a conversation, keep of one answer.
KEPT_CONTENT_BYTES = 1024 * 1024


class StreamFailedError(Exception):
    """A stream that failed, as Locust's tables show it: outcome and stall class, nothing that varies."""

    def __repr__(self) -> str:
        # Locust shows the repr of an exception; the words are enough.
        return str(self)


class StreamUser(User):
    """A user that streams from the gateway under test. Subclass it and call `stream` in your tasks.

    Everything else (options, records, metrics, results) comes with importing `harness.load`.
    `scenario` labels the requests of a class of users.
    """

    abstract = True
    scenario = "default"
    protocol: str | None = None
    """What a class speaks that speaks but one protocol: where its arrivals and replayed requests belong."""

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        if getattr(environment, "harness", None) is None:
            raise UsageError(
                "the harness is not connected to this Locust environment: run it with locust or harness run, "
                "or call harness.swarm.attach(environment, host=…) before the runner starts"
            )
        number = self.run_now.next_user()
        settings = self.settings
        self.random = random.Random(f"{settings.seed}-{number}")
        self._key = settings.keys[number % len(settings.keys)] if settings.keys else None
        self._transport = HarnessTransport(settings.transport)
        self._back_off_until = 0.0
        self.planned: float | None = None  # the start of an open arrival, until a request takes it
        self.order: Order | None = None  # what the replayed log wants of it
        self._nonce: str | None = None  # of the conversation that is on
        self._keeps_answer = False
        self._answer = b""

    def start(self, group: Any) -> Any:
        """Start the user; under open arrivals it asks nothing itself, but offers its share of the rate."""
        if not self.settings.load.open:
            return super().start(group)
        self._state = LOCUST_STATE_WAITING  # whoever stops it may do so at once
        self._group = group
        self._greenlet = group.spawn(self.run_now.open_loop.offer, self)
        return self._greenlet

    @property
    def settings(self) -> Settings:
        """The settings of this user's scenario."""
        return self.run_now.settings_of(self.scenario)

    @property
    def run_now(self) -> Run:
        """The run that is on."""
        run: Run | None = self.environment.harness.run
        if run is None:
            raise UsageError("no run is on: the test was not started, or not allowed to")
        return run

    @property
    def base_url(self) -> str:
        """The gateway's URL, also where the host is ``sim``."""
        return self.run_now.settings.base_url

    def wait_time(self) -> float:
        """Return how long to think before the next task, seconds (``--think``)."""
        return self.random.uniform(*self.settings.think_s)

    def on_stop(self) -> None:
        """Close the connection that was kept alive."""
        self._transport.close()

    def stream(
        self,
        prompt: str | Prompt | list[dict[str, Any]] | None = None,
        *,
        protocol: str = "chat",
        model: str | None = None,
        max_tokens: int | None = None,
        extra_body: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        name: str | None = None,
    ) -> Attempt:
        """Ask *prompt* (one of the run's prompts if None), stream the answer, and return its record.

        *protocol* is ``chat``, ``responses`` or ``messages``. *model*, *max_tokens*, *extra_body* and
        *headers* override or extend the run's; *name* is the row in Locust's table (default: the
        model). A failed stream is a record too, not an exception: look at ``record.outcome``.
        Raises `UsageError` if the gateway has no such endpoint, no model is known for it, or the request
        cannot be written. Once the run is ending no new stream begins: the user stops here.
        """
        self._rest()
        run, settings, order, planned = self.run_now, self.settings, self.order, self.planned
        scheduled = monotonic() if planned is None else planned
        try:
            asked = self.prompt(order) if prompt is None else Prompt.of(prompt)
            if max_tokens is None:
                max_tokens = None if order is None else order.max_tokens
            if max_tokens is None and settings.answer_tokens is not None:
                max_tokens = settings.answer_tokens.draw(self.random)
            call = prepare(
                settings,
                protocol,
                asked,
                request=new_request_id(),
                key=self._key,
                nonce=self._nonce or self._new_nonce(),
                model=model or (None if order is None else order.model),
                max_tokens=max_tokens,
                extra_body=extra_body,
                headers=headers,
            )
        except UsageError:
            self._back_off()  # Locust starts the task again at once, and the answer would be the same
            raise
        if not run.may_begin():
            raise StopUser
        self.planned = self.order = None
        request = run.begin(call, self.scenario, scheduled, asked.messages if settings.save_content else None)
        request.leave = choose(settings.abandon, self.random)
        if planned is not None:
            run.arrived(run.labels(request), monotonic() - planned)
        attempt = 1
        while True:
            record = self._attempt(run, request, attempt, name or call.model)
            if record.retry.decision != "retry":
                return record
            self._wait_to_retry(run, request, record.retry.delay_s or 0.0)
            attempt += 1

    def converse(self, protocol: str) -> None:
        """Hold one conversation over *protocol*: as many turns as ``--turns`` says, thinking in between.

        Each turn quotes the answers before it. A turn that fails ends the conversation.
        """
        settings, order = self.settings, self.order
        turns = settings.turns.draw(self.random)
        if turns == 1:
            self.stream(protocol=protocol)
            return
        first = self.prompt(order)
        self._nonce, self._keeps_answer = self._new_nonce(), True
        try:
            messages = list(first.messages)
            for turn in range(turns):
                if not self.stream(Prompt(tuple(messages), first.shared), protocol=protocol).success:
                    return
                if turn + 1 < turns:
                    answer = {"role": "assistant", "content": text_of(protocol, self._answer) or "…"}
                    messages += [answer, *self.prompt(None).messages[first.shared :]]
                    self.wait()  # type: ignore[no-untyped-call]
        finally:
            self._nonce, self._keeps_answer, self._answer = None, False, b""

    def prompt(self, order: Order | None = None) -> Prompt:
        """Return what to ask next: the replayed log's, of the asked length, or one of the run's prompts."""
        settings = self.settings
        if order is not None and order.messages is not None:
            return Prompt.of(list(order.messages))
        tokens = None if order is None else order.prompt_tokens
        if tokens is None and settings.prompt_tokens is not None:
            tokens = settings.prompt_tokens.draw(self.random)
        asked = (
            self.random.choice(settings.prompts)
            if tokens is None
            else Prompt.of(words(max(1, tokens), self.random))
        )
        if settings.shared_prefixes:
            return asked.behind(self.random.choice(settings.shared_prefixes))
        return asked

    def _new_nonce(self) -> str | None:
        return f"{self.random.getrandbits(32):08x}" if self.settings.cache == "bust" else None

    def _attempt(self, run: Run, request: Request, attempt: int, name: str) -> Attempt:
        """Make one attempt; its record is taken whatever interrupts it."""
        settings, call = run.settings, request.call
        kept = bytearray() if settings.save_content or self._keeps_answer else None
        labels = run.labels(request)
        session = open_session(
            settings,
            call,
            on_gaps=lambda gaps: run.aggregate.gaps(labels, gaps),
            on_bytes=None if kept is None else _keeper(kept),
            on_headers=run.answered,
        )
        run.aggregate.attempt_started(labels, session)
        try:
            sink = None
            if request.leave is not None:
                sink = LeavingSession(session, request.leave, request.scheduled)
            perform(self._transport, call, attempt, session, sink)
        finally:
            if self._keeps_answer and kept is not None:
                self._answer = bytes(kept)
            saved = bytes(kept) if kept is not None and settings.save_content else None
            record = run.finish(request, attempt, session, labels, saved)
            self._report(record, name)
        return record

    def _wait_to_retry(self, run: Run, request: Request, delay_s: float) -> None:
        """Sleep before the next attempt. A stop ends the request at once, as aborted."""
        stopped = True
        try:
            if self._state == LOCUST_STATE_STOPPING:
                raise StopUser
            self._state = LOCUST_STATE_WAITING  # Locust may kill who waits, and lets finish who runs
            gevent.sleep(delay_s)
            self._state = LOCUST_STATE_RUNNING
            stopped = False
        finally:
            if stopped:
                run.aggregate.request_stopped(run.labels(request))

    def _report(self, record: Attempt, name: str) -> None:
        """Give Locust its row, and remember to go easy on a gateway that answered with nothing."""
        if record.outcome in CLIENT_ENDED:
            return  # neither success nor failure: counted in the summary, not in Locust's table
        if record.outcome in BACK_OFF and not self.settings.load.open:
            self._back_off()
        self.environment.events.request.fire(
            request_type=record.protocol,
            name=name,
            response_time=record.end_s * 1000.0,
            response_length=record.bytes,
            exception=None if record.success else StreamFailedError(_row_name(record)),
            context=self.context(),
            start_time=record.sent_at,
            url=None,
            record=record,
        )

    def _back_off(self) -> None:
        self._back_off_until = monotonic() + BACK_OFF_S

    def _rest(self) -> None:
        """Wait until the back-off is over; a user that was asked to stop leaves now."""
        while self._state != LOCUST_STATE_STOPPING:
            left_s = self._back_off_until - monotonic()
            if left_s <= 0:
                return
            gevent.sleep(min(left_s, 0.1))
        raise StopUser


def _row_name(record: Attempt) -> str:
    name = failure_name(record)
    return f"{name} {record.status}" if record.outcome == "http_error" else name


def _keeper(kept: bytearray) -> Callable[[bytes], None]:
    def keep(data: bytes) -> None:
        kept.extend(data[: KEPT_CONTENT_BYTES - len(kept)])

    return keep


class ChatUser(StreamUser):
    """Streams over OpenAI Chat Completions."""

    protocol = "chat"

    @task
    def chat(self) -> None:
        """Ask one prompt, or hold a conversation."""
        self.converse("chat")


class ResponsesUser(StreamUser):
    """Streams over OpenAI Responses."""

    protocol = "responses"

    @task
    def responses(self) -> None:
        """Ask one prompt, or hold a conversation."""
        self.converse("responses")


class MessagesUser(StreamUser):
    """Streams over Anthropic Messages."""

    protocol = "messages"

    @task
    def messages(self) -> None:
        """Ask one prompt, or hold a conversation."""
        self.converse("messages")


PROTOCOL_USERS: dict[str, type[StreamUser]] = {
    "chat": ChatUser,
    "responses": ResponsesUser,
    "messages": MessagesUser,
}

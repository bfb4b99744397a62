"""One attempt's life: bytes and times in, one outcome out. Never reads a clock.

The transport pushes (`connected`, `sent`, `headers`, `feed`, `end`); whoever drives it asks
`deadline` when to wake up and tells `expire` what time it is. A limit fires only there, and only
after the driver found nothing left to read, so a late wake-up never invents a stall.

All times are monotonic seconds; offsets in the record count from `t0`.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from harness.gateways import Keepalive, Limits
from harness.stream.ending import (
    NOT_STREAMS,
    SETTLED_BY_STREAM,
    outcome_of_end,
    outcome_of_terminal,
    transport_error,
)
from harness.stream.outcome import EndReason, Outcome, Phase
from harness.stream.stall import running
from harness.stream.timeline import COMMENT
from harness.stream.waits import BURST_EVENTS, BURST_S, LOT, NO_SIGNAL, JudgedStream
from harness.wire import errors
from harness.wire.grammar import Grammar
from harness.wire.signals import (
    BROKEN,
    ERROR,
    KEEPALIVE,
    PROGRESS,
    TERMINAL,
    ErrorFacts,
)  # fmt: skip
from harness.wire.sse import Comment, EmptyBlock, ErrorField, Event, Item, Overflow, SseParser

# A read that may hold events of a window wider than this cannot time its earlier ones: a gap or
# stall from them would blame the gateway for our own delay.
UNCERTAIN_S = 0.005

# An HTTP error's body is read up to here; more of it helps nobody.
ERROR_BODY_BYTES = 64 * 1024

_RARE: Final = KEEPALIVE | TERMINAL | ERROR | BROKEN


class Session(JudgedStream):
    """One HTTP exchange and, if the answer is one, its stream.

    `limits` and `keepalive` come from the gateway's profile; `terminator` says whether a whole
    answer without its terminator counts; with `on_stall` ``watch`` a hard stall is recorded and the
    stream runs on to its total limit. `on_gaps` receives the gaps in slices while the stream runs.

    What an ordinary event needs stands in the session itself, in slots, and not in the objects that keep the
    rest: with hundreds of streams open, whatever an event touches is cold, and a cache line costs 100 ns.
    """

    __slots__ = (
        "_closing", "_on_bytes", "_parser", "_reading", "_torn", "body", "bytes", "clock", "connect_s",
        "error", "grammar", "keepalive", "lag_max_s", "on_stall", "peer", "response_headers", "reused",
        "status", "terminal_at", "terminator", "tls_s",
    )  # fmt: skip

    def __init__(
        self,
        grammar: Grammar,
        limits: Limits,
        opened: float,
        *,
        keepalive: Keepalive | None = None,
        terminator: Literal["required", "optional"] = "required",
        on_stall: Literal["close", "watch"] = "close",
        on_gaps: Callable[[array[float]], None] | None = None,
        on_bytes: Callable[[bytes], None] | None = None,
    ) -> None:
        super().__init__(opened, limits, keepalive, on_gaps)
        self.grammar = grammar
        self.keepalive = keepalive
        self.terminator = terminator
        self.on_stall = on_stall
        self.clock: Literal["kernel", "user"] = "user"
        self.reused = False
        self.peer: str | None = None
        self.connect_s: float | None = None
        self.tls_s: float | None = None
        self.status: int | None = None
        self.response_headers: Mapping[str, str] = {}
        self.bytes = 0
        self.terminal_at: float | None = None
        self.lag_max_s: float | None = None
        self.error: ErrorFacts | None = None
        self.body = bytearray()  # of an answer that is no stream
        self._parser = SseParser()
        self._reading = True  # until what comes is no stream, or means nothing any more
        self._closing = False
        self._torn = False  # a comment stands inside the event that is being read
        self._on_bytes = on_bytes

    # What happens to the exchange, in order.

    def connected(
        self, t: float, *, connect_s: float | None, tls_s: float | None, peer: str | None, reused: bool
    ) -> None:
        """A connection is open; the durations are None for a reused one."""
        self.connect_s, self.tls_s, self.peer, self.reused = connect_s, tls_s, peer, reused

    def sent(self, t: float) -> None:
        """The request is about to be written: this is `t0`."""
        self.t0 = t
        self._warn(self.limits.connect.warn_s, self.opened, t)
        self._enter("before_headers")

    def headers(self, status: int, headers: Mapping[str, str], t: float) -> None:
        """The final answer's status and headers (names in lower case) are there."""
        if self.t0 is None:
            self.t0 = self.opened
        self.status, self.response_headers = status, headers
        self.headers_at = t
        self._warn(self.limits.headers.warn_s, self.t0, t)
        self._enter("before_first_byte")
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        if not 200 <= status < 300:
            self._settle("http_error", t)
        elif media_type != "text/event-stream":
            self._settle("not_a_stream", t)
            self.violation("http.bad_content_type")
        self._reading = self.outcome is None

    def feed(self, data: bytes, t: float, earliest: float | None = None) -> None:
        """Take the body bytes of one socket read.

        They arrived between *earliest* (None: unknown, taken as *t*) and *t*; the last event of
        the read arrived at *t*.
        """
        if not self._reading:
            self._set_aside(data, t)
            return
        before = self.last_byte
        single = self._parser.single(data)
        if single is None or before is None:
            self._feed(data, t, t if earliest is None else earliest)
        else:  # nearly every read
            self.bytes += len(data)
            name, raw = single
            signal = self.grammar.event(name, raw)
            self.last_byte = t
            if signal == self._usual and t - before <= self._notable_s:
                self.last_progress = t
                lot = self._lot
                lot.append(t)
                if len(lot) >= LOT:
                    self._count_lot()
            else:
                self._alone(signal, t, before, Event(name, raw, ""))
        if self._on_bytes is not None:
            self._on_bytes(data)

    def _alone(self, signal: int, t: float, before: float, event: Event) -> None:
        """Take an event that was the whole of a read, but not like those before it."""
        self._count_lot()
        self._reads += 1
        self._events += 1
        if t - before > self._notable_silence_s:
            self._silence(before, t, [event])
        self._trace.add(t, signal)
        if signal & ~self._ordinary:
            self.first.setdefault("first_event", t)
            self._take(signal, t, before, exact=True)
            self._usual = NO_SIGNAL
        else:
            self._output(t, exact=True)
            self._usual = signal

    def _feed(self, data: bytes, t: float, earliest: float) -> None:
        """Take a read of any kind."""
        if not data:
            return
        self._count_lot()
        self._usual = NO_SIGNAL
        self._reads += 1
        self.bytes += len(data)
        before = self.last_byte
        items = self._parser.feed(data)
        # Only the last item of a late read has an exact moment; the others came since `earliest`.
        wide = t - earliest > UNCERTAIN_S and len(items) > 1
        if before is None:
            before = self._first_byte(t)
        else:
            until = max(before, earliest) if wide else t
            if until - before > self._notable_silence_s:
                self._silence(before, until, items)
        self.last_byte = t
        if items:
            self._take_all(items, t, before, t - earliest if wide else None)
        if (self._parser.pending_bytes > 0) is not self.pending:
            self.pending = not self.pending
            self.urgency += self.pending  # half the silence limit runs now

    def _take_all(self, items: list[Item], t: float, before: float, window_s: float | None) -> None:
        """Take the items of one read; all but the last may have come up to *window_s* before *t*."""
        began = before
        left = len(items)
        events = 0
        for item in items:
            left -= 1
            exact = window_s is None or not left
            if item.__class__ is Event:
                events += 1
                signal = self.grammar.event(item.type, item.raw)
            else:
                signal = self._aside(item, t, before, exact)
                if signal == NO_SIGNAL:
                    continue
            self._trace.add(t, signal)
            if not exact:
                self.uncertainties.append(window_s or 0.0)
            self._take(signal, t, before, exact=exact)
            if not self._reading:
                break  # whatever else came with it means nothing any more
            before = t
        if events:
            if not self._events:
                self.first["first_event"] = t
            self._events += events
            if events > BURST_EVENTS and window_s is None and self.outcome is None:
                self._soft("burst", BURST_S, began, t)
            if self._torn:
                self._torn = self._parser.pending_bytes > 0

    def _take(self, signal: int, t: float, before: float, *, exact: bool) -> None:
        """Take what one event or comment meant."""
        if signal & PROGRESS:
            if signal & ~self.firsts.seen:
                self._firsts(signal, t, 0.0 if exact else self.uncertainties[-1])
            self._output(t, exact=exact)
            if self.stalls.watched:
                self._stall_over(t)
        if signal & _RARE:
            self._rare(signal, t, before, exact)

    def end(self, reason: EndReason, t: float, detail: str = "") -> None:
        """The exchange is over. *detail* is one line for the user. Later calls are ignored."""
        if self.ended_at is not None:
            return
        self.ended_at = t
        self._reading = False
        self._count_lot()
        if self.outcome is None:
            self._last_silence(t)
            self._open_gap(t)
            self.outcome = self._judge_end(reason, detail)
        elif reason in ("cut", "bad_http") and self.outcome in SETTLED_BY_STREAM:
            self.violation("http.cut_after_end")
        if self.stalls.watched:
            self._stall_over(t)
        if self.outcome in NOT_STREAMS:
            media_type = self.response_headers.get("content-type", "")
            self.error = errors.from_http(self.status or 0, bytes(self.body), media_type)
        self._burst()
        if self.outcome != "stalled" and self.t0 is not None:
            self.phase = "after_terminal"  # whatever the end was
            self._warn(self.limits.total.warn_s, self.t0, t)
        self._flush_gaps()
        self.pace.release()

    # Limits.

    def deadline(self) -> float | None:
        """Return the next moment at which a limit may fire; None if none runs."""
        if self.ended_at is not None:
            return None
        if self._closing:
            return 0.0
        due = running(self, self.limits, only_total=self.stalls.watched)
        return due[0].at if due else None

    def expire(self, now: float) -> bool:
        """Let the limits that are due fire; the caller has just found nothing to read.

        Returns true when the connection has to be closed (then call ``end("closed", now)``).
        """
        if self.ended_at is not None or self._closing:
            return True
        due = running(self, self.limits, only_total=self.stalls.watched)
        if not due or due[0].at > now:
            return False
        first = due[0]
        limit = first.rule.limit
        stalls = self.stalls
        if limit == "close":
            if self.outcome not in NOT_STREAMS:
                self._soft("post_terminal_hang", first.limit_s, first.began, now)
            self._close_now()
            return True
        if not stalls.watched:
            stalls.begin_hard(
                self, first, now, watch=self.on_stall == "watch" and limit not in ("connect", "total")
            )
            if stalls.watched:
                self._count_lot()
                self._ordinary, self._usual = 0, NO_SIGNAL  # the next output, whatever it is, ends the stall
                return False
        self._last_silence(now)
        stalls.end_hard(self, now, fatal=True)
        self.outcome = "stalled"
        self._close_now()
        return True

    def violation(self, rule: str) -> None:
        """Count one breach of *rule*; it never changes the outcome."""
        self.grammar.facts.violate(rule)

    def lag(self, lag_s: float) -> None:
        """Note how late a read came after its bytes."""
        if self.lag_max_s is None or lag_s > self.lag_max_s:
            self.lag_max_s = lag_s

    def timeline(self) -> dict[str, Any]:
        """Return times and kinds of all events and comments, bounded, without text."""
        return self.trace.as_dict(self.zero)

    # Helpers of the above.

    def _first_byte(self, t: float) -> float:
        self.first_byte = t
        if self.headers_at is not None:
            self.pace.first_byte(t, self.headers_at)
            self._warn(self.limits.first_byte.warn_s, self.headers_at, t)
        self._enter("before_first_token")
        return t if self.headers_at is None else self.headers_at

    def _enter(self, phase: Phase) -> None:
        self.phase = phase
        self.urgency += 1

    def _settle(self, outcome: Outcome, t: float) -> None:
        """The outcome is decided; the connection may stay open up to the `close` limit."""
        self.outcome = outcome
        self.settled = t
        self._enter("after_terminal")

    def _close_now(self) -> None:
        self._closing = True
        self._reading = False
        self.urgency += 1

    def _firsts(self, signal: int, t: float, window_s: float) -> None:
        if self.firsts.note(signal, t) and self.phase == "before_first_token":
            self.first_token_window_s = window_s
            self._warn(self.limits.first_token.warn_s, self.zero, t)
            self._enter("mid_stream")
        if not self.stalls.watched:
            self._ordinary = self.firsts.seen

    def _finish(self, signal: int, t: float) -> None:
        facts = self.grammar.facts
        if signal & BROKEN:
            if self._torn:
                self.violation("sse.split_by_comment")
            self.error = ErrorFacts("stream", "bad_data", None, facts.broken or "", True, "data.broken")
            self._settle("protocol_error", t)
            self._close_now()
            return
        self._last_silence(t)
        self._open_gap(t)
        if self.stalls.watched:
            self._stall_over(t)
        if signal & ERROR:
            self.error = facts.error
            self._settle("error_event", t)
            return
        self.terminal_at = t
        self._settle(outcome_of_terminal(facts, needs_finish=self.grammar.prefix == "chat"), t)

    def _aside(self, item: Item, t: float, before: float, exact: bool) -> int:
        """Take what is no event; returns its signal, `COMMENT`, or `NO_SIGNAL` to book."""
        if isinstance(item, Comment):
            self._torn = item.inside
            self.pace.comment(item, t, before, self._exactly(exact), self.headers_at)
            return COMMENT
        if isinstance(item, EmptyBlock):
            return self.grammar.block(item) or NO_SIGNAL
        if isinstance(item, ErrorField):
            self.violation("sse.error_field")
        elif isinstance(item, Overflow):
            if self.outcome is None:
                message = f"an event grew over {item.limit_bytes} bytes"
                self.error = ErrorFacts("stream", "event_too_large", None, message, True, "sse.overflow")
                self._settle("protocol_error", t)
            self._close_now()
        return NO_SIGNAL

    def _rare(self, signal: int, t: float, before: float, exact: bool) -> None:
        if signal & KEEPALIVE:
            self.pace.ping(t, before, self._exactly(exact), self.headers_at)
        elif self.outcome is None:
            self._finish(signal, t)

    def _exactly(self, exact: bool) -> bool:
        """Whether a keepalive's interval counts: after the end nothing is promised any more."""
        return exact and self.outcome is None

    def _set_aside(self, data: bytes, t: float) -> None:
        """Count bytes that are no stream, or no longer; of an error's body, keep the beginning."""
        if self.ended_at is not None or not data:
            return
        self._reads += 1
        self.bytes += len(data)
        if self.first_byte is None:
            self.first_byte = t
        self.last_byte = t
        if self.outcome not in NOT_STREAMS:
            return
        self.body += data[: ERROR_BODY_BYTES - len(self.body)]
        if len(self.body) >= ERROR_BODY_BYTES:
            self._close_now()

    def _judge_end(self, reason: EndReason, detail: str) -> Outcome:
        if reason == "eof" and self.status is not None:
            self.grammar.end_of_body()
            if self._parser.pending_bytes:
                self.violation("sse.unfinished_event")
        outcome = outcome_of_end(reason, self.status, self.grammar.facts, self.terminator)
        self.error = transport_error(outcome, reason, detail)
        return outcome

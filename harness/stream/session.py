"""One attempt's life: bytes and times in, one outcome out. Never reads a clock.

The transport pushes (`connected`, `sent`, `headers`, `feed`, `end`); whoever drives it asks
`deadline` when to wake up and tells `expire` what time it is. A limit fires only there, and only
after the driver found nothing left to read, so a late wake-up never invents a stall.

All times are monotonic seconds; offsets in the record count from `t0`.
"""

from __future__ import annotations

import math
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
from harness.stream.firsts import Firsts
from harness.stream.outcome import EndReason, Outcome, Phase
from harness.stream.pace import Pace
from harness.stream.stall import Clocks, StallBook, running
from harness.stream.timeline import BOUND, COMMENT, Timeline
from harness.stream.view import OpenStream
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

# "Streaming" that comes at once is a proxy that buffers: more than this many events in one read, or
# a whole answer of more tokens than this within BURST_S.
BURST_EVENTS = 20
BURST_S = 0.050

GAPS_PER_FLUSH = 256

_NOTHING: Final = -1
_RARE: Final = KEEPALIVE | TERMINAL | ERROR | BROKEN


class Session(OpenStream):
    """One HTTP exchange and, if the answer is one, its stream.

    `limits` and `keepalive` come from the gateway's profile; `terminator` says whether a whole
    answer without its terminator counts; with `on_stall` ``watch`` a hard stall is recorded and the
    stream runs on to its total limit. `on_gaps` receives the gaps in slices while the stream runs.
    """

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
        self.grammar = grammar
        self.limits = limits
        self.keepalive = keepalive
        self.terminator = terminator
        self.on_stall = on_stall
        self.clocks = Clocks(opened)
        self.pace = Pace(keepalive, self._overdue)
        self.trace = Timeline()
        self.urgency = 0
        self.clock: Literal["kernel", "user"] = "user"
        self.reused = False
        self.peer: str | None = None
        self.connect_s: float | None = None
        self.tls_s: float | None = None
        self.status: int | None = None
        self.response_headers: Mapping[str, str] = {}
        self.firsts = Firsts()
        self.first = self.firsts.moments
        self.events = self.bytes = self.reads = self.progress_count = 0
        self.terminal_at: float | None = None
        self.ended_at: float | None = None
        self.lag_max_s: float | None = None
        self.uncertainties: list[float] = []
        self.outcome: Outcome | None = None
        self.stalls = StallBook(self.clocks)
        self.error: ErrorFacts | None = None
        self.body = bytearray()  # of an answer that is no stream
        self._parser = SseParser()
        self._parse, self._understand = self._parser.feed, grammar.event
        self._slow_s = math.inf if limits.progress.warn_s is None else limits.progress.warn_s
        # From here on a silence means something: waiting, a promise, a warning.
        self._hush_s = min(self.pace.floor_s, limits.silence.warn_s or math.inf)
        self._last_exact: float | None = None
        self._reading = True  # until what comes is no stream, or means nothing any more
        self._closing = False
        self._torn = False  # a comment stands inside the event that is being read
        self._add_moment, self._add_code = self.trace.moments.append, self.trace.codes.append
        self._on_gaps = on_gaps
        self._on_bytes = on_bytes
        self._flushed = self._unflushed = 0

    # What happens to the exchange, in order.

    def connected(
        self, t: float, *, connect_s: float | None, tls_s: float | None, peer: str | None, reused: bool
    ) -> None:
        """A connection is open; the durations are None for a reused one."""
        self.connect_s, self.tls_s, self.peer, self.reused = connect_s, tls_s, peer, reused

    def sent(self, t: float) -> None:
        """The request is about to be written: this is `t0`."""
        self.clocks.t0 = t
        self._warn(self.limits.connect.warn_s, self.clocks.opened, t)
        self._enter("before_headers")

    def headers(self, status: int, headers: Mapping[str, str], t: float) -> None:
        """The final answer's status and headers (names in lower case) are there."""
        clocks = self.clocks
        if clocks.t0 is None:
            clocks.t0 = clocks.opened
        self.status, self.response_headers = status, headers
        clocks.headers = t
        self._warn(self.limits.headers.warn_s, clocks.t0, t)
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
        if self.ended_at is not None or not data:
            return
        clocks = self.clocks
        self.reads += 1
        self.bytes += len(data)
        if not self._reading:
            self._keep_body(data, t)
            return
        before = clocks.last_byte
        items = self._parse(data)
        if earliest is None:
            earliest = t
        # Only the last item of a late read has an exact moment; the others came since `earliest`.
        wide = t - earliest > UNCERTAIN_S and len(items) > 1
        if before is None:
            before = self._first_byte(t)
        elif self.outcome is None:
            until = max(before, earliest) if wide else t
            silent_s = until - before
            pace = self.pace
            if silent_s > self._hush_s or silent_s > pace.silence_max_s:
                self._silence(before, until, items)
            else:  # as nearly every read: a method call less
                pace.covered = False
        clocks.last_byte = t
        if items:
            self._take(items, t, before, t - earliest if wide else None)
        if (self._parser.pending_bytes > 0) is not clocks.pending:
            clocks.pending = not clocks.pending
            self.urgency += clocks.pending  # half the silence limit runs now
        if self._on_bytes is not None:
            self._on_bytes(data)

    def _take(self, items: list[Item], t: float, before: float, window_s: float | None) -> None:
        """Take the items of one read; all but the last may have come up to *window_s* before *t*."""
        began = before
        left = len(items)
        events = 0
        for item in items:
            left -= 1
            exact = window_s is None or not left
            if item.__class__ is Event:
                events += 1
                signal = self._understand(item.type, item.raw)
            else:
                signal = self._aside(item, t, before, exact)
                if signal == _NOTHING:
                    continue
            self._add_moment(t)
            self._add_code(signal)
            if not exact:
                self.uncertainties.append(window_s or 0.0)
            if signal & PROGRESS:
                self._progress(signal, t, exact)
            if signal & _RARE:
                self._rare(signal, t, before, exact)
                if not self._reading:
                    break  # whatever else came with it means nothing any more
            before = t
        if events:
            if not self.events:
                self.first["first_event"] = t
            self.events += events
            if events > BURST_EVENTS and window_s is None and self.outcome is None:
                self.stalls.add_soft("burst", BURST_S, began, t)
            if self._torn:
                self._torn = self._parser.pending_bytes > 0
        if len(self.trace.moments) >= BOUND:
            self.trace.shorten()

    def _silence(self, before: float, until: float, items: list[Item]) -> None:
        self.pace.silence(before, until, items)
        self._warn(self.limits.silence.warn_s, before, until)

    def _progress(self, signal: int, t: float, exact: bool) -> None:
        """Book one piece of output; its gap counts only between two moments that are exact."""
        if signal & ~self.firsts.seen:
            self._firsts(signal, t)
        self.progress_count += 1
        self.clocks.last_progress = t
        last = self._last_exact
        if not exact:
            self._last_exact = None
        else:
            self._last_exact = t
            if last is not None:
                pace = self.pace
                gap_s = t - last
                pace.gaps.append(gap_s)
                if gap_s > pace.gap_max_s:
                    pace.gap_max_s, pace.gap_max_at = gap_s, last
                if gap_s > self._slow_s:
                    self.stalls.add_soft("slow_progress", self._slow_s, last, t)
                self._unflushed += 1
                if self._unflushed >= GAPS_PER_FLUSH:
                    self._flush_gaps()
        if self.stalls.watched:
            self._stall_over(t)

    def end(self, reason: EndReason, t: float, detail: str = "") -> None:
        """The exchange is over. *detail* is one line for the user. Later calls are ignored."""
        if self.ended_at is not None:
            return
        self.ended_at = t
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
        if self.outcome != "stalled" and self.clocks.t0 is not None:
            self.clocks.phase = "after_terminal"  # whatever the end was
            self._warn(self.limits.total.warn_s, self.clocks.t0, t)
        self._flush_gaps()

    # Limits.

    def deadline(self) -> float | None:
        """Return the next moment at which a limit may fire; None if none runs."""
        if self.ended_at is not None:
            return None
        if self._closing:
            return 0.0
        due = running(self.clocks, self.limits, only_total=self.stalls.watched)
        return due[0].at if due else None

    def expire(self, now: float) -> bool:
        """Let the limits that are due fire; the caller has just found nothing to read.

        Returns true when the connection has to be closed (then call ``end("closed", now)``).
        """
        if self.ended_at is not None or self._closing:
            return True
        due = running(self.clocks, self.limits, only_total=self.stalls.watched)
        if not due or due[0].at > now:
            return False
        first = due[0]
        limit = first.rule.limit
        stalls = self.stalls
        if limit == "close":
            if self.outcome not in NOT_STREAMS:
                stalls.add_soft("post_terminal_hang", first.limit_s, first.began, now)
            self._close_now()
            return True
        if not stalls.watched:
            stalls.begin_hard(
                first, now, watch=self.on_stall == "watch" and limit not in ("connect", "total")
            )
            if stalls.watched:
                return False
        self._last_silence(now)
        stalls.end_hard(now, fatal=True)
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
        return self.trace.as_dict(self.clocks.zero)

    # Helpers of the above.

    def _first_byte(self, t: float) -> float:
        clocks = self.clocks
        clocks.first_byte = t
        if clocks.headers is not None:
            self.pace.first_byte(t, clocks.headers)
            self._warn(self.limits.first_byte.warn_s, clocks.headers, t)
        self._enter("before_first_token")
        return t if clocks.headers is None else clocks.headers

    def _enter(self, phase: Phase) -> None:
        self.clocks.phase = phase
        self.urgency += 1

    def _settle(self, outcome: Outcome, t: float) -> None:
        """The outcome is decided; the connection may stay open up to the `close` limit."""
        self.outcome = outcome
        self.clocks.settled = t
        self._enter("after_terminal")

    def _close_now(self) -> None:
        self._closing = True
        self._reading = False
        self.urgency += 1

    def _firsts(self, signal: int, t: float) -> None:
        if self.firsts.note(signal, t) and self.clocks.phase == "before_first_token":
            self._warn(self.limits.first_token.warn_s, self.clocks.zero, t)
            self._enter("mid_stream")

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
        """Take what is no event; returns its signal, `COMMENT`, or `_NOTHING` to book."""
        if isinstance(item, Comment):
            self._torn = item.inside
            self.pace.comment(item, t, before, self._exactly(exact), self.clocks.headers)
            return COMMENT
        if isinstance(item, EmptyBlock):
            return self.grammar.block(item) or _NOTHING
        if isinstance(item, ErrorField):
            self.violation("sse.error_field")
        elif isinstance(item, Overflow):
            if self.outcome is None:
                message = f"an event grew over {item.limit_bytes} bytes"
                self.error = ErrorFacts("stream", "event_too_large", None, message, True, "sse.overflow")
                self._settle("protocol_error", t)
            self._close_now()
        return _NOTHING

    def _rare(self, signal: int, t: float, before: float, exact: bool) -> None:
        if signal & KEEPALIVE:
            self.pace.ping(t, before, self._exactly(exact), self.clocks.headers)
        elif self.outcome is None:
            self._finish(signal, t)

    def _exactly(self, exact: bool) -> bool:
        """Whether a keepalive's interval counts: after the end nothing is promised any more."""
        return exact and self.outcome is None

    def _keep_body(self, data: bytes, t: float) -> None:
        clocks = self.clocks
        if clocks.first_byte is None:
            clocks.first_byte = t
        clocks.last_byte = t
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

    def _stall_over(self, t: float) -> None:
        """A watched stall ended: by output (it was thinking after all), or with the stream."""
        self.stalls.end_hard(t, fatal=False)
        self.urgency += 1  # all limits run again

    def _overdue(
        self, severity: Literal["late", "violation"], limit_s: float, began: float, ended: float
    ) -> None:
        self.stalls.add_soft(f"keepalive_{severity}", limit_s, began, ended)

    def _warn(self, limit_s: float | None, began: float, ended: float) -> None:
        if limit_s is not None and ended - began > limit_s:
            self.stalls.add_soft("slow_progress", limit_s, began, ended)

    def _open_gap(self, t: float) -> None:
        """A gap that output did not end, but the stream did, was slow all the same."""
        clocks = self.clocks
        if clocks.phase == "mid_stream" and self._last_exact is not None:
            self._warn(self.limits.progress.warn_s, self._last_exact, t)
        elif clocks.phase != "connect" and "first_token" not in self.first and clocks.settled is None:
            self._warn(self.limits.first_token.warn_s, clocks.zero, t)

    def _last_silence(self, t: float) -> None:
        """Judge the silence and the keepalive interval that end here without a byte to end them."""
        clocks = self.clocks
        if clocks.headers is not None:
            self.pace.closing(t, clocks.last_byte, clocks.headers)

    def _burst(self) -> None:
        """Judge whether a whole answer came at once."""
        first, last = self.clocks.first_byte, self.clocks.last_progress
        if first is None or last is None or "burst" in self.stalls.counts or self.uncertainties:
            return
        if self.progress_count > BURST_EVENTS and last - first <= BURST_S:
            self.stalls.add_soft("burst", BURST_S, first, last)

    def _flush_gaps(self) -> None:
        if self._on_gaps is not None and len(self.pace.gaps) > self._flushed:
            self._on_gaps(self.pace.gaps[self._flushed :])
            self._flushed = len(self.pace.gaps)
        self._unflushed = 0

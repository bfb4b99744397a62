"""The toolbox that faults are written with: one request's answer, told in timed steps.

The order of telling is `opening`, `tokens` (any number of times), `closing`; a fault leaves out, delays,
spoils or replaces what it is about. Knows no socket and no clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.gateways import Limits, Profile
from harness.sim.dialogues import Dialogue, ErrorFacts, Usage
from harness.sim.heads import answer
from harness.sim.pace import Schedule
from harness.sim.plan import CONTENT, EVENT, HEAD, PROGRESS, RAW, TERMINAL, Plan
from harness.sim.vendor import http_error, official_error
from harness.sim.verdict import told_wait_s
from harness.sim.words import PIECES_JSON, escaped, said, tool_arguments

_VISIBLE = ("content", "refusal")


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a fault may want to know about its request."""

    protocol: str
    profile: Profile
    """Already scaled: every duration in it is what the clock will show."""
    limits: Limits
    """Those of the model that was asked for."""
    attempt: int
    """Counts from 1."""
    wall_s: float
    """Unix time of the request."""
    own_headers: Mapping[str, str]
    """What every answer of this server carries."""
    request_id: str


class Script:
    """One answer in the making."""

    def __init__(
        self, at: Circumstances, dialogue: Dialogue, schedule: Schedule, count: int, finish: str = "stop"
    ) -> None:
        self.circumstances = at
        self.dialogue = dialogue
        self.count = count
        """Tokens that a healthy answer has."""
        self.finish = finish
        """How a healthy answer ends."""
        self.told_wait_s: float | None = None
        """The wait that a refusal asked for."""
        self._schedule = schedule
        self._told = 0
        self._reasoned = 0
        self._unseen = 0
        self._odd = 0
        self._channel = ""
        self._channel_from = 0
        self._pieces: list[str] = []

    @property
    def half(self) -> int:
        """Where faults in the middle of a stream strike: after this many tokens, at least one."""
        return max(1, self.count // 2)

    @property
    def next_s(self) -> float:
        """When the next token is due."""
        return self._schedule.due_s(self._told)

    def pause(self, seconds: float) -> None:
        """Move all that has not been told yet by *seconds*."""
        self._schedule.shift_s += seconds

    def opening(self, at_s: float = 0.0, more: bytes = b"") -> Plan:
        """Answer 200 with a stream, and say what comes before the model has said anything.

        *more*: further lines of the head, each with its CR LF.
        """
        yield at_s, HEAD, more
        yield from self.lifecycle(at_s)

    def lifecycle(self, at_s: float = 0.0) -> Plan:
        """Say what comes before the model has said anything."""
        for event in self.dialogue.lifecycle():
            yield at_s, EVENT, event

    def whole(self) -> Plan:
        """Tell a healthy answer."""
        yield from self.opening()
        yield from self.tokens()
        yield from self.closing()

    def apart(self, piece: bytes, channel: str = "content") -> bytes:
        """Return a token event with *piece* (escaped for JSON), which no count and no text will know of.

        For things that are no tokens inside an answer whose *channel* is open.
        """
        return self.dialogue.renderer(channel)(piece)

    def odd_token(self, piece: bytes) -> Plan:
        """Tell a token of text that is not one of the usual ones; *piece* is escaped for JSON."""
        self._odd += 1
        yield self.next_s, CONTENT, self.apart(piece)

    def open_channel(self, channel: str) -> Plan:
        """Open *channel* when its first token is due, unless it is open."""
        if channel == self._channel:
            return
        yield from self.close_channel()
        self._channel, self._channel_from = channel, self._told
        due = self.next_s
        kind = PROGRESS if channel == "tool" and self.dialogue.naming_a_tool_is_progress else EVENT
        for event in self.dialogue.begin(channel):
            yield due, kind, event

    def tokens(self, stop: int | None = None, channel: str = "content") -> Plan:
        """Tell the next tokens, up to number *stop* (exclusive; default: all)."""
        stop = self.count if stop is None else stop
        start = self._told
        if stop <= start:
            return
        yield from self.open_channel(channel)
        if channel == "tool":
            self._pieces = tool_arguments(stop - start)
        render = self.dialogue.renderer(channel)
        due_s = self._schedule.due_s
        kind = CONTENT if channel in _VISIBLE else PROGRESS
        pieces = PIECES_JSON if channel != "tool" else tuple(escaped(piece) for piece in self._pieces)
        number, offset = len(pieces), self._channel_from if channel == "tool" else 0
        if channel == "reasoning":
            self._reasoned += stop - start
        self._told = stop
        for k in range(start, stop):
            yield due_s(k), kind, render(pieces[(k - offset) % number])

    def close_channel(self) -> Plan:
        """End the open channel, if there is one, as the protocol asks."""
        if not self._channel:
            return
        text = "".join(self._pieces) if self._channel == "tool" else said(self._channel_from, self._told)
        due = self._schedule.due_s(self._told)
        for event in self.dialogue.finish(self._channel, text):
            yield due, EVENT, event
        self._channel = ""

    def closing(self, finish: str | None = None, usage: Usage | bool | None = True) -> Plan:
        """End the answer one gap after its last token. *usage*: True for the true counts, None for none."""
        yield from self.close_channel()
        due = self._schedule.due_s(self._told)
        counts = self.usage() if isinstance(usage, bool) else usage
        before, terminal = self.dialogue.ending(finish or self.finish, counts)
        for event in before:
            yield due, EVENT, event
        for event in terminal:
            yield due, TERMINAL, event

    def before_terminal(self) -> Plan:
        """As `closing`, but without the terminal event."""
        for step in self.closing():
            if step[1] != TERMINAL:
                yield step

    def usage(self) -> Usage:
        """Return the true counts up to now."""
        output = self._told + self._odd + self._unseen
        return Usage(self.dialogue.usage_in, output, self._reasoned + self._unseen)

    def reasons_unseen(self, tokens: int) -> None:
        """Count *tokens* of reasoning that the gateway does not send."""
        self._unseen += tokens

    def error_facts(self) -> ErrorFacts:
        """Return what this gateway says when generation breaks off."""
        at = self.circumstances
        promised = at.profile.errors.get(at.protocol)
        if promised is None:
            return official_error(at.protocol)
        return ErrorFacts(promised.type, promised.message, promised.code, promised.shape)

    def breaks_off(self, facts: ErrorFacts | None = None) -> Plan:
        """Say the gateway's own in-stream error; nothing comes after it."""
        yield self.next_s, TERMINAL, self.dialogue.error(facts or self.error_facts())

    def refuses(
        self, status: int, message: str = "", code: str | None = None, kind: str | None = None, **headers: str
    ) -> Plan:
        """Answer with an HTTP error in the gateway's shape. Underscores in *headers* are dashes."""
        at = self.circumstances
        body = http_error(at.profile.name, at.protocol, status, at.request_id, message, code, kind)
        extra = {name.replace("_", "-"): value for name, value in headers.items()}
        self.told_wait_s = told_wait_s(extra, at.wall_s)
        yield 0.0, RAW, answer(status, {**at.own_headers, **extra}, body)

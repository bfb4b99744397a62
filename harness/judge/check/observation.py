"""What was seen: one attempt with its raw bytes, and all attempts of a check with ways to ask them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from harness.gateways import Profile
from harness.judge.check.raw import Block, read_blocks
from harness.judge.check.verdict import Seen, Verdict, excerpt
from harness.stream.record import Attempt

# Evidence is for a ticket: a few streams say as much as all of them.
_EVIDENCE_LINES = 5

# Streams that came to an end of their own, whatever it was worth.
ENDED = frozenset({"completed", "unterminated", "empty", "truncated"})

_TERMINALS = frozenset(
    {"response.completed", "response.incomplete", "response.failed", "message_stop", "error"}
)

Test = Callable[["Observation"], Seen | None]


@dataclass(frozen=True)
class Payload:
    """One event: its block, and the JSON object in its data (None if there is none)."""

    block: Block
    body: dict[str, Any] | None

    @property
    def type(self) -> str:
        """The ``type`` in its data."""
        return str((self.body or {}).get("type") or "")


@dataclass(frozen=True)
class Observation:
    """One attempt. `chunks` are its reads: offset from the request in seconds, bytes of the body."""

    situation: str
    protocol: str
    record: Attempt
    headers: Mapping[str, str] = field(default_factory=dict)
    chunks: tuple[tuple[float, bytes], ...] = ()
    request_body: bytes = b""
    url: str = ""

    @cached_property
    def body(self) -> bytes:
        """The whole body."""
        return b"".join(data for _, data in self.chunks)

    @cached_property
    def blocks(self) -> list[Block]:
        """Its blocks, comments included."""
        return read_blocks(self.chunks)

    @cached_property
    def events(self) -> list[Payload]:
        """Its events: whole blocks with data."""
        return [Payload(b, _object(data)) for b in self.blocks if b.whole and (data := b.data) is not None]

    @cached_property
    def payloads(self) -> list[tuple[Payload, dict[str, Any]]]:
        """Its events that hold a JSON object, each with the object, up to the terminal: the answer itself."""
        found = []
        for event in self.events:
            if (event.block.data or b"").startswith(b"[DONE]") and self.protocol == "chat":
                break
            if event.body is not None:
                found.append((event, event.body))
            if event.type in _TERMINALS:
                break
        return found

    @property
    def is_stream(self) -> bool:
        """Whether the answer was a stream at all."""
        return self.record.status == 200 and self.record.outcome not in ("http_error", "not_a_stream")

    @property
    def ended(self) -> bool:
        """Whether it is a stream that came to its own end without an error."""
        return self.record.outcome in ENDED

    @property
    def comments(self) -> list[tuple[float, bytes]]:
        """When each comment line came, and its bytes."""
        return [(line.at_s, line.text) for block in self.blocks for line in block.comments]

    @property
    def text(self) -> str:
        """The answer's text, put together from its deltas where the protocol has them."""
        return "".join(piece for _, piece in self.pieces)

    @property
    def pieces(self) -> list[tuple[float, str]]:
        """When each piece of text came, and the piece."""
        read = _TEXT[self.protocol]
        return [(e.block.at_s, piece) for e, body in self.payloads if (piece := read(body))]

    def utc(self, at_s: float = 0.0) -> str:
        """Return the moment *at_s* after the request as UTC with milliseconds."""
        moment = datetime.fromtimestamp((self.record.sent_at or self.record.scheduled_at) + at_s, UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    @property
    def ids(self) -> str:
        """The names under which both sides know this attempt."""
        theirs = self.record.server_request_id or self.record.response_id
        return f"{self.record.request}-{self.record.attempt}" + (f" (gateway: {theirs})" if theirs else "")

    def evidence(self, seen: Seen) -> str:
        """Return *seen* as one line for a ticket."""
        moment = f" at +{seen.at_s:.3f} s" if seen.at_s is not None else ""
        raw = f" | {excerpt(seen.raw)}" if seen.raw is not None else ""
        return f"{self.utc()} {self.protocol} {self.situation} {self.ids}: {seen.what}{moment}{raw}"


@dataclass(frozen=True)
class Case:
    """All that was seen of a gateway. `provoked`: its upstream does what it is told, the same each time."""

    profile: Profile
    observations: tuple[Observation, ...]
    provoked: bool = False
    simulated: bool = False

    def of(self, situations: Iterable[str], protocol: str | None = None) -> list[Observation]:
        """Return what was seen in *situations*, of all protocols or one."""
        wanted = set(situations)
        return [
            seen
            for seen in self.observations
            if seen.situation in wanted and protocol in (None, seen.protocol)
        ]

    def each(
        self, situations: Iterable[str], test: Test, *, protocol: str | None = None, missing: str = ""
    ) -> Verdict:
        """Apply *test* to every stream of *situations* and return what all of them say together.

        A stream of which *test* returns None says nothing. *missing* is the reason when none says anything.
        """
        return self.decide(self.of(situations, protocol), test, missing)

    def decide(self, streams: list[Observation], test: Test, missing: str = "") -> Verdict:
        """As `each`, for *streams* chosen already."""
        seen = [(stream, what) for stream in streams if (what := test(stream)) is not None]
        if not seen:
            return Verdict("not observed", missing or _why_nothing(streams), tuple(_told(streams)))
        bad = [(stream, what) for stream, what in seen if not what.ok]
        if bad:
            reason = f"{len(bad)} of {len(seen)} streams: {bad[0][1].what}"
            return Verdict("broken", reason, tuple(s.evidence(w) for s, w in bad[:_EVIDENCE_LINES]))
        reason = f"{seen[0][1].what}" + (f" ({len(seen)} streams)" if len(seen) > 1 else "")
        return Verdict("kept", reason, tuple(s.evidence(w) for s, w in seen[:_EVIDENCE_LINES]))


def _why_nothing(streams: list[Observation]) -> str:
    if not streams:
        return "nothing was asked that could show it"
    outcomes = Counter(stream.record.outcome for stream in streams)
    told = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    return f"nothing in {len(streams)} streams showed it ({told})"


def _told(streams: list[Observation]) -> list[str]:
    failed = [s for s in streams if s.record.outcome != "completed"][:_EVIDENCE_LINES]
    return [
        s.evidence(Seen(False, s.record.outcome + (f": {s.record.error.message}" if s.record.error else "")))
        for s in failed
    ]


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(data.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def choice_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``choices[0]`` of a chunk; ``{}`` where it has none."""
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def inner(body: Mapping[str, Any], *path: str) -> Any:
    """Return the value at *path* inside *body*; None where it does not lead anywhere."""
    found: Any = body
    for key in path:
        if not isinstance(found, Mapping):
            return None
        found = found.get(key)
    return found


def _chat_text(body: dict[str, Any]) -> str:
    text = inner(choice_of(body), "delta", "content")
    return text if isinstance(text, str) else ""


def _responses_text(body: dict[str, Any]) -> str:
    return str(body.get("delta") or "") if body.get("type") == "response.output_text.delta" else ""


def _messages_text(body: dict[str, Any]) -> str:
    return str(inner(body, "delta", "text") or "") if body.get("type") == "content_block_delta" else ""


_TEXT: dict[str, Callable[[dict[str, Any]], str]] = {
    "chat": _chat_text,
    "responses": _responses_text,
    "messages": _messages_text,
}

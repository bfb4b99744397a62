"""What all three grammars share: JSON, error frames, ``[DONE]``, pings, and the text of a token.

A grammar takes dispatched events one by one and says what each meant (`harness.wire.signals`).
It never raises on what a server sent: bytes that are not the protocol set `Facts.broken`.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from harness.wire import errors
from harness.wire.signals import BROKEN, ERROR, KEEPALIVE, LIFECYCLE, TERMINAL, VISIBLE, Facts, Usage
from harness.wire.sse import EmptyBlock

_decode = msgspec.json.Decoder().decode

# Zero-width characters that relays send as fake signs of life (with U+2060, their modern successor).
_ZERO_WIDTH: Final = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff"))

# Event names that carry no content in any dialect seen so far.
PING_NAMES: Final = frozenset({"ping", "keepalive", "keep-alive", "keep_alive", "heartbeat"})

# Strings that are no JSON but end an error message worth reading: bounded before it is kept.
_EXCERPT: Final = 80


def text_signal(text: Any, channel: int) -> int:
    """Return what *text* means on *channel*: 0 if empty or no text, `KEEPALIVE` if only zero-width.

    Whitespace is progress without `VISIBLE`.
    """
    if not isinstance(text, str) or not text:
        return 0
    if text.isascii():
        return channel if text.isspace() else channel | VISIBLE
    if text[0] > "\u3000" and text[0] != "\ufeff":  # most non-ASCII tokens begin with a letter
        return channel | VISIBLE
    rest = text.translate(_ZERO_WIDTH)
    if not rest:
        return KEEPALIVE
    return channel if rest.isspace() else channel | VISIBLE


class Grammar:
    """One stream's state machine. `prefix` names its violations: ``chat.…``, ``resp.…``, ``msg.…``."""

    __slots__ = ("facts", "usage_requested")

    prefix = ""
    after_terminal_rule = ""

    def __init__(self, *, usage_requested: bool = False) -> None:
        self.facts = Facts()
        self.usage_requested = usage_requested

    def event(self, name: str, raw: bytes) -> int:
        """Take one dispatched event and return its signal. *name* is ``message`` where it had none."""
        facts = self.facts
        if facts.terminal or facts.error is not None:
            return self._after_end(name, raw)
        if not raw:
            return self._no_data(name)
        if raw[0] == 91 and raw.startswith(b"[DONE]"):
            return self.done()
        try:
            body = _decode(raw)
        except (msgspec.DecodeError, RecursionError):
            if raw.isspace():
                return self._no_data(name)
            body = _decode_leniently(raw)
        if body.__class__ is not dict:
            return self._no_object(name, raw, body)
        if body.get("error"):
            return self.error(body, name)
        return self.chunk(name, body)

    def chunk(self, name: str, body: dict[str, Any]) -> int:
        """Take one JSON object that is no error frame and return its signal."""
        raise AssertionError(f"{type(self).__name__} defines no chunk()")

    def done(self) -> int:
        """Take a ``[DONE]``; in protocols that have none it is a violation and ends nothing."""
        self.facts.violate(f"{self.prefix}.unexpected_done")
        return LIFECYCLE

    def block(self, block: EmptyBlock) -> int:
        """Take a block that dispatched nothing: harmless here, fatal to decoders that trip over it."""
        self.facts.violate("sse.empty_event_hazard")
        if block.split:
            self.facts.violate("sse.split_by_comment")
        return KEEPALIVE if block.type in PING_NAMES else 0

    def _no_data(self, name: str) -> int:
        """Take an event without data: only its name can mean something."""
        self.facts.violate("sse.empty_event_hazard")
        if name == "error":
            return self.error({}, name, "event.error_empty")
        return KEEPALIVE if name in PING_NAMES else LIFECYCLE

    def end_of_body(self) -> None:
        """Note what is missing now that the body has ended."""

    def error(self, body: dict[str, Any], name: str, shape: str | None = None) -> int:
        """Take an error frame: it settles the stream."""
        if shape is None:
            nested = isinstance(body.get("error"), dict | str)
            shape = f"{'event' if name == 'error' else 'data'}.error{'' if nested else '_flat'}"
        self.facts.error = errors.from_object(body, shape)
        return ERROR

    def _no_object(self, name: str, raw: bytes, body: Any) -> int:
        text = raw[:_EXCERPT].decode("utf-8", "replace")
        if name == "error":
            message = body if isinstance(body, str) else raw.decode("utf-8", "replace")
            return self.error({"message": message}, name, "event.error_text")
        if name in PING_NAMES:
            return KEEPALIVE
        if name not in ("message", "") and not self.knows(name):
            self.facts.violate(f"{self.prefix}.unknown_event")
            return LIFECYCLE
        self.facts.broken = f"data is not a JSON object: {text}"
        return BROKEN

    def check_total(self, sent: dict[str, Any], usage: Usage) -> None:
        """Count a total that is not the sum of its parts."""
        total = as_int(sent.get("total_tokens"))
        if total is None or usage.input is None or usage.output is None:
            return
        if total != usage.input + usage.output:
            self.facts.violate(f"{self.prefix}.usage_total")

    def knows(self, name: str) -> bool:
        """Return whether *name* is an event of this protocol."""
        return False

    def _after_end(self, name: str, raw: bytes) -> int:
        """What follows the end is a violation, but for the ends of the end that gateways add."""
        if raw.startswith(b"[DONE]") and not self._done_counts_after_end():
            return TERMINAL
        if self.facts.error is not None and (name == "message_stop" or b'"message_stop"' in raw):
            return TERMINAL
        self.facts.violate(self.after_terminal_rule)
        return KEEPALIVE if name in PING_NAMES else LIFECYCLE

    def _done_counts_after_end(self) -> bool:
        return False


def _decode_leniently(raw: bytes) -> Any:
    """Decode JSON that only a strict decoder refuses, as the official SDKs do; None if it is no JSON.

    Malformed UTF-8, raw control characters, NaN among log probabilities, an emoji cut in two between
    two deltas, which leaves half a surrogate pair in each.
    """
    try:
        return json.loads(raw.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None


def looks_like_error(body: dict[str, Any]) -> str | None:
    """Return the shape of an error frame that has no ``error`` key, None if *body* is none.

    FastChat and SGLang say ``object: error``, FastChat's workers a number in ``error_code``, others
    only ``code`` (or an HTTP ``status``) and ``message`` where an event of the protocol should be.
    """
    if body.get("object") == "error":
        return "data.object_error"
    if body.get("error_code") and isinstance(body["error_code"], int | str):
        return "data.error_code"
    if not as_text(body.get("message")):
        return None
    for code in (body.get("code"), body.get("status"), body.get("status_code")):
        if (number := as_int(code)) is not None and 400 <= number < 600:
            return "data.error_flat"
    kind = as_text(body.get("type")).lower()
    if "error" in kind or (as_text(body.get("code")) and not kind):
        return "data.error_flat"
    return None


def as_int(value: Any) -> int | None:
    """Return *value* if it is a count; anything else is None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, float) and value.is_integer() else None


def overwrite(known: int | None, sent: Any) -> int | None:
    """Return the newer of two counts: they are cumulative, so they replace and never add."""
    count = as_int(sent)
    return known if count is None else count


def as_dict(value: Any) -> dict[str, Any]:
    """Return *value* if it is an object; gateways send null where one belongs, so that gives ``{}``."""
    return value if isinstance(value, dict) else {}


def as_text(value: Any) -> str:
    """Return *value* if it is text, else the empty string: lists and objects cannot be looked up."""
    return value if isinstance(value, str) else ""

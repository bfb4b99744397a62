"""Dialects: how the same answer is spelled, as accents of the renderer and as filters over a plan.

A filter sees every step of a stream, whatever the fault made of it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, replace

from harness.sim.dialogues import Accent
from harness.sim.plan import CONTENT, EVENT, LAST_BODY, PART, PROGRESS, TERMINAL, Plan, Step

Filter = Callable[[Plan], Plan]
Spelling = Callable[[bytes], bytes]

_PIECES = 8
_PIECE_GAP_S = 0.001
_GATHERED = 8
_WHOLE_EVENTS = (CONTENT, PROGRESS, EVENT, TERMINAL)


class DialectError(ValueError):
    """There is no such dialect; the message is one line for the user."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """Everything that makes one spelling."""

    accent: Accent
    filters: tuple[Filter, ...] = ()
    spellings: tuple[Spelling, ...] = ()
    """Applied to each piece of body, and to keepalives."""

    def apply(self, plan: Plan) -> Plan:
        """Return *plan* as this dialect spells it."""
        for change in self.filters:
            plan = change(plan)
        return _spell(plan, self.spell) if self.spellings else plan

    def spell(self, data: bytes) -> bytes:
        """Return *data* with this dialect's line ends and spaces."""
        for spelling in self.spellings:
            data = spelling(data)
        return data


def _spell(plan: Plan, spell: Spelling) -> Plan:
    for due, kind, data in plan:
        yield due, kind, spell(data) if kind <= LAST_BODY else data


def buffered_before_output(plan: Plan) -> Plan:
    """Hold every event back until the first output, as gateways do that may still switch upstreams."""
    held: list[Step] = []
    shown = False
    for step in plan:
        if not shown and step[1] == EVENT:
            held.append(step)
            continue
        if not shown and step[1] in (CONTENT, PROGRESS, TERMINAL):
            shown = True
            yield from ((step[0], kind, data) for _, kind, data in held)
        yield step
    if not shown:
        yield from held


def split_events(plan: Plan) -> Plan:
    """Send each event in several segments, a millisecond apart."""
    for due, kind, data in plan:
        if kind not in _WHOLE_EVENTS:
            yield due, kind, data
            continue
        size = max(1, -(-len(data) // _PIECES))
        starts = range(0, len(data), size)
        for number, start in enumerate(starts):
            last = start + size >= len(data)
            yield due + number * _PIECE_GAP_S, kind if last else PART, data[start : start + size]


def split_letters(plan: Plan) -> Plan:
    """Cut each event in the middle of its first letter of several bytes, if it has one."""
    for due, kind, data in plan:
        at = next((i for i, byte in enumerate(data) if byte >= 0xC0), None) if kind in _WHOLE_EVENTS else None
        if at is None:
            yield due, kind, data
        else:
            yield due, PART, data[: at + 1]
            yield due + _PIECE_GAP_S, kind, data[at + 1 :]


def gathered(plan: Plan) -> Plan:
    """Send several tokens in one segment: the earlier ones wait for the last."""
    waiting: list[Step] = []
    for step in plan:
        due = step[0]
        if step[1] in (CONTENT, PROGRESS):
            waiting.append(step)
            if len(waiting) < _GATHERED:
                continue
            step = waiting.pop()
        yield from ((due, kind, data) for _, kind, data in waiting)
        waiting.clear()
        yield step
    yield from waiting


def numbered(plan: Plan) -> Plan:
    """Put an `id:` on every event."""
    number = 0
    for due, kind, data in plan:
        if kind in _WHOLE_EVENTS and data:
            number += 1
            data = b"id: %d\n%b" % (number, data)
        yield due, kind, data


def retry_first(plan: Plan) -> Plan:
    """Begin with a reconnection time as a block of its own."""
    told = False
    for due, kind, data in plan:
        if kind <= LAST_BODY and not told:
            told = True
            yield due, EVENT, b"retry: 3000\n\n"
        yield due, kind, data


def crlf(data: bytes) -> bytes:
    """End lines with CR LF."""
    return data.replace(b"\n", b"\r\n")


def cr(data: bytes) -> bytes:
    """End lines with CR alone."""
    return data.replace(b"\n", b"\r")


def mixed_ends(data: bytes) -> bytes:
    """End field lines with CR LF and events with a lone LF more."""
    return data.replace(b"\n\n", b"\r\n\n")


def without_space(data: bytes) -> bytes:
    """Leave out the space after the field name."""
    lines = data.split(b"\n")
    return b"\n".join(
        line.replace(b": ", b":", 1) if line.startswith((b"data: ", b"event: ", b"id: ")) else line
        for line in lines
    )


_ACCENTS: dict[str, dict[str, bool]] = {
    "official": {},
    "abbreviated": {"abbreviated": True},
    "openai-only-errors": {"data_errors": True},
    "done-everywhere": {"done_everywhere": True},
}
_FILTERS: dict[str, Filter] = {
    "pre-output-buffered": buffered_before_output,
    "split": split_events,
    "split-utf8": split_letters,
    "gathered": gathered,
    "id": numbered,
    "retry": retry_first,
}
_SPELLINGS: dict[str, Spelling] = {
    "data-without-space": without_space,
    "mixed": mixed_ends,
    "crlf": crlf,
    "cr": cr,
}

NAMES: tuple[str, ...] = (*_ACCENTS, *_FILTERS, *_SPELLINGS)


def dialect(text: str, role_with_text: bool = False) -> Dialect:
    """Return the dialect that *text* names; several are joined by commas. Raises `DialectError`.

    *role_with_text*: the abbreviated Chat stream names the role together with the first text.
    """
    found = Dialect(Accent(role_with_text=role_with_text))
    for name in filter(None, (part.strip() for part in text.split(","))):
        if name in _ACCENTS:
            found = replace(found, accent=replace(found.accent, **_ACCENTS[name]))
        elif name in _FILTERS:
            found = replace(found, filters=(*found.filters, _FILTERS[name]))
        elif name in _SPELLINGS:
            found = replace(found, spellings=(*found.spellings, _SPELLINGS[name]))
        else:
            near = difflib.get_close_matches(name, NAMES, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise DialectError(
                f"unknown dialect {name!r}{hint}: use {', '.join(NAMES)}, or several joined by commas"
            )
    return found

"""The labels that every metric of a stream carries, and the bound on how many values a label may take.

Prometheus keeps a series per combination of label values for ever, so a value that a server chooses (an error
type, a status) must not be able to make new ones without end.
"""

from __future__ import annotations

from typing import NamedTuple

OTHER = "other"
NONE = "none"
_LONGEST = 64  # characters; a type that is longer is prose, not a name


class Labels(NamedTuple):
    """Whose numbers: the order is the order of `STREAM_LABELS`."""

    run: str
    protocol: str
    gateway: str
    scenario: str
    model: str


STREAM_LABELS: tuple[str, ...] = Labels._fields


class Vocabulary:
    """The first *limit* distinct values of a label; every later one is ``other``."""

    __slots__ = ("_known", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: set[str] = set()

    def fold(self, value: str | None) -> str:
        """Return *value* if it is known or there is room for it, else ``other``; ``none`` for no value."""
        if value is None or value == "":
            return NONE
        value = value[:_LONGEST]
        if value not in self._known:
            if len(self._known) >= self._limit:
                return OTHER
            self._known.add(value)
        return value

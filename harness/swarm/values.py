"""Values of options read one by one: what does not fit is a `UsageError` that names the option."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable
from typing import Any

from harness.gateways import DurationError, parse_duration
from harness.load.settings import UsageError
from harness.swarm.options import SEPARATOR

SECRET = "env:"

# Printable Latin-1: what HTTP can carry in a header, and a key is sent in one.
_SENDABLE = re.compile(r"[\t\x20-\x7e\xa0-\xff]*")


def duration(text: str, option: str, *, positive: bool = False) -> float:
    """Return the seconds in *text*; *option* names it in the error."""
    try:
        seconds = parse_duration(text)
    except DurationError as error:
        raise UsageError(f"{option}: {error}") from None
    if positive and seconds <= 0:
        raise UsageError(f"{option}: expected a duration above zero, got {text!r}")
    return seconds


def choice(value: str, choices: tuple[str, ...], option: str) -> Any:
    """Return *value* if it is one of *choices*: the web UI's form can send anything."""
    if value not in choices:
        raise UsageError(f"{option}: expected {' or '.join(choices)}, got {value!r}")
    return value


def at_least(value: int, least: int, option: str) -> int:
    """Return *value* if it is not below *least*."""
    if value < least:
        raise UsageError(f"{option}: expected a whole number of at least {least}, got {value}")
    return value


def between(value: int, least: int, most: int, option: str) -> int:
    """Return *value* if it is neither below *least* nor above *most*."""
    if value > most:
        raise UsageError(f"{option}: expected a whole number up to {most}, got {value}")
    return at_least(value, least, option)


def split(text: str) -> list[str]:
    """Return the entries of a joined option."""
    return [entry.strip() for entry in text.split(SEPARATOR) if entry.strip()]


def near(word: str, words: Iterable[str]) -> str:
    """Return a hint at the one of *words* that *word* probably means; empty if none is close."""
    found = difflib.get_close_matches(word, list(words), n=1)
    return f"; did you mean {found[0]}?" if found else ""


def variable(name: str, place: str) -> str:
    """Return the secret in the environment variable *name*, which nobody but the server gets to see."""
    value = os.environ.get(name, "").strip()
    if not value:
        raise UsageError(f"{place}: the environment variable {name} is not set")
    return sendable(value, f"{place}: the value of {name}")


def sendable(value: str, place: str) -> str:
    """Return *value* if a header can carry it; the error does not repeat it, it may be a secret."""
    if not _SENDABLE.fullmatch(value):
        raise UsageError(f"{place} has characters that no header may have")
    return value

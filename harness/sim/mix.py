"""The seeded, weighted choice of faults: `ok=90,stall-mid=4`."""

from __future__ import annotations

import difflib
import random
from collections.abc import Iterable

from harness.sim.faults import FAULTS


class UnknownFaultError(ValueError):
    """There is no fault of that name; the message is one line for the user."""


class MixError(ValueError):
    """The mix cannot be used; the message is one line for the user."""


def known(name: str) -> str:
    """Return *name* if it is a fault's; raises `UnknownFaultError` with near misses."""
    if name in FAULTS:
        return name
    near = difflib.get_close_matches(name, FAULTS, n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(near)}?" if near else "see `harness sim --list`"
    raise UnknownFaultError(f"unknown fault {name!r}: {hint}")


class Mix:
    """Draws fault names; the same text and seed draw the same sequence."""

    def __init__(self, shares: dict[str, float], seed: int) -> None:
        self._names = list(shares)
        self._weights = list(shares.values())
        self._random = random.Random(seed)

    def draw(self) -> str:
        """Return the next fault's name."""
        return self._random.choices(self._names, self._weights)[0]

    def __str__(self) -> str:
        return ",".join(f"{name}={weight:g}" for name, weight in zip(self._names, self._weights, strict=True))


def parse_mix(text: str) -> dict[str, float]:
    """Return the weight of each fault in *text*. Raises `MixError` or `UnknownFaultError`."""
    shares: dict[str, float] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, separator, weight_text = part.partition("=")
        name = known(name.strip())
        try:
            weight = float(weight_text) if separator else 1.0
        except ValueError:
            weight = -1.0
        if not 0.0 <= weight < float("inf"):
            raise MixError(f"mix: expected NAME=WEIGHT with a weight of 0 or more, got {part!r}")
        if name in shares:
            raise MixError(f"mix: {name} is given twice")
        shares[name] = weight
    if sum(shares.values()) <= 0.0:
        raise MixError(f"mix: expected NAME=WEIGHT,… with one weight above 0, got {text!r}")
    return shares


def parse_sequence(text: str) -> tuple[str, ...]:
    """Return the fault names in *text* (`error-mid,ok`). Raises `UnknownFaultError`."""
    names: Iterable[str] = (part.strip() for part in text.split(","))
    return tuple(known(name) for name in names if name) or (known(text),)

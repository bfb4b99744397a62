"""How long prompts and answers are: a constant, a range, or the long tail that real traffic has.

Lengths are tokens, roughly: a common short word is about one token in every tokenizer in use, so that a
text of so many words is off by a few percent. What the gateway really counted stands in its usage.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from random import Random

_NUMBER = re.compile(r"[0-9]{1,9}")
_RANGE = re.compile(r"([0-9]{1,9})\s*-\s*([0-9]{1,9})")
_LOGNORMAL = re.compile(r"lognormal:([0-9]{1,9}),([0-9.]+)(?:,([0-9]{1,9}))?")

EXPECTED = "expected tokens as in 500, 100-2000 or lognormal:MEDIAN,SIGMA[,MAX]"

# Nothing longer is asked for, however long the tail: no model takes more.
LONGEST = 2_000_000


class LengthError(ValueError):
    """The text is no length; the message says what was expected."""


@dataclass(frozen=True, slots=True)
class Length:
    """A distribution of lengths: uniform between `low` and `high`, or lognormal with `low` as its median,
    cut at `high`, if `sigma` is not 0."""

    low: int
    high: int
    sigma: float = 0.0

    @property
    def constant(self) -> int | None:
        """The one length, if there is but one."""
        return self.low if self.low == self.high and not self.sigma else None

    @property
    def mean(self) -> float:
        """The expected length, tokens; without the cut."""
        if self.sigma:
            return min(float(self.high), self.low * math.exp(self.sigma**2 / 2.0))
        return (self.low + self.high) / 2.0

    def draw(self, random: Random) -> int:
        """Return one length."""
        if self.sigma:
            drawn = random.lognormvariate(math.log(self.low), self.sigma)
            return max(1, min(self.high, round(min(drawn, LONGEST))))
        return self.low if self.low == self.high else random.randint(self.low, self.high)


def parse_length(text: str) -> Length:
    """Return the distribution that *text* names. Raises `LengthError`."""
    text = text.strip()
    if _NUMBER.fullmatch(text):
        return Length(int(text), int(text))
    if match := _RANGE.fullmatch(text):
        low, high = int(match[1]), int(match[2])
        if low > high:
            raise LengthError(f"expected FROM-TO with FROM first, got {text!r}")
        return Length(low, high)
    if match := _LOGNORMAL.fullmatch(text):
        try:
            median, sigma = int(match[1]), float(match[2])
        except ValueError:
            raise LengthError(f"{EXPECTED}, got {text!r}") from None
        high = int(match[3]) if match[3] else LONGEST
        if not 1 <= median <= high or not 0.0 < sigma <= 5.0:
            raise LengthError(f"expected a median of 1 to MAX and a sigma of 0 to 5, got {text!r}")
        return Length(median, high, sigma)
    raise LengthError(f"{EXPECTED}, got {text!r}")


# Common words of one token each; a fixed list keeps a seed's prompts the same everywhere.
_TEXT = (
    "the of and to in is that for it as was with be by on not he his but at are this have from or had an "
    "they which one you were all her she there would their we him been has when who will no more if out so "
    "up said what its about than into them can only other time new some could these two may first then do "
    "any like my now over such our man me even most made after also well many before must through years "
    "where much your way down should because long each just state those people too little world good old"
)
_WORDS = tuple(_TEXT.split())


def words(count: int, random: Random) -> str:
    """Return a text of *count* common words."""
    return " ".join(random.choices(_WORDS, k=count))

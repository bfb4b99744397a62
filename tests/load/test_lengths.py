"""Lengths of prompts and answers: what is drawn, and what is no length."""

import math
import statistics
from random import Random

import pytest

from harness.load.lengths import LONGEST, Length, LengthError, parse_length, words


def draws(text, n=4000):
    length, random = parse_length(text), Random(1)
    return [length.draw(random) for _ in range(n)]


def test_a_constant_is_always_the_same():
    assert {500} == set(draws("500"))
    assert 500 == parse_length(" 500 ").constant


def test_a_range_reaches_both_ends_evenly():
    found = draws("3-7")

    assert {3, 4, 5, 6, 7} == set(found)
    assert abs(statistics.mean(found) - 5.0) < 0.1
    assert parse_length("3-7").constant is None
    assert 5.0 == parse_length("3-7").mean


def test_a_lognormal_has_its_median_its_spread_and_its_end():
    found = draws("lognormal:400,0.8,2000")

    assert abs(statistics.median(found) / 400 - 1.0) < 0.05
    # One standard deviation up: the 84th percentile is exp(0.8) times the median.
    assert abs(sorted(found)[int(0.841 * len(found))] / (400 * math.exp(0.8)) - 1.0) < 0.06
    assert 2000 == max(found)
    assert abs(Length(400, LONGEST, 0.8).mean - 400 * math.exp(0.32)) < 0.01


def test_the_same_seed_draws_the_same():
    assert draws("lognormal:400,0.8") == draws("lognormal:400,0.8")


@pytest.mark.parametrize(
    "text", ["", "x", "1.5", "-3", "7-3", "lognormal:0,1", "lognormal:5,0", "lognormal:5", "lognormal:9,1,5",
             "lognormal:5,1.2.3", "lognormal:5,9"]
)  # fmt: skip
def test_what_is_no_length_says_what_one_looks_like(text):
    with pytest.raises(LengthError, match="expected"):
        parse_length(text)


def test_a_text_has_so_many_words_and_differs_with_the_seed():
    assert 250 == len(words(250, Random(1)).split())
    assert words(50, Random(1)) == words(50, Random(1))
    assert words(50, Random(1)) != words(50, Random(2))

from __future__ import annotations

from array import array

import pytest

from harness.observe.quantiles import Sample, kaplan_meier


def filled(values, censored=()):
    sample = Sample()
    for value in values:
        sample.add(value)
    for value in censored:
        sample.add(None, value)
    return sample


def test_without_censored_values_quantiles_are_linear():
    """1 … 100: the type 7 quantiles are 50.5, 95.05 and 99.01."""
    found = filled(range(1, 101)).quantiles()

    assert found == pytest.approx({"p50_s": 50.5, "p95_s": 95.05, "p99_s": 99.01})


def test_numbers_of_a_sample():
    sample = filled([2.0, 1.0, 3.0])
    sample.add(None)

    assert sample.to_plain() == {
        "n": 3, "censored": 0, "missing": 1, "min_s": 1.0, "mean_s": 2.0, "p50_s": 2.0, "p95_s": 2.9,
        "p99_s": 2.98, "max_s": 3.0,
    }  # fmt: skip


def test_nothing_has_no_quantiles():
    assert set(filled([], [1.0]).quantiles().values()) == {None}


def test_kaplan_meier_by_hand():
    """At risk 5, 4, (cut), 2, 1: S = 4/5, 3/5, 3/10, 0."""
    values, censored = array("d", [1, 2, 4, 5]), array("d", [3])

    assert kaplan_meier(values, censored, 0.2) == 1
    assert kaplan_meier(values, censored, 0.4) == 2
    assert kaplan_meier(values, censored, 0.5) == 4
    assert kaplan_meier(values, censored, 0.7) == 4
    assert kaplan_meier(values, censored, 0.71) == 5


def test_streams_cut_before_their_first_token_cannot_make_a_run_look_fast():
    """A hundred fast streams and twenty that hung when the run ended: p95 lies beyond what was seen."""
    found = filled([0.1] * 100, [60.0] * 20).quantiles()

    assert found == {"p50_s": 0.1, "p95_s": None, "p99_s": None}


def test_streams_cut_at_once_change_nothing():
    found = filled(range(1, 101), [0.01] * 50).quantiles()

    assert found == {"p50_s": 50, "p95_s": 95, "p99_s": 99}

from __future__ import annotations

from harness.observe.labels import Vocabulary


def test_values_beyond_the_bound_become_other_and_known_ones_stay():
    words = Vocabulary(2)

    assert [words.fold(w) for w in ("a", "b", "c", "a", "b", "d")] == ["a", "b", "other", "a", "b", "other"]


def test_no_value_is_none_and_takes_no_room():
    words = Vocabulary(1)

    assert [words.fold(None), words.fold(""), words.fold("a")] == ["none", "none", "a"]


def test_prose_is_cut_to_a_name():
    assert Vocabulary(1).fold("x" * 500) == "x" * 64

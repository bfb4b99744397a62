from __future__ import annotations

from harness.observe.story import Stretch, stretches


def test_entries_of_a_kind_are_one_stretch():
    t = [0.1, 0.2, 0.3, 0.4, 0.5]
    kind = ["lifecycle", "content", "content", "content", "terminal"]

    assert [(s.kind, s.began_s, s.ended_s, s.count) for s in stretches(t, kind)] == [
        ("lifecycle", 0.1, 0.1, 1),
        ("content", 0.2, 0.4, 3),
        ("terminal", 0.5, 0.5, 1),
    ]


def test_a_pause_that_stands_out_splits_a_stretch():
    t = [0.0, 0.125, 0.25, 0.375, 2.0, 2.125]

    assert list(stretches(t, ["content"] * 6)) == [
        Stretch("content", 0.0, 0.375, 4, 0.125),
        Stretch("content", 2.0, 2.125, 2, 0.125),
    ]


def test_every_entry_can_be_told_alone():
    assert [s.count for s in stretches([0.0, 0.1, 0.2], ["content"] * 3, every=True)] == [1, 1, 1]


def test_an_empty_timeline_has_no_stretch():
    assert list(stretches([], [])) == []

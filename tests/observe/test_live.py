from __future__ import annotations

import pytest

from harness.observe.live import open_streams


def one(session, labels, now):
    return open_streams([(labels, session)], now)[labels]


# (connecting, waiting, streaming, silent)
@pytest.mark.parametrize(
    ("phase", "phases"),
    [
        ("connect", [1, 0, 0, 0]),
        ("before_headers", [0, 1, 0, 0]),
        ("before_first_byte", [0, 1, 0, 0]),
        ("before_first_token", [0, 1, 0, 0]),
        ("mid_stream", [0, 0, 1, 0]),
        ("after_terminal", [0, 0, 1, 0]),
    ],
)
def test_each_phase_has_its_place(session, labels, phase, phases):
    assert one(session(phase=phase), labels, 101.0).phases == phases


def test_a_stream_is_silent_once_output_is_overdue_though_bytes_flow(session, labels):
    stream = session(last_byte=119.0, last_progress=110.0, slow_after_s=9.0)

    assert one(stream, labels, 119.0).phases == [0, 0, 1, 0]
    assert one(stream, labels, 119.1).phases == [0, 0, 0, 1]


def test_the_oldest_silence_is_right_at_the_moment_of_asking(session, labels):
    streams = [(labels, session(last_byte=107.0, last_progress=103.0)), (labels, session(last_byte=109.0))]

    assert open_streams(streams, 110.0)[labels].oldest_silence_s == 3.0
    assert open_streams(streams, 112.5)[labels].oldest_silence_s == 5.5
    assert open_streams(streams, 110.0)[labels].oldest_progress_gap_s == 10.0  # the second, since t0


def test_without_a_byte_silence_counts_from_the_request_and_before_it_from_the_start(session, labels):
    assert one(session(phase="before_headers", opened=99.0), labels, 110.0).oldest_silence_s == 10.0
    assert one(session(phase="connect", opened=99.0, t0=None), labels, 110.0).oldest_silence_s == 11.0


def test_after_the_terminal_nothing_is_expected(session, labels):
    found = one(session(phase="after_terminal", last_byte=100.0, slow_after_s=1.0), labels, 200.0)

    assert (found.oldest_silence_s, found.oldest_progress_gap_s) == (0.0, 0.0)


def test_labels_are_kept_apart(session, labels):
    other = labels._replace(model="m2")
    found = open_streams([(labels, session(last_byte=101.0)), (other, session(last_byte=105.0))], 110.0)

    assert found[labels].oldest_silence_s == 9.0
    assert found[other].oldest_silence_s == 5.0

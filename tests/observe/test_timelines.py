from __future__ import annotations

import pytest

from harness.observe.results import read_timelines
from harness.observe.timelines import TimelineLog
from harness.stream.record import Progress, Stall

TIMELINE = {"t": [0.1, 0.2], "kind": ["content", "comment"], "dropped": 3}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "timelines.jsonl"


def written(path):
    return [(line["request"], line["why"]) for line in read_timelines(path)]


def test_failed_and_stalled_streams_are_written_as_they_end(path, record, stalled):
    soft = [Stall("burst", "mid_stream", 0.05, 0.1, 0.1, False)]
    log = TimelineLog(path, slowest=0)
    log.add(stalled(request="hard"), lambda: TIMELINE)
    log.add(record(request="soft", soft_stalls=soft), lambda: TIMELINE)
    log.add(record(request="healthy"), lambda: pytest.fail("nobody needs this timeline"))
    log.add(record(request="left", outcome="abandoned"), lambda: pytest.fail("not needed"))
    log.flush()

    assert written(path) == [("hard", "failed"), ("soft", "stalled")]
    who = {"request": "hard", "attempt": 1, "protocol": "chat", "outcome": "stalled", "why": "failed"}
    assert next(iter(read_timelines(path))) == {**who, **TIMELINE}
    log.close()


def test_the_number_of_failures_is_bounded_and_the_rest_counted(path, stalled):
    log = TimelineLog(path, bound=2)
    for i in range(5):
        log.add(stalled(request=f"q{i}"), lambda: TIMELINE)
    log.close()

    assert [name for name, _ in written(path)] == ["q0", "q1"]
    assert log.skipped == 3


def test_the_slowest_streams_are_written_at_the_end_each_once(path, record):
    log = TimelineLog(path, slowest=2)
    # request: first token, longest gap
    streams = [("a", 0.1, 5.0), ("b", 3.0, 0.1), ("c", 2.0, 9.0), ("d", 0.2, None), ("e", 1.0, 0.2)]
    for name, first, gap in streams:
        progress = Progress(5, None, None, gap, None)
        log.add(record(request=name, first_token_s=first, progress=progress), lambda: TIMELINE)
    log.flush()
    assert written(path) == []

    log.close()
    assert written(path) == [("b", "slow_first_token"), ("c", "slow_first_token"), ("a", "slow_gap")]


def test_equal_times_do_not_compare_timelines(path, record):
    log = TimelineLog(path, slowest=2)
    for i in range(4):
        log.add(record(request=f"q{i}"), lambda: TIMELINE)
    log.close()

    assert len(written(path)) == 2

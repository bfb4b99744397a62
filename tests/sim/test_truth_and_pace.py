import json

import pytest

from harness.sim.pace import Pace, Schedule
from harness.sim.truth import TruthLine, TruthLog

KEYS = (
    "request attempt protocol fault outcome sent_at first_byte_s first_content_s end_s tokens comments "
    "client_left"
)


def test_a_truth_line_has_exactly_the_keys_that_readers_join_by(tmp_path):
    path = tmp_path / "truth.jsonl"
    with path.open("wb") as file:
        log = TruthLog(file)
        log.add(TruthLine("r", 1, "chat", "ok", "completed", 1.5))
        before = path.read_bytes()
        log.flush()

        assert b"" == before
        assert KEYS.split() == list(json.loads(path.read_text()))


def test_without_a_file_nothing_is_kept():
    log = TruthLog(None)
    log.add(TruthLine(None, 1, "chat", "ok", "completed", 1.5))
    log.close()

    assert [] == log._pending


def test_the_schedule_is_absolute_and_moves_only_by_pauses():
    schedule = Schedule(Pace(0.2, 0.02, 1000), 1)
    before = schedule.due_s(999)
    schedule.shift_s += 5.0

    assert 20.18 == pytest.approx(before)
    assert 25.18 == pytest.approx(schedule.due_s(999))


def test_jitter_is_seeded_keeps_the_order_and_does_not_drift():
    pace = Pace(0.2, 0.02, 1000, jitter=1.0)
    dues = [[Schedule(pace, seed).due_s(0) for _ in range(1)] for seed in (1, 1, 2)]
    one = Schedule(pace, 3)
    times = [one.due_s(k) for k in range(1000)]

    assert dues[0] == dues[1] != dues[2]
    assert times == sorted(times)
    assert all(abs(t - (0.2 + k * 0.02)) <= 0.01 + 1e-9 for k, t in enumerate(times))

"""What Locust keeps of a run stays bounded however long the run is, and its own numbers stay the same."""

from locust.stats import RequestStats

import time

from harness.swarm.trimming import KEPT_MOMENTS, KEPT_S, trim


def day_of_requests(stats, monkeypatch, seconds):
    start = 1_800_000_000
    for second in range(start, start + seconds):
        monkeypatch.setattr(time, "time", lambda now=second: float(now))
        stats.log_request("chat", "chat", 100 + second % 7, 1)
        if second % 3 == 0:
            stats.log_error("chat", "chat", "stalled")


def test_old_seconds_are_forgotten_and_no_number_changes(monkeypatch):
    stats = RequestStats()
    day_of_requests(stats, monkeypatch, 2000)
    entry = stats.get("chat", "chat")
    before = (entry.to_dict(), stats.total.to_dict(), entry.current_rps, entry.current_fail_per_sec)
    assert 2000 == len(entry.num_reqs_per_sec)

    trim(stats)

    assert before == (entry.to_dict(), stats.total.to_dict(), entry.current_rps, entry.current_fail_per_sec)
    assert KEPT_S + 1 == len(entry.num_reqs_per_sec) == len(stats.total.num_reqs_per_sec)
    assert KEPT_S // 3 + 1 >= len(entry.num_fail_per_sec) >= KEPT_S // 3
    stats.log_request("chat", "chat", 5, 1)  # still a dictionary that counts from nothing
    assert 2001 == stats.total.num_requests


def test_the_charts_go_from_the_start_to_now_however_long_the_run():
    stats = RequestStats()
    for moment in range(20 * KEPT_MOMENTS):
        stats.history.append({"time": moment})
        trim(stats)
        assert len(stats.history) <= KEPT_MOMENTS
    moments = [entry["time"] for entry in stats.history]

    assert moments == sorted(moments)
    assert 0 == moments[0]
    newest = 20 * KEPT_MOMENTS - 1
    assert list(range(newest - 100, newest + 1)) == moments[-101:]


def test_without_a_request_there_is_nothing_to_forget():
    stats = RequestStats()
    trim(stats)

    assert [] == stats.history

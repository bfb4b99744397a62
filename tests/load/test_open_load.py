"""Open arrivals, retries, users who leave and budgets in real Locust runs, against processes of their own."""

from locust import task

import itertools
import json
import math
import time
from typing import Any

import gevent
import pytest

from harness.load import ChatUser, StreamUser
from harness.observe.families import REQUESTS
from harness.observe.snapshot import Snapshot


def counted(node):
    """What became of the planned starts: planned, started, dropped; exact."""
    health = node.aggregate.health(node.run.name)
    return health.arrivals, health.arrivals - health.arrivals_dropped, health.arrivals_dropped


def test_arrivals_come_as_planned_while_answers_take_their_time(gateway, library, records, tmp_path):
    """Each answer takes as long as many arrivals: users who waited for it would ask less often."""
    node = library.start(ChatUser, users=20, host=gateway.url("slow0.5"), arrivals="poisson", seed=5)
    gevent.sleep(4.0)
    library.stop()

    planned, started, dropped = counted(node)
    kept = records(tmp_path / "results")
    assert (planned, 0) == (started, dropped)
    assert planned == len(kept) == len(gateway.asked())
    assert abs(planned - 80) < 3 * math.sqrt(80)
    assert {"completed"} == {r["outcome"] for r in kept}
    assert {"planned": planned, "started": planned, "dropped": 0}.items() <= (
        node.summary["requests"]["arrivals"].items()
    )
    late = sorted(r["sent_at"] - r["scheduled_at"] for r in kept)
    assert late[len(late) // 2] < 0.005
    for r in kept:  # what the user saw counts from the planned start
        assert r["request_summary"]["end_s"] == pytest.approx(
            r["end_s"] + r["sent_at"] - r["scheduled_at"], abs=2e-5
        )


def test_the_same_seed_plans_the_same_starts_and_prompts(gateway, library, until):
    runs = []
    for seed in (5, 5, 6):
        gateway.requests.clear()
        node = library.start(ChatUser, users=30, host=gateway.url(), arrivals="poisson", seed=seed)
        until(lambda: len(gateway.requests) >= 20)
        library.stop()
        by_time = sorted(gateway.asked(), key=lambda r: r["at"])[:20]
        runs.append([r["body"]["messages"][0]["content"] for r in by_time])
        assert counted(node)[2] == 0

    assert sorted(runs[0][:15]) == sorted(runs[1][:15])
    assert sorted(runs[0][:15]) != sorted(runs[2][:15])


def test_constant_arrivals_are_evenly_spaced(gateway, library, until, records, tmp_path):
    library.start(ChatUser, users=25, host=gateway.url(), arrivals="constant")
    until(lambda: len(gateway.requests) >= 30)
    library.stop()

    planned = sorted(r["scheduled_at"] for r in records(tmp_path / "results"))
    gaps = [b - a for a, b in itertools.pairwise(planned)]
    assert pytest.approx([0.04] * len(gaps), abs=1e-5) == gaps


def test_what_finds_no_room_is_dropped_and_counted_never_put_off(gateway, library, records, tmp_path):
    node = library.start(ChatUser, users=20, host=gateway.url("slow5"), arrivals="constant", max_in_flight=3,
                         stop_timeout=0.001)  # fmt: skip
    gevent.sleep(2.0)
    library.stop()

    planned, started, dropped = counted(node)
    kept = records(tmp_path / "results")
    assert 3 == started == len(kept)
    assert planned == started + dropped
    assert 35 <= planned <= 45
    assert {"aborted"} == {r["outcome"] for r in kept}
    assert "dropped_arrivals" in node.summary["validity"]["codes"]
    assert node.summary["validity"]["valid"] is False


def test_no_arrival_is_lost_when_the_run_is_stopped_at_any_moment(gateway, library, records, tmp_path):
    for number in range(5):
        node = library.start(ChatUser, users=60, host=gateway.url("slow0.2"), arrivals="poisson", seed=number,
                             run_name=f"r{number}", stop_timeout=0.05)  # fmt: skip
        gevent.sleep(0.3 + 0.013 * number)
        library.stop()

        planned, started, dropped = counted(node)
        kept = records(tmp_path / "results", node.run.name)
        assert planned == started + dropped
        assert started == len(kept)
        assert 0 == node.aggregate.conservation(node.run.name).open
        assert node.aggregate.conservation(node.run.name).missing == 0


class Agent(StreamUser):
    """Two requests a task: only the first one was planned. And a task that asks nothing at all."""

    tasks_done = 0

    @task
    def work(self):
        self.stream("First", protocol="chat")
        self.stream("Second", protocol="chat")
        Agent.tasks_done += 1


class Idle(StreamUser):
    @task
    def nothing(self):
        pass


def test_users_of_one_s_own_arrive_too_one_task_each(gateway, library, until):
    Agent.tasks_done = 0
    node = library.start(Agent, users=20, host=gateway.url(), arrivals="constant")
    until(lambda: Agent.tasks_done >= 10)
    library.stop()

    asked = [r["body"]["messages"][0]["content"].rpartition(" ")[2] for r in gateway.asked()]
    firsts, seconds = asked.count("First"), asked.count("Second")
    assert counted(node) == (firsts, firsts, 0)
    assert firsts >= seconds == Agent.tasks_done >= 10


def test_a_task_that_asks_nothing_is_an_arrival_all_the_same(gateway, library):
    node = library.start(Idle, users=20, host=gateway.url(), arrivals="constant")
    gevent.sleep(0.5)
    library.stop()

    planned, started, dropped = counted(node)
    assert (planned, 0) == (started, dropped)
    assert 8 <= planned <= 12


def test_a_replay_sends_the_log_s_requests_when_it_did_and_ends_the_run(
    gateway, library, until, records, tmp_path
):
    log = tmp_path / "log.jsonl"
    log.write_text(
        '{"ts": 7.0, "prompt": "one", "max_tokens": 11}\n'
        '{"ts": 7.4, "prompt_tokens": 40, "model": "other"}\n'
        '{"ts": 8.0, "prompt": "three"}\n'
    )
    node = library.start(ChatUser, users=2, host=gateway.url(), arrivals="replay", replay_file=str(log),
                         speed=2.0, cache="allow")  # fmt: skip
    until(lambda: library.runner.state == "stopped")

    asked = sorted(gateway.asked(), key=lambda r: r["at"])
    planned = sorted(r["scheduled_at"] for r in records(tmp_path / "results"))
    assert [0.0, 0.2, 0.5] == [pytest.approx(at - planned[0], abs=1e-3) for at in planned]
    assert ["one", "three"] == [asked[n]["body"]["messages"][0]["content"] for n in (0, 2)]
    assert 40 == len(asked[1]["body"]["messages"][0]["content"].split())
    assert [11, 256, 256] == [r["body"]["max_tokens"] for r in asked]
    assert ["m", "other", "m"] == [r["body"]["model"] for r in asked]
    assert (3, 3, 0) == counted(node)


@pytest.mark.parametrize("arrivals", ["closed", "constant"])
def test_a_stop_during_a_wait_before_a_retry_ends_the_request_at_once_as_aborted(
    arrivals, gateway, library, until, records, tmp_path
):
    node = library.start(ChatUser, users=5, host=gateway.url("503"), retry="sdk", max_retries=9,
                         arrivals=arrivals, max_in_flight=5)  # fmt: skip
    until(lambda: len(gateway.requests) >= 5 * 4)  # the next wait is 3 to 4 s long
    began = time.monotonic()
    library.stop()

    assert time.monotonic() - began < 1.0
    kept = records(tmp_path / "results")
    assert {"http_error"} == {r["outcome"] for r in kept}
    assert {False} == {r["final"] for r in kept}
    assert {"aborted": 5} == node.summary["requests"]["outcomes"]
    assert 5 == node.summary["requests"]["started"] == node.summary["requests"]["ended"]
    totals = Snapshot.from_plain(node.aggregate.snapshot(time.monotonic())).run(node.run.name)
    assert (5, 5) == totals.requests()
    assert {"aborted": 5} == totals.outcomes(REQUESTS)


def test_waits_between_attempts_are_those_that_were_decided(gateway, library, until, records, tmp_path):
    library.start(ChatUser, users=8, host=gateway.url("429"), retry="sdk", seed=3)
    until(lambda: len(gateway.requests) >= 8 * 3 + 8)  # all have begun a second request
    library.stop()

    by_request: dict[str, list[dict[str, Any]]] = {}
    for r in records(tmp_path / "results"):
        by_request.setdefault(r["request"], []).append(r)
    whole = [attempts for attempts in by_request.values() if attempts[-1]["final"]]
    assert len(whole) >= 8
    for first, second, third in whole:
        for before, after, low, high in ((first, second, 0.375, 0.5), (second, third, 0.75, 1.0)):
            decided = before["retry"]["delay_s"]
            assert low <= decided <= high
            waited = after["sent_at"] - before["sent_at"] - before["end_s"]
            assert decided <= waited + 1e-3
            assert waited < decided + 0.25  # a busy machine
        assert "exhausted" == third["request_summary"]["retry_outcome"]
        assert 3 == third["request_summary"]["attempts"]


@pytest.mark.parametrize("arrivals", ["closed", "constant"])
def test_no_request_begins_beyond_the_budget(arrivals, gateway, library, until):
    node = library.start(ChatUser, users=30, host=gateway.url("slow0.2"), max_requests=12, arrivals=arrivals)
    until(lambda: library.runner.state == "stopped")

    assert 12 == len(gateway.asked())
    assert {"completed": 12} == node.summary["outcomes"]


def test_an_arrival_that_the_budget_has_no_room_for_is_dropped(gateway, library, until):
    node = library.start(ChatUser, users=30, host=gateway.url(), max_requests=6, arrivals="constant")
    until(lambda: node.run is not None)
    node.run.on_over = lambda why: None  # as in the moment before the run has ended
    until(lambda: counted(node)[2] >= 5)
    library.stop()

    planned, started, dropped = counted(node)
    assert (6, planned - 6) == (started, dropped)
    assert 6 == len(gateway.asked())


def test_a_token_budget_ends_the_run_when_it_is_spent(gateway, library, until):
    """Each answer costs 3 tokens in and 2 out; what is open when the last is spent comes on top."""
    node = library.start(ChatUser, users=4, host=gateway.url(), token_budget=100)
    until(lambda: library.runner.state == "stopped")

    spent = node.run.spending.tokens
    assert 100 <= spent <= 100 + 5 * 4
    assert spent == 5 * len(gateway.asked())


def test_conversations_quote_what_was_answered(gateway, library, until):
    library.start(ChatUser, users=1, host=gateway.url(), turns="3", think="10ms")
    until(lambda: len(gateway.requests) >= 6)
    library.stop()

    first, second, third = (r["body"]["messages"] for r in gateway.asked()[:3])
    assert ["user"] == [m["role"] for m in first]
    assert [*first, {"role": "assistant", "content": "Hi you"}] == second[:2]
    assert ["user", "assistant", "user", "assistant", "user"] == [m["role"] for m in third]
    assert second == third[:3]
    assert 1 == len(gateway.asked()[3]["body"]["messages"])  # the next conversation


def test_the_gateway_stops_generating_for_users_who_leave(library, until, records, tmp_path):
    """Sabiuco's promise, by the truth log of the simulated one; the test prints how soon."""
    truth = tmp_path / "truth.jsonl"
    library.start(ChatUser, users=20, host="sim", gateway="sabiuco", model="", sim_truth=str(truth),
                  abandon="30%@400ms,30%@first-token+20tokens")  # fmt: skip
    gevent.sleep(4.0)
    node = library.stop()
    node.close()  # the simulator writes its log to the end

    kept = {f"{r['request']}-{r['attempt']}": r for r in records(tmp_path / "results")}
    true = {f"{t['request']}-{t['attempt']}": t for t in map(json.loads, truth.read_text().splitlines())}
    left = {name: r for name, r in kept.items() if r["outcome"] == "abandoned"}
    assert len(left) >= 15
    after_s = []
    for name, r in left.items():
        assert true[name]["client_left"]
        assert true[name]["outcome"] == "abandoned"
        assert r["progress"]["count"] <= true[name]["tokens"] <= r["progress"]["count"] + 3
        assert r["tokens"]["output"] == r["progress"]["count"]  # there was no usage to read
        after_s.append(true[name]["sent_at"] + true[name]["end_s"] - r["sent_at"] - r["end_s"])
    by_time = [r for r in left.values() if r["progress"]["count"] < 21]
    assert all(r["end_s"] == pytest.approx(0.4, abs=0.1) for r in by_time)
    assert any(r["progress"]["count"] == 21 for r in left.values())
    assert all(r["retry"]["decision"] == "none" for r in left.values())
    assert node.summary["outcomes"]["abandoned"] == len(left)
    assert max(after_s) < 0.5
    mean_s = sum(after_s) / len(after_s)
    print(f"generation ended {1000 * mean_s:.1f} ms after the client left, {1000 * max(after_s):.1f} at most")

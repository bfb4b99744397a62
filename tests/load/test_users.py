from locust import constant, task
from locust.env import Environment

import itertools
import json

import gevent
import pytest

from harness.load import ChatUser, StreamUser, UsageError
from harness.swarm import attach


class Quick(ChatUser):
    wait_time = constant(0.05)


class Polite(ChatUser):
    """Without thinking in between: only a back-off slows it down."""


def gaps(requests):
    moments = [request["at"] for request in requests]
    return [b - a for a, b in itertools.pairwise(moments)]


@pytest.mark.parametrize("how", ["503", "close"])
def test_after_a_failure_without_a_stream_a_user_waits_a_second(how, gateway, library, until):
    library.start(Polite, host=gateway.url(how))
    until(lambda: len(gateway.requests) >= 3)
    library.stop()

    assert all(0.95 < gap < 3 for gap in gaps(gateway.requests))


def test_after_an_answer_it_does_not(gateway, library, until):
    library.start(Quick, host=gateway.url())
    until(lambda: len(gateway.requests) >= 5)
    library.stop()

    assert 0.9 > min(gaps(gateway.requests))


def test_each_user_keeps_its_key_and_every_attempt_is_joined_by_its_id(
    gateway, library, until, records, tmp_path, monkeypatch
):
    for name in ("A", "B"):
        monkeypatch.setenv(f"HARNESS_KEY_{name}", f"key-{name}")
    library.start(Quick, users=4, host=gateway.url(), api_key_env="HARNESS_KEY_A,HARNESS_KEY_B",
                  header="X-Ours=1")  # fmt: skip
    until(lambda: len(gateway.requests) >= 40)
    library.stop()

    asked = {r["headers"]["x-client-request-id"]: r["headers"] for r in gateway.asked()}
    kept = records(tmp_path / "results")
    assert asked.keys() == {f"{r['request']}-{r['attempt']}" for r in kept}
    assert {"Bearer key-A", "Bearer key-B"} == {h["authorization"] for h in asked.values()}
    assert {"1"} == {h["x-ours"] for h in asked.values()}
    everything = "".join(p.read_text() for p in (tmp_path / "results" / "latest").iterdir())
    assert "key-A" not in everything
    assert "completed" in everything


def prompts(gateway):
    return [request["body"]["messages"][0]["content"] for request in gateway.asked()]


def test_the_same_seed_asks_the_same_again_and_another_one_something_else(gateway, library, until):
    asked = []
    for seed in (7, 7, 8):
        gateway.requests.clear()
        library.start(Quick, host=gateway.url(), seed=seed)
        until(lambda: len(gateway.requests) >= 6)
        library.stop()
        asked.append(prompts(gateway)[:6])

    assert asked[0] == asked[1]
    assert asked[0] != asked[2]
    assert 6 == len(set(asked[0]))  # the nonce


def test_a_second_run_in_one_process_asks_what_the_first_one_asked(gateway, library, until):
    asked = []
    library.start(Quick, host=gateway.url())
    for _ in range(2):
        until(lambda: len(gateway.requests) >= 4)
        library.runner.stop()
        asked.append(prompts(gateway)[:4])
        gateway.requests.clear()
        library.runner.start(1, spawn_rate=1)
    library.stop()

    assert asked[0] == asked[1]


def test_a_cache_may_be_allowed_to_answer(gateway, library, until, tmp_path):
    (tmp_path / "one.jsonl").write_text('{"prompt": "Hello"}')
    library.start(Quick, host=gateway.url(), cache="allow", prompts=str(tmp_path / "one.jsonl"))
    until(lambda: len(gateway.requests) >= 2)
    library.stop()

    assert {"Hello"} == set(prompts(gateway))


def test_what_is_asked_while_warming_up_is_marked(gateway, library, until, records, tmp_path):
    library.start(Quick, host=gateway.url(), warmup="500ms")
    until(lambda: len(gateway.requests) >= 15)
    node = library.stop()

    phases = [record["phase"] for record in records(tmp_path / "results")]
    assert ["measure", "warmup"] == sorted(set(phases))
    assert phases == sorted(phases, reverse=True)
    assert phases.count("warmup") == node.summary["warmup"]["attempts"]


def test_content_is_kept_only_if_asked_for(gateway, library, until, tmp_path):
    for save in (False, True):
        library.start(Quick, host=gateway.url(), save_content=save, cache="allow")
        until(lambda: len(gateway.requests) >= 2)
        node = library.stop()
        gateway.requests.clear()
        assert save is (node.keeper.folder.path / "content.jsonl").exists()

    lines = (tmp_path / "results" / "latest" / "content.jsonl").read_text().splitlines()
    kept = json.loads(lines[0])
    assert "data: [DONE]" in kept["stream"]
    assert "user" == kept["prompt"][0]["role"]


def test_a_simulator_that_nobody_announced_is_labelled_from_its_first_answer(
    gateway, library, until, records, tmp_path
):
    node = library.start(Quick, users=3, host=gateway.url("sim"), no_preflight=True)
    until(lambda: len(gateway.requests) >= 6)
    metrics = text_of(node)
    library.stop()

    assert {"sim:generic"} == {r["gateway"] for r in records(tmp_path / "results")}
    assert all(r["simulated"] for r in records(tmp_path / "results"))
    about = json.loads((tmp_path / "results" / "latest" / "run.json").read_text())
    assert ("sim:generic", True) == (about["gateway"], about["simulated"])
    assert "sim:generic" == node.summary["gateway"]
    assert 'gateway="generic"' not in metrics
    assert 'gateway="sim:generic"' in metrics
    assert node.aggregate.conservation(node.run.name).missing == 0


def text_of(node):
    from prometheus_client import generate_latest

    from harness.observe.exporter import registry_of

    return generate_latest(registry_of(node.observe)).decode()


class Own(StreamUser):
    wait_time = constant(0.05)
    scenario = "support"

    @task
    def ask(self):
        first = self.stream("Hello", max_tokens=5, name="first question")
        assert "completed" == first.outcome
        self.stream([{"role": "user", "content": "And?"}], model="other", headers={"X-Step": "2"})


def test_users_of_ones_own_choose_what_they_ask(gateway, library, until, records, tmp_path):
    library.start(Own, host=gateway.url(), cache="allow")
    until(lambda: len(gateway.requests) >= 4)
    library.stop()

    one, two = gateway.asked()[:2]
    assert ("Hello", 5, "m") == (
        one["body"]["messages"][0]["content"],
        one["body"]["max_tokens"],
        one["body"]["model"],
    )
    assert ("And?", "other", "2") == (
        two["body"]["messages"][0]["content"],
        two["body"]["model"],
        two["headers"]["x-step"],
    )
    assert {"support"} == {r["scenario"] for r in records(tmp_path / "results")}
    assert ("first question", "chat") in library.runner.stats.entries


class Wrong(StreamUser):
    @task
    def ask(self):
        self.stream(protocol="messages")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sabiuco", "gateway sabiuco has no endpoint for messages (it has: chat)"),
        ("generic", "no model for messages: pass --model messages=NAME, or model= to stream()"),
    ],
)
def test_a_request_that_cannot_be_is_a_row_in_locusts_exceptions_and_no_busy_loop(
    name, words, gateway, library, until
):
    library.start(Wrong, host=gateway.url(), gateway=name, model="")
    until(lambda: library.runner.exceptions)
    gevent.sleep(0.5)
    library.stop()

    (row,) = library.runner.exceptions.values()
    assert (words, 1) == (row["msg"], row["count"])


class Loop(StreamUser):
    """An agent that would go on for ever."""

    @task
    def ask(self):
        while True:
            self.stream("next")


def test_no_new_stream_begins_once_the_run_is_ending(gateway, library, until):
    library.start(Loop, host=gateway.url("slow0.1"), stop_timeout=30)
    until(lambda: len(gateway.requests) >= 2)
    node = library.stop()

    assert {"completed"} == set(node.summary["outcomes"])
    assert len(gateway.requests) == node.summary["attempts"]


def test_an_environment_without_the_harness_says_what_to_call():
    with pytest.raises(UsageError, match=r"harness.swarm.attach\(environment, host=…\)"):
        ChatUser(Environment(user_classes=[ChatUser]))


def test_attach_refuses_what_the_command_line_refuses(tmp_path):
    for options, words in (
        ({"time_scal": 1}, "unknown option 'time_scal'"),
        ({"host": "sim", "gateway": "hopbas", "results": str(tmp_path)}, "did you mean hopbase"),
    ):
        with pytest.raises(UsageError, match=words):
            attach(Environment(user_classes=[ChatUser]), **options)

"""Load options: what each becomes, and what a user gets wrong."""

import json

import pytest

from harness.load.arrivals import OpenLoad
from harness.load.budget import Budget
from harness.load.exchange import prepare
from harness.load.lengths import Length
from harness.load.prompts import Prompt
from harness.load.settings import UsageError
from harness.load.users import PROTOCOL_USERS, StreamUser
from harness.swarm.classes import scenario_users
from harness.swarm.costs import projected_cost
from harness.swarm.loading import open_load

URL = "http://127.0.0.1:9"


def body(settings, protocol="chat", prompt="Hello", nonce=None, **more):
    call = prepare(settings, protocol, Prompt.of(prompt), request="r", key=None, nonce=nonce, **more)
    return json.loads(call.body)


def test_without_any_option_users_wait_for_their_answers(settings):
    chosen = settings()

    assert OpenLoad() == chosen.load
    assert not chosen.load.open
    assert (256, None, Length(1, 1), (), "") == (
        chosen.max_tokens, chosen.answer_tokens, chosen.turns, chosen.abandon, chosen.reasoning_effort,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "rate_per_user"),
    [
        (["--arrivals", "poisson"], 1.0),
        (["--arrivals", "poisson", "--rate", "20"], 1.0),  # twenty users will share it
        (["--arrivals", "poisson", "--rate", "2.5"], 2.5 / 3),
        (["--arrivals", "constant", "--rate", "20", "-u", "40"], 0.5),
        (["--arrivals", "poisson", "--shape", "capacity:", "--slo", "ttft p95 < 1s"], 0.1),
    ],
)
def test_users_share_the_rate(settings, arguments, rate_per_user):
    assert pytest.approx(rate_per_user) == settings(*arguments).load.rate_per_user


def test_each_protocol_gets_its_own_fields(settings):
    chosen = settings("--gateway", "hopbase", "--max-tokens", "77", "--reasoning-effort", "low")

    chat, responses, messages = (body(chosen, name) for name in ("chat", "responses", "messages"))
    assert (77, "low") == (chat["max_completion_tokens"], chat["reasoning_effort"])
    assert "max_tokens" not in chat
    assert (77, {"effort": "low"}) == (responses["max_output_tokens"], responses["reasoning"])
    assert (77, {"effort": "low"}) == (messages["max_tokens"], messages["output_config"])
    assert 77 == body(settings("--model", "m", "--max-tokens", "77", host=URL))["max_tokens"]


def test_lengths_are_distributions(settings):
    chosen = settings("--max-tokens", "10-20", "--prompt-tokens", "lognormal:300,0.5,900", "--turns", "2-4")

    assert Length(10, 20) == chosen.answer_tokens
    assert Length(300, 900, 0.5) == chosen.prompt_tokens
    assert Length(2, 4) == chosen.turns


def test_shared_prefixes_are_the_same_for_a_seed_and_the_nonce_stands_behind_them(settings):
    chosen = settings("--shared-prefix", "50:3", host="sim")
    again = settings("--shared-prefix", "50:3", host="sim")

    assert 3 == len({p.messages[0]["content"] for p in chosen.shared_prefixes})
    assert chosen.shared_prefixes == again.shared_prefixes
    assert 50 == len(chosen.shared_prefixes[0].messages[0]["content"].split())
    sent = body(chosen, prompt=Prompt.of("Hello").behind(chosen.shared_prefixes[0]), nonce="abc")["messages"]
    assert chosen.shared_prefixes[0].messages[0] == sent[0]
    assert {"role": "user", "content": "[abc] Hello"} == sent[1]


def test_budgets(settings):
    assert Budget(5, 1000) == settings("--max-requests", "5", "--token-budget", "1000").budget


def test_a_log_is_read_before_anything_starts(settings, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("time,prompt_tokens\n5,10\n6,20\n")
    load = settings("--arrivals", "replay", "--replay-file", str(path), "--speed", "2").load

    assert [(0.0, 10), (1.0, 20)] == [(order.at_s, order.prompt_tokens) for order in load.orders]
    assert 2.0 == load.speed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--arrivals poisson --rate 0", "--rate: expected requests per second above 0, got 0"),
        ("--arrivals poisson --rate -3", "--rate: expected requests per second above 0, got -3"),
        ("--arrivals poisson --rate fast", "--rate: expected requests per second above 0, got fast"),
        ("--rate 5", "--rate needs arrivals that have one: pass --arrivals poisson or constant"),
        ("--arrivals replay", "--arrivals replay: pass the log with --replay-file FILE"),
        ("--replay-file x", "--replay-file needs --arrivals replay"),
        ("--arrivals replay --replay-file nothing.csv", "--replay-file: cannot read nothing.csv"),
        ("--arrivals poisson --speed 0", "--speed: expected a number above 0, got 0"),
        ("--arrivals poisson --max-in-flight 0", "--max-in-flight: expected a whole number of at least 1"),
        ("--abandon 5@2s", "--abandon: expected SHARE%@WHEN"),
        ("--turns 0", "--turns: expected at least 1, got 0"),
        ("--prompt-tokens 0", "--prompt-tokens: expected at least 1, got 0"),
        ("--prompt-tokens many", "--prompt-tokens: expected tokens as in 500"),
        ("--shared-prefix 10:0", "--shared-prefix: expected TOKENS or TOKENS:COUNT"),
        ("--reasoning-effort VERY", "--reasoning-effort: expected a word such as low"),
        ("--max-requests -1", "--max-requests: expected a whole number of at least 0"),
        ("--token-budget -1", "--token-budget: expected a whole number of at least 0"),
        ("--scenarios nothing.toml", "--scenarios: cannot read nothing.toml"),
    ],
)
def test_what_a_user_gets_wrong_is_one_line_that_names_it(settings, arguments, words):
    with pytest.raises(UsageError) as caught:
        settings(*arguments.split())

    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


FAR = "http://192.0.2.1:9"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        # 100 in and 50 out, 2/s for a minute
        (
            "--prompt-tokens 100 --max-tokens 50 --arrivals poisson --rate 2 -t 1m",
            "up to 18,000 tokens in all",
        ),
        (
            "--prompt-tokens 100 --max-tokens 50 -u 5 -t 1m",
            "about 100 tokens in and up to 50 out per request",
        ),
        ("--prompt-tokens 100 --max-tokens 50 -u 5 -t 1m", "without bound"),
        ("--prompt-tokens 100 --max-tokens 50 --max-requests 10", "up to 1,500 tokens in all"),
        ("--prompt-tokens 100 --max-tokens 50 --shared-prefix 1000 --cache allow", "about 1,2"),
        # three turns: the second quotes 150 tokens, the third 300; 150 in the mean
        ("--prompt-tokens 100 --max-tokens 50 --turns 3", "about 250 tokens in"),
        ("--max-tokens 0", "up to 4,096 out"),
    ],
)
def test_what_a_run_may_cost_is_said_before_it_starts(settings, options, arguments, words):
    given = ["--model", "m", *arguments.split()]
    cost = projected_cost(settings(*given, host=FAR), options(*given))

    assert cost is not None
    assert words in cost


def test_this_machine_costs_nothing(settings, options):
    assert projected_cost(settings("--model", "m", host=URL), options()) is None
    assert projected_cost(settings(), options()) is None


def test_a_kind_of_arrivals_that_only_the_web_form_can_send(options):
    given = options()
    given.arrivals = "open"

    with pytest.raises(UsageError, match="--arrivals: expected closed or poisson or constant or replay"):
        open_load(given)


SCENARIOS = """
[[scenario]]
name = "agents"
weight = 3
protocols = "chat=2,messages=1"
max_tokens = 50
prompt-tokens = "100-200"
turns = "2-3"
header = ["X-Team=a", "X-Other=b, c"]
api_key_env = "HARNESS_TENANT_A"
abandon = "10%@2s"

[[scenario]]
name = "chatters"
"""


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "scenarios.toml"
        path.write_text(text)
        return str(path)

    return write


def test_scenarios_say_what_differs_and_keep_the_rest(settings, file, monkeypatch):
    monkeypatch.setenv("HARNESS_TENANT_A", "key-a")
    chosen = settings("--gateway", "hopbase", "--scenarios", file(SCENARIOS), "--think", "2s")
    agents, chatters = chosen.scenarios["agents"], chosen.scenarios["chatters"]

    assert ({"chat": 2, "messages": 1}, 50, 3.0) == (agents.protocols, agents.max_tokens, agents.weight)
    assert (Length(100, 200), Length(2, 3)) == (agents.prompt_tokens, agents.turns)
    assert (("X-Team", "a"), ("X-Other", "b, c")) == agents.headers
    assert (("key-a",), ()) == (agents.keys, chatters.keys)
    assert "key-a" not in repr(chosen)
    assert (2.0, 2.0) == agents.think_s == chatters.think_s
    assert (256, 1.0, (), {}) == (
        chatters.max_tokens, chatters.weight, chatters.abandon, chatters.scenarios,
    )  # fmt: skip


def test_each_scenario_and_protocol_is_a_class_of_users_with_its_part_of_the_weight(settings, file):
    chosen = settings("--gateway", "hopbase", "--scenarios", file(SCENARIOS.replace("api_key_env", "#")))
    made = [c for c in scenario_users(chosen, list(PROTOCOL_USERS.values())) if issubclass(c, StreamUser)]

    assert {
        ("agents-chat", "agents", "chat"): 2.0,
        ("agents-messages", "agents", "messages"): 1.0,
        ("chatters-chat", "chatters", "chat"): 1 / 3,
        ("chatters-responses", "chatters", "responses"): 1 / 3,
        ("chatters-messages", "chatters", "messages"): 1 / 3,
    } == {(c.__name__, c.scenario, c.protocol): pytest.approx(c.weight) for c in made}
    assert not any(c.abstract for c in made)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no [[scenario]]"),
        ("scenario = 5", "has no [[scenario]]"),
        ("[[scenario]]\nweight = 1", "scenario 1: expected a name of letters, digits, dot, dash, got None"),
        ('[[scenario]]\nname = "a b"', "scenario 1: expected a name"),
        ('[[scenario]]\nname = "a"\n[[scenario]]\nname = "a"', "scenario 2: the name a stands twice"),
        ('[[scenario]]\nname = "a"\nturn = 2', "scenario a: unknown key 'turn'; did you mean turns?"),
        ('[[scenario]]\nname = "a"\ngateway = "x"', "scenario a: unknown key 'gateway'"),
        ('[[scenario]]\nname = "a"\nweight = 0', "scenario a: expected a weight above 0, got 0"),
        ('[[scenario]]\nname = "a"\nturns = 0', "scenario a: --turns: expected at least 1, got 0"),
        (
            '[[scenario]]\nname = "a"\nthink = true',
            "scenario a: think: expected a text or a number",
        ),
        ('[[scenario]]\nname = "a"\nprotocols = "grpc"', "scenario a: --protocols: expected chat"),
        ('name = "a"\n[[scenario]]\nname = "a"', "unknown key 'name': expected [[scenario]] tables"),
        ("[[scenario]", "line 1"),
    ],
)
def test_a_wrong_scenario_is_named(settings, file, text, words):
    with pytest.raises(UsageError) as caught:
        settings("--gateway", "hopbase", "--scenarios", file(text))

    assert words in str(caught.value)
    assert "--scenarios: " in str(caught.value)

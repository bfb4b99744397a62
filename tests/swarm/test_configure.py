import re

import pytest

from harness.load.settings import UsageError
from harness.swarm.target import is_loopback

URL = "http://127.0.0.1:9"

# Arguments, host, and what the one line has to say: what is wrong, and how to mend it.
WRONG = [
    (["--gateway", "hopbas"], "sim", "unknown gateway 'hopbas' (did you mean hopbase?)"),
    (["--gateway", "nowhere.toml"], "sim", "cannot read gateway file nowhere.toml"),
    (["--gateway", "sabiuco", "--protocols", "responses"], "sim", "sabiuco has no endpoint for responses"),
    (["--protocols", "chatt"], "sim", "did you mean chat?"),
    (["--protocols", "chat=two"], "sim", "expected chat=WEIGHT"),
    (["--protocols", "chat=-1"], "sim", "expected chat=WEIGHT"),
    (["--protocols", "chat="], "sim", "expected chat=WEIGHT"),
    (["--protocols", "chat=0"], "sim", "all weights are 0"),
    (["--protocols", "chat,chat=2"], "sim", "named twice"),
    ([], URL, "no model for chat: gateway generic names none, pass --model NAME"),
    (["--protocols", "chat,messages", "--model", "chat=x"], URL, "no model for messages"),
    (["--model", "chat=x,mesages=y"], URL, "did you mean messages?"),
    (["--model", "chat="], URL, "expected PROTOCOL=MODEL"),
    ([], None, "no host: pass --host URL, or --host sim"),
    (["--model", "x"], "127.0.0.1:80", "expected a URL"),
    (["--model", "x"], "ftp://a", "expected a URL"),
    (["--model", "x"], "http://a:99999", "ort out of range"),
    (["--model", "x"], "http://a b/", "expected a URL"),
    (["--model", "x"], "http://me:secret@127.0.0.1", "a password would be shown"),
    (["--think", "5"], "sim", "--think: '5' is not a duration"),
    (["--think", "5s-1s"], "sim", "FROM first"),
    (["--warmup", "soon"], "sim", "--warmup: 'soon' is not a duration"),
    (["--limit", "progress"], "sim", "expected NAME=DURATION"),
    (["--limit", "progres=1s"], "sim", "did you mean progress?"),
    (["--limit", "progress=1"], "sim", "--limit progress: '1' is not a duration"),
    (["--limit", "progress=0s"], "sim", "above zero"),
    (["--time-scale", "0"], "sim", "--time-scale: expected a number above 0"),
    (["--time-scale", "nan"], "sim", "--time-scale: expected a number above 0"),
    (["--time-scale", "0.5", "--model", "x"], "http://10.0.0.1", "10.0.0.1 is not"),
    (["--api-key-env", "HARNESS_TEST_UNSET"], "sim", "variable HARNESS_TEST_UNSET is not set"),
    (["--api-key-env", "HARNESS_TEST_KEY"], "sim", "has characters that no header may have"),
    (["--header", "X"], "sim", "expected NAME=VALUE or NAME=env:VAR"),
    (["--header", "X Y=1"], "sim", "expected NAME=VALUE"),
    (["--header", "X=env:HARNESS_TEST_UNSET"], "sim", "variable HARNESS_TEST_UNSET is not set"),
    (["--header", "X=a\x07b"], "sim", "no header may have"),
    (["--extra-body", "nowhere.json"], "sim", "cannot read nowhere.json"),
    (["--extra-body", "list.json"], "sim", "has to hold a JSON object"),
    (["--extra-body", "broken.json"], "sim", "broken.json is not JSON"),
    (["--prompts", "nowhere.jsonl"], "sim", "cannot read prompts nowhere.jsonl"),
    (["--prompts", "prompts.jsonl"], "sim", "prompts.jsonl, line 3: not JSON"),
    (["--prompts", "empty.jsonl"], "sim", "holds no prompt"),
    (["--max-tokens", "-1"], "sim", "--max-tokens: expected tokens as in 500"),
    (["--tag", "build"], "sim", "--tag: expected KEY=VALUE"),
    (["--run-name", "a/b"], "sim", "--run-name: 'a/b' cannot be a folder's name"),
    (["--run-name", "latest"], "sim", "--run-name"),
    (["--ca-file", "nowhere.pem"], "sim", "nowhere.pem"),
    (["--connect-to", "nowhere"], "sim", "--connect-to: expected HOST:PORT"),
    (["--profile", "hopbase"], "sim", "did you mean --gateway hopbase?"),
    (["--sim-mix", "ok=90,reset=10", "--model", "x"], URL, "--sim-mix belongs to the simulated gateway"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "host", "words"), WRONG)
def test_what_a_user_gets_wrong_is_one_line_that_names_it(
    arguments, host, words, settings, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_TEST_KEY", "sk-secret\nX-Injected: yes")
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "empty.jsonl").write_text("\n")
    (tmp_path / "prompts.jsonl").write_text('{"prompt": "a"}\n\n{"prompt": \n')

    with pytest.raises(UsageError) as caught:
        settings(*arguments, host=host)

    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "sk-secret" not in str(caught.value)


def test_a_wrong_key_in_a_gateway_file_of_ones_own_is_named_with_its_file(settings, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'name = "mine"\n[endpoints.chat]\npath = "/v1/chat/completions"\n[limits]\nprogres = {}\n'
    )

    with pytest.raises(UsageError, match=re.escape(f"{path}: limits.progres") + ".*did you mean progress"):
        settings("--gateway", str(path))


def test_models_come_from_the_option_then_the_profile_and_a_simulator_answers_to_any(settings):
    assert {"chat": "sim", "responses": "sim", "messages": "sim"} == settings().models
    assert "claude-sonnet-5" == settings("--gateway", "hopbase").models["messages"]
    assert "m" == settings("--gateway", "hopbase", "--model", "m").models["messages"]
    chosen = settings("--gateway", "hopbase", "--model", "chat=a=b,messages=c").models
    assert {"chat": "a=b", "responses": "gpt-5.6-sol", "messages": "c"} == chosen


def test_a_class_that_takes_no_part_needs_no_model_and_no_preflight(settings):
    chosen = settings("--protocols", "chat=2,messages=3", "--model", "chat=x", host=URL, built_in=("chat",))
    assert {"chat": 2} == chosen.protocols

    with pytest.raises(UsageError, match="no user class speaks messages"):
        settings("--protocols", "messages", "--model", "x", host=URL, built_in=("chat",))


def test_users_of_ones_own_may_bring_their_models_themselves(settings):
    assert {} == settings(host=URL, built_in=()).protocols
    with pytest.raises(UsageError, match="no model for chat"):
        settings("--protocols", "chat", host=URL, built_in=())


def test_a_real_key_is_not_for_a_simulator(settings, monkeypatch):
    monkeypatch.setenv("HOPBASE_API_KEY", " sk-real\n")

    assert () == settings("--gateway", "hopbase").keys
    assert ("sk-real",) == settings("--gateway", "hopbase", host=URL).keys
    assert ("sk-real",) == settings("--api-key-env", "HOPBASE_API_KEY").keys
    assert "sk-real" not in repr(settings("--gateway", "hopbase", host=URL))


def test_only_the_headers_of_protocols_in_use_need_their_secrets(settings, tmp_path, monkeypatch):
    path = tmp_path / "mine.toml"
    path.write_text(
        'name = "mine"\ndefault_protocols = ["chat"]\n'
        '[endpoints.chat]\npath = "/v1/chat/completions"\nmodel = "m"\nheaders = { x-a = "env:HARNESS_A" }\n'
        '[endpoints.messages]\npath = "/v1/messages"\nmodel = "m"\nheaders = { x-a = "env:HARNESS_B" }\n'
    )
    monkeypatch.setenv("HARNESS_A", "1")

    assert {"env:HARNESS_A": "1"} == settings("--gateway", str(path)).secrets
    with pytest.raises(UsageError, match="header x-a: the environment variable HARNESS_B is not set"):
        settings("--gateway", str(path), "--protocols", "messages")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:1", True),
        ("http://127.9.9.9", True),
        ("http://[::1]:1", True),
        ("http://localhost", True),
        ("http://0.0.0.0", False),
        ("http://10.0.0.1", False),
        ("http://127.0.0.1.invalid", False),
    ],
)
def test_only_this_machine_is_loopback(url, expected):
    assert expected is is_loopback(url)


def test_limits_given_by_hand_are_not_scaled(settings):
    limits = settings("--gateway", "hopbase", "--time-scale", "0.1", "--limit", "progress=7s").profile.limits

    assert 7.0 == limits.progress.fail_s
    assert 9.0 == pytest.approx(limits.progress.warn_s)

import json

import pytest

from harness.load.exchange import prepare
from harness.load.prompts import Prompt
from harness.load.settings import UsageError

URL = "http://127.0.0.1:9"


def call(settings, protocol="chat", **more):
    given = {"request": "r", "key": None, "nonce": None} | more
    return prepare(settings, protocol, Prompt.of("Hello"), **given)


def headers(prepared, attempt=1):
    return {name.lower(): value for name, value in prepared.headers_of(attempt)}


def test_an_attempt_is_named_by_its_request_and_number_whatever_else_was_asked_for(settings):
    chosen = call(settings("--model", "m", "--header", "x-client-request-id=mine", host=URL))

    assert "r-3" == headers(chosen, 3)["x-client-request-id"]
    assert 1 == [name.lower() for name, _ in chosen.headers_of(1)].count("x-client-request-id")


def test_later_headers_replace_earlier_ones_whatever_their_case(settings, monkeypatch):
    monkeypatch.setenv("HARNESS_SECRET", "s3cret")
    chosen = settings("--gateway", "hopbase", "--header", "AUTHORIZATION=Basic x",
                      "--header", "x-team=env:HARNESS_SECRET", "--header", "x-b=1, 2", host=URL)  # fmt: skip
    sent = headers(call(chosen, key="k", headers={"X-B": "3"}))

    assert "Basic x" == sent["authorization"]
    assert "s3cret" == sent["x-team"]
    assert "3" == sent["x-b"]
    assert "s3cret" not in repr(chosen)


def test_the_key_goes_where_the_protocol_wants_it(settings):
    chosen = settings("--gateway", "hopbase", host=URL)

    assert "Bearer k" == headers(call(chosen, key="k"))["authorization"]
    messages = headers(call(chosen, "messages", key="k"))
    assert ("k", "2023-06-01") == (messages["x-api-key"], messages["anthropic-version"])
    assert "authorization" not in messages


def test_extra_bodies_are_merged_and_may_turn_usage_off(settings, tmp_path):
    path = tmp_path / "extra.json"
    path.write_text('{"stream_options": {"more": 1}, "temperature": 0.5}')
    chosen = settings("--model", "m", "--extra-body", str(path), host=URL)

    merged = call(chosen, extra_body={"stream_options": {"other": 2}})
    assert {"include_usage": True, "more": 1, "other": 2} == json.loads(merged.body)["stream_options"]
    assert merged.asks_usage
    without = call(chosen, extra_body={"stream_options": None})
    assert not without.asks_usage
    assert 0.5 == json.loads(without.body)["temperature"]


def test_a_nonce_stands_before_everything_that_a_prefix_cache_knows(settings):
    assert "[n1] Hello" == json.loads(call(settings(), nonce="n1").body)["messages"][0]["content"]


@pytest.mark.parametrize(
    ("protocol", "more", "words"),
    [
        ("responses", {}, "gateway sabiuco has no endpoint for responses"),
        ("chat", {"extra_body": {"x": object()}}, "cannot be written as JSON"),
    ],
)
def test_what_cannot_be_sent_is_the_users_error(protocol, more, words, settings):
    with pytest.raises(UsageError, match=words):
        call(settings("--gateway", "sabiuco", "--model", "m", host=URL), protocol, **more)


def test_no_model_is_the_users_error(settings):
    with pytest.raises(UsageError, match="no model for chat: pass --model chat=NAME"):
        call(settings(host=URL, built_in=()))

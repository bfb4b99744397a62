from collections import Counter

import msgspec
import pytest

from harness.sim.choice import Chooser
from harness.sim.mix import Mix, MixError, UnknownFaultError, parse_mix
from harness.sim.pace import Pace
from harness.sim.request import BadRequestError, read_request

PACE = Pace(0.2, 0.02, 60)


def asked(headers=(), path_fault="", protocol="chat", pace=PACE, **body):
    data = {"model": "m", "stream": True, **body}
    return read_request(protocol, path_fault, dict(headers), msgspec.json.encode(data), pace, "default")


def test_the_same_seed_draws_the_same_sequence_and_another_another():
    shares = parse_mix("ok=70,stall-mid=10,error-mid=10,truncate=10")
    draws = [[Mix(shares, seed).draw() for _ in range(1)] for seed in (1, 1)]
    mixes = [Mix(shares, 1), Mix(shares, 1), Mix(shares, 2)]
    drawn = [[mix.draw() for _ in range(1000)] for mix in mixes]

    assert draws[0] == draws[1]
    assert drawn[0] == drawn[1] != drawn[2]
    assert 650 < Counter(drawn[0])["ok"] < 750


def test_a_fault_of_weight_nought_is_never_drawn():
    mix = Mix(parse_mix("ok=1,reset=0"), 1)

    assert {"ok"} == {mix.draw() for _ in range(500)}


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("stal-mid=4", UnknownFaultError, "did you mean stall-mid"),
        ("ok=many", MixError, "ok=many"),
        ("ok=-1", MixError, "0 or more"),
        ("ok=nan", MixError, "0 or more"),
        ("ok=1,ok=2", MixError, "twice"),
        ("ok=0", MixError, "above 0"),
        ("", MixError, "above 0"),
    ],
)
def test_a_wrong_mix_is_one_line(text, error, says):
    with pytest.raises(error, match=says) as caught:
        parse_mix(text)

    assert "\n" not in str(caught.value)


HEADER, PATH = {"x-harness-fault": "reset"}, "truncate"
MODEL, KEY = "sim-error-mid", {"authorization": "Bearer sim-http-500"}


@pytest.mark.parametrize(
    ("fault", "request_"),
    [
        ("reset", asked({**HEADER, **KEY}, PATH, model=MODEL)),
        ("truncate", asked(KEY, PATH, model=MODEL)),
        ("error-mid", asked(KEY, model=MODEL)),
        ("http-500", asked(KEY)),
        ("http-500", asked({"x-api-key": "sim-http-500"}, protocol="messages")),
        ("stall-pre", asked({"authorization": "Bearer other"})),  # what the mix says
    ],
)
def test_header_path_model_key_and_mix_choose_in_this_order(fault, request_):
    assert fault == Chooser(Mix({"stall-pre": 1.0}, 1)).choose(request_)


def test_an_unknown_fault_names_near_ones_and_is_told_in_preflight_too():
    chooser = Chooser(Mix({"ok": 1.0}, 1))
    for headers in ({}, {"x-client-request-id": "preflight-1"}):
        with pytest.raises(UnknownFaultError, match="did you mean"):
            chooser.choose(asked(headers, model="sim-stal-mid"))


def test_preflights_and_whole_answers_do_not_shift_the_mix():
    shares = {"ok": 50.0, "reset": 50.0}
    plain, disturbed = Chooser(Mix(shares, 7)), Chooser(Mix(shares, 7))
    drawn = []
    for _ in range(50):
        assert "ok" == disturbed.choose(asked({"x-client-request-id": "preflight-x-1"}))
        assert "ok" == disturbed.choose(asked(stream=False))
        drawn.append(disturbed.choose(asked()))

    assert [plain.choose(asked()) for _ in range(50)] == drawn
    assert {"ok", "reset"} == set(drawn)


def test_a_preflight_is_healthy_even_if_the_request_asks_for_a_fault():
    headers = {"x-client-request-id": "preflight-1", "x-harness-fault": "stall-pre"}

    assert "ok" == Chooser(Mix({"reset": 1.0}, 1)).choose(asked(headers))


def test_a_sequence_goes_on_with_each_attempt_of_a_request_and_stays_at_its_end():
    chooser = Chooser(Mix({"ok": 1.0}, 1))
    fault = {"x-harness-fault": "error-mid,http-500,ok"}
    first = [chooser.choose(asked({**fault, "x-client-request-id": f"a-{n}"})) for n in (1, 2, 3, 4)]
    other = chooser.choose(asked({**fault, "x-client-request-id": "b-1"}))

    assert ["error-mid", "http-500", "ok", "ok"] == first
    assert "error-mid" == other


def test_a_sequence_without_request_ids_is_per_key():
    chooser = Chooser(Mix({"ok": 1.0}, 1))
    keys = ["one", "one", "two"]
    seen = [chooser.choose(asked({"authorization": f"Bearer {k}"}, "http-503,ok")) for k in keys]

    assert ["http-503", "ok", "http-503"] == seen


def test_a_named_sequence_from_the_mix_is_kept_through_the_attempts_of_a_request():
    chooser = Chooser(Mix({"flaky": 1.0}, 1))
    seen = [chooser.choose(asked({"x-client-request-id": f"a-{n}"})) for n in (1, 2, 3)]

    assert ["http-503", "http-503", "ok"] == seen


@pytest.mark.parametrize(
    ("headers", "prompt", "identity"),
    [
        (
            {"x-client-request-id": "run-7-user-3-2"},
            "",
            ("run-7-user-3", 2),
        ),  # the attempt is after the last dash
        ({"x-client-request-id": "lonely"}, "", ("lonely", 1)),
        ({"x-client-request-id": "a-b"}, "", ("a-b", 1)),  # no number: the whole is the request
        ({}, "hello [[req:r-9-3]] there", ("r-9", 3)),
        ({"x-client-request-id": "h-1"}, "[[req:r-9-3]]", ("h", 1)),  # the header wins
        ({}, "no marker", (None, 1)),
    ],
)
def test_request_and_attempt_come_from_the_header_else_from_the_marker(headers, prompt, identity):
    request = asked(headers, messages=[{"role": "user", "content": prompt}])

    assert identity == (request.request, request.attempt)


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens", "max_output_tokens"])
def test_the_clients_token_limit_caps_the_answer(field):
    assert (5, True) == (asked(**{field: 5}).pace.tokens, asked(**{field: 5}).capped)
    assert (60, False) == (asked(**{field: 60}).pace.tokens, asked(**{field: 60}).capped)


def test_a_request_may_set_its_own_pace():
    pace = asked({"x-harness-first-token": "1s", "x-harness-gap": "5ms", "x-harness-tokens": "9"}).pace

    assert Pace(1.0, 0.005, 9) == pace


@pytest.mark.parametrize(
    ("headers", "body", "says"),
    [
        ({}, b"{", "not valid JSON"),
        ({}, b"\xff\xfe", "not valid JSON"),
        ({}, b"[1]", "not a JSON object"),
        ({}, b'{"model":7}', "model"),
        ({"x-harness-gap": "5"}, b"{}", "x-harness-gap"),
        ({"x-harness-tokens": "0"}, b"{}", "X-Harness-Tokens"),
    ],
)
def test_a_request_that_cannot_be_answered_is_told_why(headers, body, says):
    with pytest.raises(BadRequestError, match=says):
        read_request("chat", "", headers, body, PACE, "default")


def test_prompt_tokens_count_words_of_all_protocols_forms():
    assert 3 == asked(messages=[{"role": "user", "content": "one two three"}]).prompt_tokens
    assert 2 == asked(messages=[{"content": [{"type": "text", "text": "one two"}]}]).prompt_tokens
    assert 3 == asked(input="one two", instructions="three").prompt_tokens
    assert 1 == asked().prompt_tokens

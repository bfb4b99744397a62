"""Profiles as values: URLs, limits per model, overrides, time scale."""

from dataclasses import replace

import pytest

from harness.gateways import LIMIT_NAMES, Endpoint, Limit, Limits, Profile, load

HOST = "https://gw.example"
URLS: list[tuple[str, str, str, str]] = [
    # A bare host gets the whole path.
    ("generic", "chat", HOST, "/v1/chat/completions"),
    ("generic", "responses", HOST, "/v1/responses"),
    ("generic", "messages", HOST, "/v1/messages"),
    ("generic", "chat", HOST + "/", "/v1/chat/completions"),
    # The version prefix does not come twice.
    ("generic", "chat", HOST + "/v1", "/v1/chat/completions"),
    ("generic", "chat", HOST + "/v1/", "/v1/chat/completions"),
    ("generic", "messages", HOST + "/api/v1", "/api/v1/messages"),
    ("sabiuco", "chat", HOST, "/api/v1/chat/completions"),
    ("sabiuco", "chat", HOST + "/api", "/api/v1/chat/completions"),
    ("sabiuco", "chat", HOST + "/api/v1", "/api/v1/chat/completions"),
    ("sabiuco", "chat", HOST + "/api/v1/", "/api/v1/chat/completions"),
    ("sabiuco", "chat", HOST + "/v1", "/v1/chat/completions"),
    # What stands before it stays.
    ("generic", "chat", HOST + "/team/a", "/team/a/v1/chat/completions"),
    ("generic", "chat", HOST + "/team/v1", "/team/v1/chat/completions"),
    ("generic", "chat", HOST + "/fault/stall-mid", "/fault/stall-mid/v1/chat/completions"),
    ("sabiuco", "chat", HOST + "/team/api", "/team/api/v1/chat/completions"),
    ("generic", "chat", HOST + "/v1beta", "/v1beta/v1/chat/completions"),
    # A whole endpoint URL is used as it is.
    ("generic", "chat", HOST + "/v1/chat/completions", "/v1/chat/completions"),
    ("generic", "chat", HOST + "/v1/chat/completions/", "/v1/chat/completions/"),
    ("generic", "chat", HOST + "/openai/deployments/x/chat/completions?api-version=1",
     "/openai/deployments/x/chat/completions?api-version=1"),
    ("generic", "messages", HOST + "/anthropic/messages", "/anthropic/messages"),
    # A query stays a query.
    ("generic", "chat", HOST + "/v1?key=a", "/v1/chat/completions?key=a"),
    ("generic", "chat", HOST + "?key=a&b=c", "/v1/chat/completions?key=a&b=c"),
]  # fmt: skip


@pytest.mark.parametrize(("gateway", "protocol", "base", "path"), URLS)
def test_url_for(gateway: str, protocol: str, base: str, path: str) -> None:
    assert HOST + path == load(gateway).url_for(base, protocol)


@pytest.mark.parametrize(
    "host", ["http://127.0.0.1:8080", "http://[::1]:8080", "http://localhost", "https://u:p@h:1"]
)
def test_the_host_stays_as_it_is(host: str) -> None:
    assert f"{host}/v1/responses" == load("generic").url_for(host, "responses")


def test_a_path_with_a_query_of_its_own() -> None:
    profile = replace(load("generic"), endpoints={"chat": Endpoint("/openai/chat/completions?api-version=7")})

    assert f"{HOST}/openai/chat/completions?api-version=7" == profile.url_for(HOST, "chat")
    assert f"{HOST}/openai/chat/completions?k=a&api-version=7" == profile.url_for(
        HOST + "/openai?k=a", "chat"
    )


def test_a_path_of_another_kind() -> None:
    profile = replace(load("generic"), endpoints={"chat": Endpoint("/llm/v2/generate")})

    assert f"{HOST}/llm/v2/generate" == profile.url_for(HOST, "chat")
    assert f"{HOST}/llm/v2/generate" == profile.url_for(HOST + "/llm/v2", "chat")
    assert f"{HOST}/llm/v2/generate" == profile.url_for(HOST + "/llm/v2/generate", "chat")


@pytest.mark.parametrize(
    ("gateway", "protocol", "base", "message"),
    [
        (
            "generic",
            "chat",
            HOST + "/v1/messages",
            f"{HOST}/v1/messages is the endpoint of messages, not of chat: give the base URL instead",
        ),
        (
            "generic",
            "messages",
            HOST + "/v1/chat/completions",
            f"{HOST}/v1/chat/completions is the endpoint of chat, not of messages: give the base URL instead",
        ),
        (
            "generic",
            "chat",
            HOST + "/v1/responses?x=1",
            f"{HOST}/v1/responses?x=1 is the endpoint of responses, not of chat: give the base URL instead",
        ),
        ("sabiuco", "responses", HOST, "gateway sabiuco has no endpoint for responses (it has: chat)"),
        (
            "generic",
            "grpc",
            HOST,
            "gateway generic has no endpoint for grpc (it has: chat, responses, messages)",
        ),
    ],
)
def test_a_url_that_cannot_be(gateway: str, protocol: str, base: str, message: str) -> None:
    with pytest.raises(ValueError, match="endpoint") as caught:
        load(gateway).url_for(base, protocol)

    assert message == str(caught.value)


class TestScaled:
    """A time scale multiplies every duration of a profile but the connection's."""

    def test_everything_but_connect(self) -> None:
        profile = load("hopbase")
        scaled = profile.scaled(0.01)

        assert profile.limits.connect == scaled.limits.connect == Limit(None, 5.0)
        for name in LIMIT_NAMES:
            before, after = getattr(profile.limits, name), getattr(scaled.limits, name)
            if name != "connect":
                assert before.fail_s * 0.01 == after.fail_s
                assert (before.warn_s is None) == (after.warn_s is None)
        assert (0.35, 0.9) == pytest.approx((scaled.limits.headers.warn_s, scaled.limits.progress.warn_s))
        assert profile.keepalive is not None
        assert scaled.keepalive is not None
        assert (0.1, 0.16, 0.22) == (
            scaled.keepalive.interval_s, scaled.keepalive.late_s, scaled.keepalive.violation_s
        )  # fmt: skip
        assert (profile.keepalive.text, profile.keepalive.kind) == (
            scaled.keepalive.text,
            scaled.keepalive.kind,
        )

    def test_models_too_and_scales_multiply(self) -> None:
        scaled = load("sabiuco").scaled(0.1).scaled(0.1)

        assert 0.01 == pytest.approx(scaled.limits_for("sabiuco-rapido").first_token.warn_s or 0)
        assert 0.01 == pytest.approx(scaled.time_scale)

    def test_an_override_afterwards_is_not_scaled(self) -> None:
        assert 30.0 == load("hopbase").scaled(0.01).with_limit("progress", 30.0).limits.progress.fail_s


class TestOverride:
    """``NAME`` is the hard limit, ``NAME.warn`` the soft one; the other stays."""

    @pytest.mark.parametrize("name", LIMIT_NAMES)
    def test_each_by_itself(self, name: str) -> None:
        limits = load("generic").limits
        hard, soft = limits.with_override(name, 7.0), limits.with_override(f"{name}.warn", 3.0)

        assert replace(getattr(limits, name), fail_s=7.0) == getattr(hard, name)
        assert replace(getattr(limits, name), warn_s=3.0) == getattr(soft, name)
        assert limits.with_override(f"{name}.fail", 7.0) == hard
        for other in LIMIT_NAMES:
            if other != name:
                assert getattr(limits, other) == getattr(hard, other) == getattr(soft, other)

    @pytest.mark.parametrize(
        "name", ["", "progres", "progress.", "progress.soft", ".warn", "progress.warn.x", "as_dict"]
    )
    def test_a_name_that_is_none(self, name: str) -> None:
        if name == "progress.":  # an empty level is the hard limit
            assert 7.0 == Limits().with_override(name, 7.0).progress.fail_s
            return
        with pytest.raises(KeyError):
            Limits().with_override(name, 7.0)

    def test_it_holds_for_every_model(self) -> None:
        profile = load("sabiuco").with_limit("first_token", 9.0)

        assert (
            9.0
            == profile.limits.first_token.fail_s
            == profile.limits_for("sabiuco-rapido-2").first_token.fail_s
        )
        assert 1.0 == profile.limits_for("sabiuco-rapido-2").first_token.warn_s


class TestModels:
    """The first pattern that matches the model's name decides."""

    @pytest.mark.parametrize(
        ("model", "warn_s"),
        [
            ("sabiuco", 30.0),
            ("sabiuco-rapido", 1.0),
            ("sabiuco-rapido-v2", 1.0),
            ("SABIUCO-RAPIDO", 30.0),
            (None, 30.0),
        ],
    )
    def test_by_pattern(self, model: str | None, warn_s: float) -> None:
        assert warn_s == load("sabiuco").limits_for(model).first_token.warn_s

    def test_what_the_pattern_does_not_say_is_the_gateways(self) -> None:
        profile = load("sabiuco")

        assert profile.limits.progress == profile.limits_for("sabiuco-rapido").progress
        assert 180.0 == profile.limits_for("sabiuco-rapido").first_token.fail_s

    def test_the_first_one_wins(self) -> None:
        one, two = Limits(total=Limit(None, 1.0)), Limits(total=Limit(None, 2.0))
        profile = Profile("x", "x", {}, (), Limits(), model_limits={"gpt-*": one, "*": two})

        assert (one, two) == (profile.limits_for("gpt-5"), profile.limits_for("o9"))


def test_limits_as_plain_data() -> None:
    found = load("generic").limits.as_dict()

    assert list(LIMIT_NAMES) == list(found)
    assert {"warn_s": 15.0, "fail_s": 120.0} == found["progress"]

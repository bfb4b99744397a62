"""Gateway files: what ships, what a file may say, and one line for every mistake."""

from pathlib import Path

import pytest

from harness.gateways import GatewayFileError, Keepalive, Limit, Profile, load, names
from harness.gateways.loader import parse

CHAT = '[endpoints.chat]\npath = "/v1/chat/completions"\n'
MINIMAL = 'name = "mine"\n' + CHAT


def test_what_ships_loads_and_is_named_by_its_file() -> None:
    assert {"generic", "hopbase", "sabiuco"} <= set(names())
    assert "generic" == names()[-1]
    for name in names():
        assert name == load(name).name


# The limits of the stall model: connect, headers warn and fail, first byte, first token warn and fail,
# progress warn and fail, silence, close, total.
@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        ("generic", (5, 15, 60, 30, 30, 120, 15, 120, 60, 5, 600)),
        ("hopbase", (5, 35, 75, 15, 90, 195, 90, 165, 30, 5, 900)),
        ("sabiuco", (5, 5, 30, 20, 30, 180, 30, 120, 45, 5, 600)),
    ],
)
def test_limits_that_ship(name: str, seconds: tuple[float, ...]) -> None:
    limits = load(name).limits

    assert seconds == (
        limits.connect.fail_s, limits.headers.warn_s, limits.headers.fail_s, limits.first_byte.fail_s,
        limits.first_token.warn_s, limits.first_token.fail_s, limits.progress.warn_s, limits.progress.fail_s,
        limits.silence.fail_s, limits.close.fail_s, limits.total.fail_s,
    )  # fmt: skip


def test_promises_that_ship() -> None:
    assert Keepalive("hopbase-keepalive", 10.0, "periodic", 16.0, 22.0) == load("hopbase").keepalive
    assert Keepalive("ok", 15.0, "idle", 23.5, 32.0) == load("sabiuco").keepalive
    assert None is load("generic").keepalive
    assert {"required"} == {load(name).terminator for name in ("generic", "hopbase", "sabiuco")}
    assert ("chat", "responses", "messages") == load("hopbase").default_protocols
    assert ("chat",) == load("sabiuco").default_protocols == load("generic").default_protocols
    assert ["chat", "responses", "messages"] == list(load("generic").endpoints)
    assert ["chat"] == list(load("sabiuco").endpoints)
    assert ("HopBase", "Sabiuco") == (load("hopbase").title, load("sabiuco").title)
    assert ("HOPBASE_API_KEY", "SABIUCO_API_KEY") == (load("hopbase").key_env, load("sabiuco").key_env)


def test_the_least_that_a_file_must_say() -> None:
    profile = parse(MINIMAL, "mine.toml")

    assert ("mine", "mine", ("chat",), "required", None) == (
        profile.name, profile.title, profile.default_protocols, profile.terminator, profile.keepalive
    )  # fmt: skip
    assert Limit(None, None) == profile.limits.progress
    endpoint = profile.endpoints["chat"]
    assert ("bearer", True, "max_tokens", None) == (
        endpoint.auth, endpoint.ask_usage, endpoint.max_tokens_field, endpoint.model
    )  # fmt: skip


def test_a_promise_without_tolerance_gets_the_usual_one() -> None:
    """Late half an interval and a second after it was due, broken at twice the interval and two seconds."""
    text = MINIMAL + '[keepalive]\ntext = "hb"\ninterval = "20s"\nkind = "idle"\n'

    assert Keepalive("hb", 20.0, "idle", 31.0, 42.0) == parse(text, "x").keepalive


@pytest.mark.parametrize("late", ["5s", "8s"])
def test_a_tolerance_may_be_as_tight_as_its_bounds(late: str) -> None:
    text = '[keepalive]\ntext = "hb"\ninterval = "5s"\nkind = "idle"\n'
    text += f'tolerance = {{ late = "{late}", violation = "8s" }}'

    assert Keepalive("hb", 5.0, "idle", float(late[0]), 8.0) == parse(MINIMAL + text, "x").keepalive


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(MINIMAL + '[headers]\nX-Team = "env:TEAM"\n[limits]\nprogress = { fail = "1m30s" }\n')
    profile: Profile = load(str(file))

    assert ("mine", 90.0, {"X-Team": "env:TEAM"}) == (
        profile.name,
        profile.limits.progress.fail_s,
        profile.headers,
    )


# text -> the one line
WRONG: list[tuple[str, str, str]] = [
    ("TOML", "name = ", "not valid TOML: Invalid value (at end of document)"),
    ("no name", CHAT, "name: expected text, but it is missing"),
    ("a name of another kind", "name = 5\n" + CHAT, "name: expected text, got 5"),
    (
        "a name with a space",
        'name = "my gateway"\n' + CHAT,
        "name: expected a short name without spaces, got 'my gateway'",
    ),
    (
        "a name with a colon",
        'name = "sim:x"\n' + CHAT,
        "name: expected a short name without spaces, got 'sim:x'",
    ),
    (
        "no endpoint",
        'name = "x"',
        "endpoints: expected at least one of [endpoints.chat], [endpoints.responses], [endpoints.messages]",
    ),
    (
        "an unknown protocol",
        'name = "x"\n[endpoints.chats]\npath = "/"',
        "endpoints.chats: expected one of chat, responses, messages; did you mean chat?",
    ),
    (
        "an endpoint that is none",
        'name = "x"\n[endpoints]\nchat = "/v1"',
        "endpoints.chat: expected a table, got '/v1'",
    ),
    (
        "no path",
        'name = "x"\n[endpoints.chat]\n',
        "endpoints.chat.path: expected text, but it is missing",
    ),
    (
        "a path without a slash",
        'name = "x"\n[endpoints.chat]\npath = "v1"',
        "endpoints.chat.path: expected a path that begins with /, got 'v1'",
    ),
    (
        "an unknown way to send the key",
        MINIMAL + 'auth = "basic"',
        "endpoints.chat.auth: expected one of bearer, x-api-key, none, got 'basic'",
    ),
    (
        "a switch that is none",
        MINIMAL + "ask_usage = 1",
        "endpoints.chat.ask_usage: expected true or false, got 1",
    ),
    (
        "a header that is no text",
        MINIMAL + "headers = { a = 1 }",
        "endpoints.chat.headers.a: expected text, got 1",
    ),
    (
        "a misspelt key",
        MINIMAL + 'modle = "x"',
        "endpoints.chat.modle: expected one of ask_usage, auth, headers, max_tokens_field, model, path; "
        "did you mean model?",
    ),
    (
        "a misspelt table",
        MINIMAL + '[limit]\nheaders = { fail = "1s" }',
        "limit: expected one of auth, billing, default_protocols, endpoints, errors, headers, keepalive, "
        "limits, models, name, promises, terminator, title; did you mean limits?",
    ),
    (
        "a default without an endpoint",
        'name = "x"\ndefault_protocols = ["messages"]\n' + CHAT,
        "default_protocols: expected protocols that have an endpoint (chat), got 'messages'",
    ),
    (
        "defaults that are none",
        'name = "x"\ndefault_protocols = "chat"\n' + CHAT,
        "default_protocols: expected a list of text, got 'chat'",
    ),
    (
        "a default that is none",
        'name = "x"\ndefault_protocols = [1]\n' + CHAT,
        "default_protocols: expected a list of text, got [1]",
    ),
    (
        "an unknown limit",
        MINIMAL + '[limits]\nfirst_tokens = { fail = "1s" }',
        "limits.first_tokens: expected one of connect, headers, first_byte, first_token, progress, "
        "silence, close, total; did you mean first_token?",
    ),
    (
        "a bare limit",
        MINIMAL + '[limits]\nheaders = "5s"',
        "limits.headers: expected a table, got '5s'",
    ),
    (
        "a bare number",
        MINIMAL + "[limits]\nheaders = { fail = 5 }",
        'limits.headers.fail: expected a duration with a unit, as in "10s", got 5',
    ),
    (
        "a number without a unit",
        MINIMAL + '[limits]\nheaders = { fail = "5" }',
        "limits.headers.fail: expected a duration with a unit, as in \"10s\", got '5'",
    ),
    (
        "no time",
        MINIMAL + '[limits]\nheaders = { fail = "0s" }',
        "limits.headers.fail: expected a duration above zero, got '0s'",
    ),
    (
        "a misspelt level",
        MINIMAL + '[limits]\nheaders = { fial = "5s" }',
        "limits.headers.fial: expected one of fail, warn; did you mean fail?",
    ),
    (
        "a warning after the failure",
        MINIMAL + '[limits]\nheaders = { warn = "9s", fail = "5s" }',
        "limits.headers.warn: expected a duration up to fail (5s), got 9s",
    ),
    (
        "a model's limit",
        MINIMAL + '[models."a*".limits]\ntotl = { fail = "5s" }',
        "models.a*.limits.totl: expected one of connect, headers, first_byte, first_token, progress, "
        "silence, close, total; did you mean total?",
    ),
    (
        "a model's unknown key",
        MINIMAL + '[models."a*"]\nlimit = 5',
        "models.a*.limit: expected one of limits; did you mean limits?",
    ),
    (
        "an empty keepalive",
        MINIMAL + "[keepalive]",
        'keepalive.interval: expected a duration with a unit, as in "10s", but it is missing',
    ),
    (
        "a keepalive without an interval",
        MINIMAL + '[keepalive]\ntext = "x"\nkind = "idle"',
        'keepalive.interval: expected a duration with a unit, as in "10s", but it is missing',
    ),
    (
        "a keepalive without a text",
        MINIMAL + '[keepalive]\ninterval = "5s"\nkind = "idle"',
        "keepalive.text: expected text, but it is missing",
    ),
    (
        "a keepalive without a kind",
        MINIMAL + '[keepalive]\ninterval = "5s"\ntext = "x"',
        "keepalive.kind: expected one of periodic, idle, but it is missing",
    ),
    (
        "a keepalive of another kind",
        MINIMAL + '[keepalive]\ninterval = "5s"\ntext = "x"\nkind = "often"',
        "keepalive.kind: expected one of periodic, idle, got 'often'",
    ),
    (
        "late after broken",
        MINIMAL + '[keepalive]\ninterval = "5s"\ntext = "x"\nkind = "idle"\n'
        'tolerance = { late = "9s", violation = "8s" }',
        "keepalive.tolerance.late: expected a duration between interval (5s) and violation (8s), got 9s",
    ),
    (
        "late before due",
        MINIMAL + '[keepalive]\ninterval = "5s"\ntext = "x"\nkind = "idle"\ntolerance = { late = "4s" }',
        "keepalive.tolerance.late: expected a duration between interval (5s) and violation (12s), got 4s",
    ),
    (
        "an unknown terminator",
        'name = "x"\nterminator = "maybe"\n' + CHAT,
        "terminator: expected one of required, optional, got 'maybe'",
    ),
    (
        "an unknown error shape",
        MINIMAL + '[errors.chat]\nshape = "xml"\ntype = "t"\nmessage = "m"',
        "errors.chat.shape: expected one of data, response.failed, event, got 'xml'",
    ),
    (
        "an error's misspelt key",
        MINIMAL + '[errors.chat]\nshape = "data"\ntype = "t"\nmessage = "m"\ncod = "c"',
        "errors.chat.cod: expected one of code, message, shape, type; did you mean code?",
    ),
    (
        "an error of an unknown protocol",
        MINIMAL + '[errors.grpc]\nshape = "data"',
        "errors.grpc: expected one of chat, responses, messages",
    ),
    (
        "a key variable that is no text",
        MINIMAL + "[auth]\nkey_env = true",
        "auth.key_env: expected text, got True",
    ),
]


@pytest.mark.parametrize(("text", "line"), [pytest.param(t, m, id=n) for n, t, m in WRONG])
def test_a_wrong_file_is_one_line(text: str, line: str) -> None:
    with pytest.raises(GatewayFileError) as caught:
        parse(text, "g.toml")

    assert f"g.toml: {line}" == str(caught.value)


def test_an_unknown_name_says_which_there_are() -> None:
    with pytest.raises(GatewayFileError) as caught:
        load("hopbse")

    known = ", ".join(names())
    assert (
        f"unknown gateway 'hopbse' (did you mean hopbase?): use one of {known}, or a .toml file's path"
        == str(caught.value)
    )
    with pytest.raises(GatewayFileError, match=r"^unknown gateway '': use one of "):
        load("")


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    missing, folder, binary = tmp_path / "a.toml", tmp_path / "b.toml", tmp_path / "c.toml"
    folder.mkdir()
    binary.write_bytes(b"name = '\xff'")

    for path, reason in (
        (missing, "No such file or directory"),
        (folder, "Is a directory"),
        (binary, "not UTF-8 text"),
    ):
        with pytest.raises(GatewayFileError) as caught:
            load(str(path))
        assert f"cannot read gateway file {path}: {reason}" == str(caught.value)

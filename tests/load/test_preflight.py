import socket

import pytest

from harness.load import preflight as module
from harness.load.preflight import preflight
from harness.load.settings import UsageError

quiet = list[str]().append

# What the gateway does with the request, and what the one line says.
REFUSED = [
    ("401", "HTTP 401 (no luck): check the key (--api-key-env VAR)"),
    ("403", "check the key (--api-key-env VAR)"),
    ("404", "check --host, --model and whether --gateway generic has the right paths"),
    ("400", "check --model, --extra-body and --header"),
    ("html", "HTTP 200, but text/html instead of an event stream"),
    ("redirect", "redirected to 'https://elsewhere.example/v1': pass that address as --host"),
    ("close", "closed without an answer"),
    ("garbage", "the answer is not HTTP"),
]


@pytest.mark.parametrize(("how", "words"), REFUSED)
def test_what_would_only_fail_is_one_line(how, words, gateway, settings):
    with pytest.raises(UsageError) as caught:
        preflight(settings("--model", "m", host=gateway.url(how)), quiet)

    assert str(caught.value).startswith("preflight chat (m): ")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("status", ["408", "409", "429", "500", "503"])
def test_what_may_pass_is_said_and_does_not_stop_the_run(status, gateway, settings):
    said: list[str] = []
    preflight(settings("--model", "m", host=gateway.url(status)), said.append)

    assert [f"preflight chat (m): HTTP {status} (no luck); the load starts all the same"] == said


def test_a_gateway_that_accepts_and_never_answers_is_not_waited_for_in_silence(settings, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE_S", 0.3)
    monkeypatch.setattr(module, "QUIET_S", 0.1)
    said: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as mute:
        preflight(settings("--model", "m", host=f"http://127.0.0.1:{mute.getsockname()[1]}"), said.append)

    assert [
        "preflight chat (m): no event yet, waiting up to 300 ms",
        "preflight chat (m): no event within 300 ms; the load starts all the same",
    ] == said


def test_where_all_is_well_nothing_is_said(gateway, settings):
    preflight(settings("--model", "m", host=gateway.url("ok")), pytest.fail)


def test_nobody_listens(free_port, settings):
    with pytest.raises(UsageError, match="connection refused: check --host"):
        preflight(settings("--model", "m", host=f"http://127.0.0.1:{free_port}"), quiet)


def test_nobody_accepts(settings):
    """A host that drops what is sent to it answers neither yes nor no."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        port = full.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))

        chosen = settings("--model", "m", "--limit", "connect=300ms", host=f"http://127.0.0.1:{port}")
        with pytest.raises(UsageError, match="no connection"):
            preflight(chosen, quiet)
        for one in waiting:
            one.close()


def test_it_asks_each_protocol_once_under_a_name_of_its_own_and_leaves_at_the_first_event(gateway, settings):
    chosen = settings(
        "--model", "chat=a,messages=b", "--protocols", "chat,messages", host=gateway.url("slow1")
    )
    preflight(chosen, quiet)

    first, second = gateway.asked("preflight-")
    assert ("/slow1/v1/chat/completions", "a") == (first["path"], first["body"]["model"])
    assert ("/slow1/v1/messages", "b") == (second["path"], second["body"]["model"])
    assert 1.0 > second["at"] - first["at"]


def test_a_simulator_behind_a_url_is_known_before_the_run(gateway, settings):
    assert "sim:generic" == preflight(settings("--model", "m", host=gateway.url("sim")), quiet).gateway
    assert "generic" == preflight(settings("--model", "m", host=gateway.url("ok")), quiet).gateway

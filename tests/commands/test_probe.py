import json
import os
import pty
import signal
import subprocess
import sys

import gevent
import pytest
from gevent import select

from harness.cli import main


@pytest.fixture
def probe(capsys, monkeypatch, tmp_path):
    """Run the command in this process; return its exit code, what it printed, and its complaints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("harness.commands.probe.take_interrupts", lambda: None)

    def run(*arguments):
        code = main(["probe", *arguments])
        return code, *capsys.readouterr()

    return run


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def test_json_is_one_record_per_attempt_and_nothing_else(probe, gateway):
    code, out, err = probe(gateway.url(), "--json", "--repeat", "3", "--header", "X-A=1")

    assert (0, "") == (code, err)
    assert ["completed"] * 3 == [record["outcome"] for record in lines(out)]
    assert {"harness.attempt/1"} == {record["schema"] for record in lines(out)}
    assert 3 == len({record["request"] for record in lines(out)})
    assert [("default", 256, "1")] * 3 == [
        (r["body"]["model"], r["body"]["max_tokens"], r["headers"]["x-a"]) for r in gateway.asked()
    ]


def test_without_a_connection_there_is_a_record_too(probe, free_port):
    code, out, _ = probe(f"http://127.0.0.1:{free_port}", "--json", "--protocol", "messages")

    assert 10 == code
    (record,) = lines(out)
    found = record["outcome"], record["protocol"], record["gateway"]
    assert ("connect_error", "messages", "generic") == found


@pytest.mark.parametrize(("how", "outcome"), [("503", "http_error"), ("html", "not_a_stream")])
def test_every_other_outcome_is_exit_code_10(how, outcome, probe, gateway):
    code, out, _ = probe(gateway.url(how), "--json")

    assert (10, [outcome]) == (code, [record["outcome"] for record in lines(out)])


def test_ctrl_c_leaves_a_record(launch, gateway, until):
    process = launch("probe", gateway.url("slow60"), "--json", "--repeat", "2")
    until(lambda: gateway.requests)
    gevent.sleep(0.3)
    process.signal(signal.SIGINT)

    assert 130 == process.wait()
    assert [("aborted", 1)] == [(r["outcome"], r["progress"]["count"]) for r in lines(process.out)]
    assert "" == process.err


def test_a_body_of_ones_own_is_sent_as_it_is_and_says_what_to_expect(probe, gateway, tmp_path):
    """It names the model, and asks for no usage: this gateway sends it all the same."""
    (tmp_path / "body.json").write_text('{"model": "mine",  "stream": true, "messages": []}')
    code, out, _ = probe(gateway.url(), "--json", "--body", "body.json")

    assert 0 == code
    assert {"model": "mine", "stream": True, "messages": []} == gateway.asked()[0]["body"]
    (record,) = lines(out)
    assert ("mine", {"chat.usage_unrequested": 1}) == (record["model"], record["violations"])


def test_the_key_is_sent_and_shown_nowhere(probe, gateway, monkeypatch):
    monkeypatch.setenv("HOPBASE_API_KEY", "sk-secret")
    code, out, err = probe(gateway.url("401"), "--gateway", "hopbase")

    assert 10 == code
    assert "Bearer sk-secret" == gateway.asked()[0]["headers"]["authorization"]
    assert "sk-secret" not in out + err


def test_a_simulator_is_named_in_the_record(probe, gateway):
    _, out, _ = probe(gateway.url("sim"), "--json")

    assert [("sim:generic", True)] == [(r["gateway"], r["simulated"]) for r in lines(out)]


WRONG = [
    (["nowhere"], "URL nowhere: expected a URL"),
    (["http://127.0.0.1:1", "--gateway", "hopbas"], "did you mean hopbase?"),
    (
        ["http://127.0.0.1:1", "--gateway", "sabiuco", "--protocol", "messages"],
        "has no endpoint for messages",
    ),
    (["http://127.0.0.1:1", "--api-key-env", "HARNESS_UNSET"], "HARNESS_UNSET is not set"),
    (["http://127.0.0.1:1", "--header", "X"], "expected NAME=VALUE"),
    (["http://127.0.0.1:1", "--limit", "progres=1s"], "did you mean progress?"),
    (["http://127.0.0.1:1", "--body", "nowhere.json"], "cannot read nowhere.json"),
    (["http://127.0.0.1:1", "--repeat", "0"], "--repeat"),
    (["http://127.0.0.1:1", "--max-tokens", "-1"], "--max-tokens"),
    (["http://10.0.0.1", "--time-scale", "0.1"], "10.0.0.1 is not"),
    (["http://127.0.0.1:1/v1/messages", "--protocol", "chat"], "is the endpoint of messages"),
]


@pytest.mark.parametrize(("arguments", "words"), WRONG)
def test_wrong_usage_is_one_line_and_exit_code_2(arguments, words, probe):
    code, out, err = probe(*arguments)

    assert (2, "", 1) == (code, out, err.count("\n"))
    assert words in err


def test_on_a_terminal_the_stream_is_watched_and_then_told(gateway):
    """Through a terminal of its own: the live view goes, the story stays."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "harness", "probe", gateway.url("slow0.3")]
    env = os.environ | {"TERM": "xterm", "COLUMNS": "90"}
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    shown = b""
    while True:
        select.select([ours], [], [], 10)
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        shown += piece
    os.close(ours)

    assert 0 == process.wait()
    text = shown.decode()
    assert "waiting for the first token" in text or "streaming" in text
    assert "▮ token" in text
    assert text.rindex("▮ token") < text.index("attempt 1")
    assert "completed" in text

"""The command: what it announces, prints and returns."""

import io
import json
import socket
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace

import pytest

from harness.cli import main

SCALED = ["--time-scale", "0.02", "--parallel", "9"]


def check(*arguments):
    """Run the command in this process, as starting another one takes longer than the check."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(["check", *arguments])
    return SimpleNamespace(returncode=code, stdout=out.getvalue(), stderr=err.getvalue())


def test_json_holds_findings_evidence_and_every_record_and_nothing_else_is_on_stdout(start_sim):
    done = check(start_sim("hopbase"), "--gateway", "hopbase", "--only", "H11,H20,H44", "--json", *SCALED)
    report = json.loads(done.stdout)

    assert 0 == done.returncode
    assert "harness.check/1" == report["schema"]
    assert "sim:hopbase" == report["gateway"]
    assert (True, 0.02) == (report["simulated"], report["time_scale"])
    assert {"kept": 2, "broken": 0, "not observed": 0, "not testable here": 1} == report["counts"]
    text, done_last, page = report["findings"]
    assert ("H11", "keepalive-text", "kept") == (text["id"], text["name"], text["status"])
    assert ": hopbase-keepalive" in text["evidence"][0]
    assert "data: [DONE]" in done_last["evidence"][0]
    assert ("not testable here", []) == (page["status"], page["evidence"])
    assert report["requests"] == len(report["attempts"]) == 13
    assert {"healthy", "thinking", "no-usage", "resume"} == {a["situation"] for a in report["attempts"]}
    assert {"completed"} == {a["record"]["outcome"] for a in report["attempts"]}
    assert {"sim:hopbase"} == {a["record"]["gateway"] for a in report["attempts"]}
    assert sum(a["record"]["tokens"]["output"] for a in report["attempts"]) == report["output_tokens"]


def test_it_announces_time_and_tokens_before_it_asks(start_sim):
    done = check(start_sim("sabiuco"), "--gateway", "sabiuco", "--only", "B05,B02", "--json", *SCALED)

    first, second = done.stderr.splitlines()
    assert (
        "harness check: 2 statements of Sabiuco, 1 of which are about documents alone. 2 requests, "
        "9 at a time: about 5.00 s and at most 512 output tokens."
    ) == first
    assert "says that it is simulated" in second


def test_a_simulator_that_plays_another_gateway_is_noticed(start_sim):
    done = check(start_sim("hopbase"), "--gateway", "sabiuco", "--only", "B05", *SCALED)

    assert "says that it is simulated and plays hopbase, not sabiuco: it is told what to play" in done.stderr


def test_a_broken_promise_is_shown_with_its_evidence_and_is_exit_code_11(start_sim):
    done = check(start_sim("sabiuco"), "--gateway", "sabiuco", "--only", "chat-done-last,B06",
                 "--play", "healthy=unterminated", *SCALED)  # fmt: skip

    assert 11 == done.returncode
    assert "SIMULATED: these promises are kept or broken by a simulator (time scale 0.02)" in done.stdout
    assert "B07 chat-done-last: the stream ends with data: [DONE]" in done.stdout
    lines = done.stdout.splitlines()
    evidence = next(line for line in lines if "chat healthy check-" in line)
    assert "(gateway: req_" in evidence
    assert ": no [DONE] at +0." in evidence
    assert evidence.endswith(" bytes)")  # the whole of it on one line
    assert "sim:sabiuco at http://127.0.0.1:" in done.stdout
    assert "1 kept, 1 broken, 0 not observed, 0 not testable here" in done.stdout


def test_without_a_simulated_upstream_nothing_is_provoked_and_nothing_of_it_is_called_kept(start_sim):
    done = check(start_sim("hopbase"), "--gateway", "hopbase", "--only", "H14,H33,H35", "--provoke", "no",
                 "--json", *SCALED)  # fmt: skip
    report = json.loads(done.stdout)

    assert 0 == done.returncode
    assert ["not observed"] * 3 == [finding["status"] for finding in report["findings"]]
    assert 0 == report["requests"]


def test_an_upstream_behind_a_gateway_is_told_by_the_model_s_name(start_sim):
    done = check(start_sim("hopbase"), "--gateway", "hopbase", "--only", "H36", "--provoke", "model",
                 "--protocols", "messages", "--json", *SCALED)  # fmt: skip
    report = json.loads(done.stdout)

    assert ["kept"] == [finding["status"] for finding in report["findings"]]
    assert ["sim-error-mid"] == [attempt["record"]["model"] for attempt in report["attempts"]]


OWN = """
name = "ours"
default_protocols = ["chat", "messages"]
terminator = "required"
[endpoints.chat]
path = "/v1/chat/completions"
model = "m"
[endpoints.messages]
path = "/v1/messages"
model = "m"
[keepalive]
text = "hopbase-keepalive"
interval = "10s"
kind = "periodic"
[limits]
first_token = { fail = "195s" }
progress = { warn = "90s", fail = "165s" }
silence = { fail = "30s" }
close = { fail = "5s" }
[errors.chat]
shape = "data"
type = "server_error"
code = "upstream_error"
message = "MESSAGE"
"""


@pytest.mark.parametrize(
    ("message", "code", "broken"),
    [("Response stream interrupted, please retry", 0, []), ("Sorry", 11, ["documented-errors"])],
)
def test_a_gateway_without_a_table_of_promises_is_held_to_what_its_file_says(
    message, code, broken, start_sim, tmp_path
):
    file = tmp_path / "ours.toml"
    file.write_text(OWN.replace("MESSAGE", message))

    done = check(start_sim("hopbase"), "--gateway", str(file), "--json", *SCALED)
    report = json.loads(done.stdout)

    assert code == done.returncode
    assert [
        "chat-is-sse", "messages-is-sse", "official-format", "chat-done-last", "messages-order",
        "keepalive-interval", "keepalive-text", "keepalive-between-events", "documented-errors",
    ] == [finding["id"] for finding in report["findings"]]  # fmt: skip
    assert broken == [finding["id"] for finding in report["findings"] if finding["status"] != "kept"]


def test_list_and_dry_run_ask_nobody():
    listed = check("--gateway", "hopbase", "--only", "H08", "--list")
    planned = check("http://127.0.0.1:9", "--gateway", "hopbase", "--dry-run")

    assert "H08  keepalive-interval         a comment comes at the promised interval\n" == listed.stdout
    assert (0, 0) == (listed.returncode, planned.returncode)
    assert "44 statements of HopBase, 2 of which are about documents alone. 13 requests" in planned.stderr
    assert "" == planned.stdout


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--gateway", "hopbase", "--only", "H88"], "hopbase has no promise 'H88'; did you mean H38?"),
        (["--gateway", "hopbas"], "did you mean hopbase?"),
        (["--gateway", "sabiuco", "--protocols", "messages"], "sabiuco has no endpoint for 'messages'"),
        (["--gateway", "sabiuco", "--play", "lunch=ok"], "--play: expected SITUATION=FAULT"),
        (["--gateway", "sabiuco", "--runs", "0"], "--runs: expected a whole number of at least 1, got 0"),
        (["--gateway", "sabiuco", "--only", "B05"], "check the URL"),
    ],
)
def test_what_the_user_did_wrong_is_one_line_and_exit_code_2(arguments, complaint):
    with socket.socket() as nobody:  # bound and not listening: refused
        nobody.bind(("127.0.0.1", 0))
        done = check(f"http://127.0.0.1:{nobody.getsockname()[1]}", *arguments)

    assert 2 == done.returncode
    assert complaint in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr

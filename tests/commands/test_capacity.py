"""``harness capacity`` as a command: what it finds, writes and says; and what is wrong usage."""

import json
import subprocess
import sys

import pytest


@pytest.fixture
def simulator():
    """A gateway with three slots and answers of 45 ms; more is refused."""
    process = subprocess.Popen(
        [sys.executable, "-m", "harness.sim", "--port", "0", "--slots", "3", "--reject",
         "--first-token", "20ms", "--gap", "5ms", "--tokens", "5"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    yield next(word for word in process.stdout.readline().split() if word.startswith("http://"))
    process.terminate()
    process.wait()
    process.stdout.close()


@pytest.mark.slow
def test_the_search_finds_the_slots_of_a_gateway(simulator, launch, tmp_path):
    process = launch(
        "capacity", simulator, "--slo", "error_rate < 1%", "--step-time", "10s", "--metrics-port", "0",
        "--results", tmp_path / "results",
    )  # fmt: skip
    code = process.wait(120)
    found = json.loads((tmp_path / "results" / "latest" / "capacity.json").read_text())

    assert (3, True, 4) == (found["answer"], found["sure"], found["broken_at"])
    assert ("error_rate < 1%", "quota") == (found["broke_first"], found["cause"])
    assert "highest load that holds: 3 users" in process.out
    assert "4 users broke error_rate < 1% (refused with 429" in process.out
    assert 0 == code
    assert [1, 2, 4, 3, 3] == [step["load"] for step in found["curve"]]
    assert "\r" not in process.err  # no progress where nobody watches


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["http://127.0.0.1:9"], "the following arguments are required: --slo"),
        (["http://127.0.0.1:9", "--slo", "ttft p95 < 1"], "--slo: ttft: expected a duration with a unit"),
        (["http://127.0.0.1:9", "--slo", "error_rate < 1%", "--load", "both"], "invalid choice: 'both'"),
        (["http://192.0.2.1:9", "--slo", "error_rate < 1%", "--no-preflight"], "needs a bound: pass to=N"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_two(launch, arguments, words):
    process = launch("capacity", *arguments, "--metrics-port", "0")

    assert 2 == process.wait()
    (line,) = process.complaints
    assert words in line

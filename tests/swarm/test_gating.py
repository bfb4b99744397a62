"""Gates inside a Locust run: the verdict decides the exit code, and a hopeless run ends early."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

# Its limit also says how late the generator may be: on a busy machine 5 ms would make a run invalid.
PUNCTUAL = """
[[gate]]
id = "first-word"
metric = "ttft"
stat = "p50"
op = "<"
limit = "5s"
why = "The first word has to come."
"""
SUCCEED = (
    PUNCTUAL
    + """
[[gate]]
id = "succeed"
metric = "success_rate"
stat = "rate"
op = ">="
limit = "90%"
why = "Answers have to come whole."
"""
)


@pytest.fixture
def judged(launch, tmp_path):
    """Run the load test with *gates* against a simulator that plays *mix*; returns process and run folder."""

    def start(gates: str, mix: str = "ok=100", *arguments: str, **env: str):
        file = tmp_path / "gates.toml"
        file.write_text("version = 1\n" + gates)
        process = launch(
            "run", "--headless", "--host", "sim", "--gateway", "hopbase", "--time-scale", "0.02",
            "--protocols", "chat", "--sim-mix", mix, "-u", "8", "-r", "8", "-t", "4s", "--gates", file,
            "--results", tmp_path / "results", "--metrics-port", "0", "--only-summary", *arguments, **env,
        )  # fmt: skip
        return process, tmp_path / "results" / "latest"

    return start


def verdict(folder):
    return json.loads((folder / "verdict.json").read_text())


def test_a_run_that_meets_its_gates_exits_with_0_although_locust_knows_of_failures(judged):
    process, folder = judged(PUNCTUAL, "ok=70,truncate=30")

    assert 0 == process.wait()
    assert "pass" == verdict(folder)["verdict"]
    assert "first-word" in process.out


def test_a_failed_gate_exits_with_20_and_leaves_the_files_that_ci_reads(judged):
    process, folder = judged(SUCCEED, "ok=40,truncate=60")

    assert 20 == process.wait()
    assert "fail" == verdict(folder)["verdict"]
    suites = ElementTree.parse(folder / "junit.xml").getroot()
    assert ["succeed"] == [
        case.get("name") for case in suites.iter("testcase") if case.find("failure") is not None
    ]
    assert "succeed" in (folder / "summary.md").read_text()


def test_a_wrong_gate_file_is_23_before_anything_runs(judged, tmp_path):
    process, folder = judged(SUCCEED.replace("limit", "limmit"))

    assert 23 == process.wait()
    (line,) = process.complaints
    assert "gates.toml:8: " in line
    assert "limit" in line
    assert not folder.exists()


def test_a_hopeless_run_ends_early_with_its_verdict(judged):
    abort = SUCCEED + 'abort = { after = "1s", sustained = "2s" }\n'
    process, folder = judged(abort, "truncate=100", "-t", "60s")

    assert 20 == process.wait(40)
    assert "the run ends" in process.err
    assert verdict(folder)["stopped_early"].startswith("success_rate: 0 %, wanted >= 90%")


def test_what_belongs_to_gates_is_refused_without_them(launch):
    process = launch("run", "--headless", "--host", "sim", "--confirm", "--metrics-port", "0")

    assert 2 == process.wait()
    assert ["harness: --baseline, --retry-invalid and --confirm belong to --gates FILE"] == process.complaints

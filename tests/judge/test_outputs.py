"""The files of a verdict: JUnit that every CI reads, Markdown worst first, GitHub's own channels."""

from __future__ import annotations

import json
import math
import re
from xml.etree import ElementTree as ET

import pytest

from harness.judge.judging import judge_run
from harness.judge.junit import to_junit
from harness.judge.markdown import to_markdown
from harness.judge.outputs import github_commands, tell_github, write_outputs
from harness.judge.quantities import format_value
from harness.judge.show import print_verdict
from harness.observe.results import ResultsError

# The common schema (Jenkins' xunit plug-in, which GitLab and the reporters for GitHub follow): for each
# element its attributes with their patterns (a leading * marks a required one) and its children in order.
NUMBER, TEXT, MOMENT = r"\d+", r"(?s).*", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"
SCHEMA = {
    "testsuites": (
        {"name": TEXT, "time": r"[\d.]+", "tests": NUMBER, "failures": NUMBER, "errors": NUMBER,
         "skipped": NUMBER},
        ["testsuite"],
    ),
    "testsuite": (
        {"*name": TEXT, "*tests": NUMBER, "failures": NUMBER, "errors": NUMBER, "skipped": NUMBER,
         "time": r"[\d.]+", "timestamp": MOMENT, "hostname": TEXT},
        ["properties", "testcase", "system-out", "system-err"],
    ),
    "testcase": (
        {"*name": TEXT, "*classname": TEXT, "time": r"[\d.]+"},
        ["properties", "skipped", "error", "failure", "system-out", "system-err"],
    ),
    "properties": ({}, ["property"]),
    "property": ({"*name": r".+", "*value": TEXT}, []),
    "failure": ({"type": TEXT, "message": TEXT}, []),
    "error": ({"type": TEXT, "message": TEXT}, []),
    "skipped": ({"type": TEXT, "message": TEXT}, []),
    "system-out": ({}, []),
}  # fmt: skip


def faults(element):
    """Everything in which *element* breaks the schema."""
    if element.tag not in SCHEMA:
        return [f"unknown element {element.tag}"]
    allowed, children = SCHEMA[element.tag]
    patterns = {name.lstrip("*"): pattern for name, pattern in allowed.items()}
    found = [
        f"{element.tag} lacks {name[1:]}"
        for name in allowed
        if name[0] == "*" and name[1:] not in element.attrib
    ]
    for name, value in element.attrib.items():
        if name not in patterns:
            found.append(f"{element.tag} has {name}")
        elif not re.fullmatch(patterns[name], value):
            found.append(f"{element.tag} {name}={value!r}")
    order = [children.index(child.tag) if child.tag in children else -1 for child in element]
    if -1 in order or order != sorted(order):
        found.append(f"{element.tag} has children {[child.tag for child in element]}")
    for child in element:
        found += faults(child)
    return found


@pytest.fixture
def verdict(folder, record, rejected):
    """One gate of each kind: passed, failed, without data, inconclusive and forgiven, warned, skipped."""
    gates = folder.gates(
        {"id": "passed"},
        {"id": "failed", "stat": "p50", "limit": "100ms"},
        {"id": "empty", "where": {"protocol": "messages"}},
        {"id": "unsure", "metric": "error_rate", "stat": "rate", "limit": "6%", "decide": "interval"},
        {"id": "warned", "stat": "mean", "limit": "1s", "severity": "warn", "why": "a <b> & c\u0007 | d"},
        {"id": "skipped", "baseline": "given", "limit": "1.1x"},
    )
    records = [rejected(i) if i < 5 else record(i) for i in range(101)]
    return judge_run(folder.run(records), gates)


def test_junit_satisfies_the_common_schema(verdict):
    root = ET.fromstring(to_junit(verdict))

    assert [] == faults(root)


def test_the_schema_check_sees_faults():
    assert [
        "testsuite lacks tests",
        "testsuite has verdict",
        "testcase lacks classname",
        "testcase has children ['failure', 'skipped']",
    ] == faults(
        ET.fromstring(
            '<testsuite name="a" verdict="b"><testcase name="c"><failure/><skipped/></testcase></testsuite>'
        )
    )


def test_junit_tells_failures_errors_and_skips_apart(verdict):
    root = ET.fromstring(to_junit(verdict))
    cases = {
        case.get("name"): [child.tag for child in case if child.tag != "properties"]
        for case in root.iter("testcase")
    }
    suite = root.find("testsuite")
    values = {p.get("name"): p.get("value") for p in root.iter("property")}

    assert {
        "passed": [], "failed": ["failure"], "empty": ["error"], "unsure": ["skipped"],
        "warned": ["system-out"], "skipped": ["skipped"],
    } == cases  # fmt: skip
    assert suite is not None
    assert ("6", "1", "1", "2") == tuple(suite.get(n) for n in ("tests", "failures", "errors", "skipped"))
    assert "fail" == values["verdict"]
    assert "1970-01-12T13:46:40" == suite.get("timestamp")  # a million seconds
    (value,) = root.findall("testsuite/testcase[@name='failed']//property[@name='value']")
    assert "400 ms" == value.get("value")
    assert "a <b> & c\ufffd | d" in str(root.findtext("testsuite/testcase[@name='warned']/system-out"))


def test_an_invalid_run_is_an_error_and_its_gates_are_skipped(folder, record):
    verdict = judge_run(folder.run([record(0), record(0)]), folder.gates({}, {"id": "b", "stat": "max"}))
    root = ET.fromstring(to_junit(verdict))
    first, *gates = root.iter("testcase")

    assert [] == faults(root)
    (error,) = first.findall("error")
    assert ("run is valid", "repeated_records") == (first.get("name"), error.get("type"))
    assert [True, True] == [case.find("skipped") is not None for case in gates]


def test_markdown_begins_with_the_worst_and_shows_words_as_they_are(verdict):
    text = to_markdown(verdict)
    rows = [line.split("|")[2].strip() for line in text.splitlines() if line.startswith("| ")][2:]

    assert text.startswith(
        "## ❌ fail: of 6 gates, 1 failed, 1 without data, 1 inconclusive, 1 missed with a warning"
    )
    assert ["failed", "empty", "unsure", "warned", "passed", "skipped"] == rows
    assert r"a \<b\> \& c" in text
    assert r"\| d" in text


def test_files_are_written_whole(verdict, tmp_path):
    paths = write_outputs(tmp_path, verdict)

    assert ["verdict.json", "junit.xml", "summary.md"] == [path.name for path in paths]
    assert "fail" == json.loads(paths[0].read_text())["verdict"]
    assert not list(tmp_path.glob(".*.tmp"))


def test_a_folder_that_cannot_be_written_is_one_line(verdict, tmp_path):
    with pytest.raises(
        ResultsError, match=r"^cannot write .*/none/verdict.json \(No such file or directory\)$"
    ):
        write_outputs(tmp_path / "none", verdict)


def test_github_gets_summary_outputs_and_commands(verdict, tmp_path):
    summary, output = tmp_path / "summary", tmp_path / "output"
    summary.write_text("before\n")
    environment = {
        "GITHUB_STEP_SUMMARY": str(summary), "GITHUB_OUTPUT": str(output), "GITHUB_ACTIONS": "true"
    }  # fmt: skip
    lines = tell_github(verdict, environment)

    assert summary.read_text() == "before\n" + to_markdown(verdict)
    assert "verdict=fail\nexit-code=20\n" == output.read_text()
    assert [
        "::error title=gate failed%3A fail::", "::error title=gate empty%3A no data::",
        "::warning title=gate unsure%3A inconclusive::", "::warning title=gate warned%3A warn::",
    ] == [line.partition("::ttft")[0].partition("::error_rate")[0] + "::" for line in lines]  # fmt: skip


def test_outside_github_nothing_is_said(verdict):
    assert [] == tell_github(verdict, {})


def test_the_step_summary_stays_under_githubs_limit(verdict, tmp_path):
    summary = tmp_path / "summary"
    summary.write_text("x" * 999_500)
    tell_github(verdict, {"GITHUB_STEP_SUMMARY": str(summary)})

    assert 999_500 < summary.stat().st_size <= 1_000_000
    assert summary.read_text().endswith("\n\n(cut: the whole is in summary.md)\n")


def test_many_bad_gates_are_a_handful_of_annotations_and_a_command_cannot_be_smuggled_in(folder, record):
    gates = folder.gates(*({"id": f"g{i}", "limit": "1ms", "why": "a\n::set-env"} for i in range(9)))
    lines = github_commands(judge_run(folder.run(record(i) for i in range(60)), gates))

    assert 5 == len(lines)
    assert "::error title=more gates::5 more: see the summary" == lines[-1]
    assert lines[0].endswith("– a%0A::set-env")
    assert not any("\n" in line for line in lines)


def test_five_bad_gates_are_five_annotations(folder, record):
    gates = folder.gates(*({"id": f"g{i}", "limit": "1ms"} for i in range(5)))
    lines = github_commands(judge_run(folder.run(record(i) for i in range(60)), gates))

    assert [f"gate g{i}" in line for i, line in enumerate(lines)] == [True] * 5


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (0.0015, "time", "1.50 ms"), (math.inf, "time", "never"),
        (0.99954, "rate", "99.954 %"), (0.0004, "rate", "0.040 %"), (0.0042, "rate", "0.42 %"),
        (0.5, "rate", "50.0 %"), (0.0, "rate", "0 %"), (1.0, "rate", "100 %"),
        (1234.0, "count", "1,234"), (100.0, "speed", "100/s"), (0.0, "speed", "0.0/s"),
    ],
)  # fmt: skip
def test_values_are_said_with_the_digits_that_matter(value, kind, text):
    assert text == format_value(value, kind)


def test_the_console_shows_each_gate_with_its_reason(verdict, tmp_path):
    with (tmp_path / "out").open("w+") as file:
        print_verdict(verdict, ["verdict.json"], file)
        file.seek(0)
        text = file.read()

    assert "fail: of 6 gates, 1 failed" in text
    assert "failed: 400 ms, wanted < 100ms" in text
    assert "empty: no streams with protocol = messages" in text
    assert "\x07" not in text

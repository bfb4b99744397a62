"""The published schemas say what the code does: on the examples, on verdicts, and on what is wrong."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest

from harness.judge.gatefile import FILE_KEYS, GATE_KEYS, REQUIRED, GateFileError, parse_gates, read_gates
from harness.judge.judging import judge_run
from harness.judge.metrics import METRICS, TIME_STATS
from harness.judge.plain import to_plain

GATES = Path(__file__).parents[2] / "gates"
EXAMPLES = sorted(GATES.glob("*.toml"))
SCHEMA = json.loads((GATES / "gates.schema.json").read_text())
VERDICT = json.loads((GATES / "verdict.schema.json").read_text())


def errors(data, schema=SCHEMA):
    validator = jsonschema.Draft202012Validator(schema)
    return [error.message for error in validator.iter_errors(data)]


def test_the_schemas_are_schemas():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.Draft202012Validator.check_schema(VERDICT)


def test_there_are_examples_for_every_purpose():
    assert {"smoke", "nightly", "capacity", "hopbase", "sabiuco"} == {path.stem for path in EXAMPLES}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_satisfy_schema_and_reader(path):
    assert [] == errors(tomllib.loads(path.read_text()))
    assert len(read_gates(path).gates) == path.read_text().count("[[gate]]")


def test_schema_and_reader_know_the_same_words():
    defs, gate = SCHEMA["$defs"], SCHEMA["$defs"]["gate"]
    metrics = [name for part in ("time", "rate", "value") for name in defs[f"{part}_metric"]["enum"]]

    assert sorted(METRICS) == sorted(metrics)
    assert {*TIME_STATS, "rate", "value"} == set(gate["properties"]["stat"]["enum"])
    assert set(FILE_KEYS) == set(SCHEMA["properties"])
    assert set(GATE_KEYS) == set(gate["properties"])
    assert list(REQUIRED) == gate["required"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"limit": 1.5}, {"limit": "1.5"}, {"limit": "1.1x"}, {"stat": "rate"}, {"stat": "p98"}, {"why": None},
        {"metric": "tftt"}, {"op": "=="}, {"where": {"worker": "w"}}, {"min_samples": 0}, {"decide": "never"},
        {"baseline": "b.json"}, {"method": "history"}, {"abort": {"afterwards": "3s"}}, {"severity": "error"},
        {"limit": "1%"}, {"metric": "error_rate", "stat": "rate"}, {"metric": "error_rate", "limit": "1%"},
        {"typo": 1},
    ],
)  # fmt: skip
def test_what_the_reader_refuses_the_schema_refuses_too(wrong, toml_gate):
    text = "version = 1\n" + toml_gate(**wrong)

    assert errors(tomllib.loads(text))
    with pytest.raises(GateFileError):
        parse_gates(text, "g.toml")


@pytest.mark.parametrize(
    "right",
    [
        {}, {"limit": "1m30s"}, {"limit": " 250 ms "}, {"baseline": "b.json", "limit": "1.10x"},
        {"metric": "requests", "stat": "value", "limit": 5}, {"abort": {"after": "3s"}},
        {"metric": "error_rate", "stat": "rate", "limit": "0.5 %"}, {"stat": "p99.9", "view": "request"},
        {"baseline": "given", "limit": "1.2x", "method": "mann_whitney", "min_runs": 5},
        {"metric": "tokens_per_second", "stat": "value", "limit": "250/s", "op": ">"},
    ],
)  # fmt: skip
def test_what_the_reader_takes_the_schema_takes_too(right, toml_gate):
    text = "version = 1\n" + toml_gate(**right)

    assert [] == errors(tomllib.loads(text))
    assert 1 == len(parse_gates(text, "g.toml").gates)


def test_verdicts_satisfy_their_schema(folder, record, rejected):
    gates = folder.gates(
        {"id": "pass"}, {"id": "never", "stat": "max"}, {"id": "few", "stat": "p99.9"},
        {"id": "rate", "metric": "error_rate", "stat": "rate", "limit": "1%", "decide": "interval"},
        {"id": "relative", "baseline": "none.json", "limit": "1.1x"},
    )  # fmt: skip
    verdict = judge_run(folder.run([rejected(0), *(record(i) for i in range(1, 100))]), gates)
    plain = json.loads(json.dumps(to_plain(verdict)))

    assert [] == errors(plain, VERDICT)
    assert ("fail", 20, [0.4, None, None, 0.01, 0.4]) == (
        plain["verdict"], plain["exit_code"], [gate["value"] for gate in plain["gates"]],
    )  # fmt: skip
    assert ["exact", "never", "never", "exact", "exact"] == [gate["bound"] for gate in plain["gates"]]
    assert 1 == plain["gates"][1]["failed_before"]

"""What is meant to be copied has to work: snippets, action, workflow and the documentation's tables."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from harness.judge.gatefile import GATE_KEYS, REQUIRED, parse_gates
from harness.judge.metrics import METRICS

REPOSITORY = Path(__file__).parents[2]
DOCS = (REPOSITORY / "docs" / "ci.md").read_text()
ACTION = yaml.safe_load((REPOSITORY / "action.yml").read_text())


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", DOCS, re.DOTALL)


def test_snippets_are_short_enough_to_copy():
    snippets = [*blocks("yaml"), *blocks("groovy")]

    assert 3 == len(snippets)
    assert all(snippet.count("\n") < 25 for snippet in snippets)


@pytest.mark.parametrize("snippet", blocks("yaml"))
def test_yaml_snippets_are_yaml(snippet):
    assert yaml.safe_load(snippet)


def test_groovy_snippets_close_their_braces():
    for snippet in blocks("groovy"):
        assert snippet.count("{") == snippet.count("}")


def test_the_example_gate_file_is_one():
    (text,) = blocks("toml")

    assert {"slo", "gate"} <= set(tomllib.loads(text))
    assert "first-word" == parse_gates(text, "docs/ci.md").gates[0].id


def test_the_tables_name_every_metric_and_every_key():
    prose = re.sub(r"```.*?```", "", DOCS, flags=re.DOTALL)
    words = {word for span in re.findall(r"`([^`]+)`", prose) for word in span.split()}

    assert set() == set(METRICS) - words
    assert set() == set(GATE_KEYS) - {*REQUIRED, "where"} - words


def test_what_the_documentation_points_to_exists():
    for target in re.findall(r"\]\((\.\./[^)]+)\)", DOCS):
        assert (REPOSITORY / "docs" / target).resolve().exists(), target


def test_the_action_passes_inputs_as_environment_and_never_into_a_script():
    """`${{ … }}` inside `run` would execute a branch's name."""
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
        assert "run" not in step or step["shell"] == "bash"


def test_the_actions_outputs_are_those_of_the_gate_step():
    assert ["gate"] == [step["id"] for step in ACTION["runs"]["steps"] if "id" in step]
    assert {"verdict", "exit-code"} == set(ACTION["outputs"])


def test_the_workflow_uses_the_action_as_it_is():
    workflow = yaml.safe_load((REPOSITORY / ".github" / "workflows" / "load-test.yml").read_text())
    (_, step) = workflow["jobs"]["smoke"]["steps"]

    assert "./" == step["uses"]
    assert set() == set(step["with"]) - set(ACTION["inputs"])
    assert (REPOSITORY / step["with"]["gates"]).exists()
    required = {name for name, about in ACTION["inputs"].items() if about.get("required")}
    assert required <= set(step["with"])

"""The boards are dashboards: they fit our schema of the parts of Grafana's that they use."""

from __future__ import annotations

import copy
import itertools
import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.boards.expand import BOARDS, panels

SCHEMA = json.loads((Path(__file__).parent / "dashboard.schema.json").read_text(encoding="utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)


def faults(board):
    return [f"{error.json_path}: {error.message[:200]}" for error in VALIDATOR.iter_errors(board)]


def test_the_schema_is_one():
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", BOARDS)
def test_boards_fit_the_schema(name):
    assert [] == faults(BOARDS[name])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schemaVersion",), 36),
        (("uid",), "Harness Overview"),
        (("panels",), []),
        (("panels", 0, "type"), "singlestat"),
        (("panels", 0, "gridPos", "w"), 25),
        (("panels", 0, "gridPos", "x"), "0"),
        (("panels", 0, "id"), None),
        (("panels", 0, "targets"), []),
        (("panels", 0, "targets", 0, "refId"), "query"),
        (("panels", 0, "targets", 0, "range"), True),  # instant as well
        (("panels", 0, "targets", 0, "format"), "csv"),
        (("panels", 0, "datasource"), "Prometheus"),
        (("panels", 0, "fieldConfig", "defaults", "color"), {"mode": "fixed"}),
        (("panels", 0, "fieldConfig", "defaults", "thresholds", "steps"), [{"color": "red", "value": 1}]),
        (("panels", 0, "fieldConfig", "defaults", "colour"), "red"),
        (("panels", 0, "options", "reduceOptions", "calcs"), ["median of all"]),
        (("panels", 0, "alert"), {}),
        (("templating", "list", 1, "refresh"), 5),
        (("templating", "list", 1, "query"), "label_values(run)"),
        (("annotations", "list"), []),
        (("rows",), []),
    ],
)
def test_the_schema_refuses(path, value):
    board = copy.deepcopy(BOARDS["harness-overview.json"])
    *keys, last = path
    at = board
    for key in keys:
        at = at[key]
    at[last] = value

    assert faults(board)


@pytest.mark.parametrize("name", BOARDS)
def test_panels_do_not_overlap_and_leave_no_hole_in_a_line(name):
    cells: dict[tuple[int, int], str] = {}
    for panel in BOARDS[name]["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24, panel["title"]
        for cell in itertools.product(range(at["x"], at["x"] + at["w"]), range(at["y"], at["y"] + at["h"])):
            assert cell not in cells, f"{panel['title']} over {cells[cell]}"
            cells[cell] = panel["title"]

    bottom = max(y for _, y in cells)
    assert {y for _, y in cells} == set(range(bottom + 1))


def test_boards_are_told_apart_and_linked():
    assert len({board["uid"] for board in BOARDS.values()}) == len(BOARDS) == 5
    for board in BOARDS.values():
        (link,) = board["links"]
        assert (board["tags"], link["tags"], link["includeVars"], link["keepTime"]) == (
            ["harness"],
            ["harness"],
            True,
            True,
        )


@pytest.mark.parametrize("name", BOARDS)
def test_every_board_says_first_what_the_data_is_and_last_whether_it_counts(name):
    board = BOARDS[name]
    row = next(p for p in board["panels"] if p["title"] == "Load generator: void if red")

    assert board["panels"][0]["title"] == "What this data is"
    assert 'simulated="true"' in board["panels"][0]["targets"][0]["expr"]
    assert 8 == sum(p["gridPos"]["y"] > row["gridPos"]["y"] for p in panels(board))
    assert ["Run start", "Run end"] == [mark["name"] for mark in board["annotations"]["list"]]

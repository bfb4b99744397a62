"""A board from rows of panels: positions on the grid of 24 columns, ids, and what every board has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.observe.boards.panels import Json
from harness.observe.boards.variables import links, marks

COLUMNS = 24
SCHEMA = 39
TAG = "harness"


@dataclass(frozen=True, slots=True)
class Placed:
    """A panel and its size in grid cells."""

    panel: Json
    width: int
    height: int


def small(panel: Json) -> Placed:
    """Return *panel* as one of eight numbers in a row."""
    return Placed(panel, 3, 4)


def chart(panel: Json) -> Placed:
    """Return *panel* as one of three charts in a row."""
    return Placed(panel, 8, 8)


def half(panel: Json) -> Placed:
    """Return *panel* as one of two charts in a row."""
    return Placed(panel, 12, 8)


def wide(panel: Json, height: int = 8) -> Placed:
    """Return *panel* over the whole width."""
    return Placed(panel, COLUMNS, height)


@dataclass(frozen=True, slots=True)
class Row:
    """A heading and the panels under it, placed from left to right; without a title only the panels."""

    title: str
    panels: Sequence[Placed]


def board(uid: str, title: str, about: str, variables: Sequence[Json], rows: Sequence[Row]) -> Json:
    """Return the dashboard."""
    return {
        "annotations": {"list": marks()},
        "description": about,
        "editable": False,
        "fiscalYearStartMonth": 0,
        "graphTooltip": 1,  # one crosshair over all panels
        "id": None,
        "links": links(TAG),
        "liveNow": False,
        "panels": _place(rows),
        "refresh": "10s",
        "schemaVersion": SCHEMA,
        "tags": [TAG],
        "templating": {"list": list(variables)},
        "time": {"from": "now-15m", "to": "now"},
        "timepicker": {},
        "timezone": "browser",
        "title": title,
        "uid": uid,
        "version": 1,
        "weekStart": "",
    }


def _place(rows: Sequence[Row]) -> list[Json]:
    placed: list[Json] = []
    y = 0
    for row in rows:
        if row.title:
            placed.append(
                {
                    "type": "row",
                    "title": row.title,
                    "collapsed": False,
                    "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1},
                    "panels": [],
                }
            )
            y += 1
        x = tallest = 0
        for one in row.panels:
            if x + one.width > COLUMNS:
                y, x, tallest = y + tallest, 0, 0
            placed.append({**one.panel, "gridPos": {"x": x, "y": y, "w": one.width, "h": one.height}})
            x, tallest = x + one.width, max(tallest, one.height)
        y += tallest
    return [{"id": number, **panel} for number, panel in enumerate(placed, 1)]

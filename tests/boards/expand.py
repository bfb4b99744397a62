"""Boards as a reader's Grafana sees them: every panel, every query, variables replaced by values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.observe.boards.files import boards

Json = dict[str, Any]

# Unlikely durations: a rule can tell that a range was Grafana's own and not written by hand.
UNLIKELY = {"__rate_interval": "1m23s", "__range": "4m56s"}

ALL = {"run": ".+", "gateway": ".+", "protocol": ".+", "scenario": ".+", "model": ".+"}
CHOSEN = {
    **ALL, "ttft_limit": "2.5", "objective": "0.95", "by": "run", "a": "r1", "b": "r2",
}  # fmt: skip

BOARDS = boards()


@dataclass(frozen=True)
class Asked:
    """One query of one panel."""

    board: str
    panel: str
    target: Json
    expr: str

    def __str__(self) -> str:
        return f"{self.board}: {self.panel} / {self.target['refId']}"


def panels(board: Json) -> Iterator[Json]:
    """Every panel that is no heading."""
    yield from (panel for panel in board["panels"] if panel["type"] != "row")


def expand(text: str, values: Mapping[str, str]) -> str:
    """Replace ``$name`` and ``${name}`` as Grafana does; a name without a value is an error."""
    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda found: values[found[1] or found[2]], text)


def queries(values: Mapping[str, str] = CHOSEN, boards: Mapping[str, Json] = BOARDS) -> Iterator[Asked]:
    """Every query of every panel, expanded."""
    for name, board in boards.items():
        for panel in panels(board):
            for target in panel["targets"]:
                yield Asked(name, panel["title"], target, expand(target["expr"], {**UNLIKELY, **values}))

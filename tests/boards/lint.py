"""Rules that every board has to keep, each a function from a board to its faults.

After Grafana's dashboard-linter (without its rules about the labels job and instance, which our boards do not
use), with the rule on counters done on the parsed query, and rules of our own. One difference: a counter may
also stand in ``last_over_time``. A run is a series of its own that begins at zero, so its last value is the
exact count of the run, where ``increase`` loses what came before the first scrape.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import promql_parser as promql

from harness.observe.boards.rules import recording
from harness.observe.families import FAMILIES, PREFIX
from tests.boards.expand import CHOSEN, UNLIKELY, Json, expand, panels

Rule = Callable[[Json], list[str]]

OURS = re.compile(r"harness_\w+")
# What Prometheus makes itself for every target.
SCRAPED = {"up", "scrape_duration_seconds"}
COUNTED_IN = {"rate", "irate", "increase", "last_over_time"}
UNITS = {"s", "short", "locale", "none", "percentunit", "reqps", "cps", "string", "dateTimeAsIso"}


def parsed(board: Json) -> Iterator[tuple[Json, Json, promql.Expr]]:
    """Panel, target and parsed query."""
    for panel in panels(board):
        for target in panel["targets"]:
            yield panel, target, promql.parse(expand(target["expr"], {**UNLIKELY, **CHOSEN}))


def walk(node: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Every node of a query with those above it, the nearest last."""
    yield node, above
    below: list[Any] = []
    for name in ("lhs", "rhs", "expr", "param"):
        child = getattr(node, name, None)
        if isinstance(child, promql.Expr):
            below.append(child)
    if isinstance(node, promql.Call):
        below += list(node.args)
    for child in below:
        yield from walk(child, (*above, node))


def selectors(node: Any) -> Iterator[tuple[promql.VectorSelector, tuple[Any, ...]]]:
    """Every selector with the nodes above it; of a range, the selector in it."""
    for one, above in walk(node):
        if isinstance(one, promql.VectorSelector) and not isinstance(
            above[-1:] and above[-1], promql.MatrixSelector
        ):
            yield one, above
        elif isinstance(one, promql.MatrixSelector):
            yield one.vector_selector, (*above, one)


def datasource_variable(board: Json) -> list[str]:
    first = board["templating"]["list"][0]
    good = (first["type"], first["name"], first["label"]) == ("datasource", "datasource", "Data source")
    return (
        [] if good else ["the first variable is no data source named 'datasource' with label 'Data source'"]
    )


def variables_are_chained_and_refreshed(board: Json) -> list[str]:
    faults = []
    names = [variable["name"] for variable in board["templating"]["list"]]
    if names[:6] != ["datasource", "run", "gateway", "protocol", "scenario", "model"]:
        faults.append(f"variables begin with {names[:6]}")
    for variable in board["templating"]["list"]:
        if variable["type"] != "query":
            continue
        found = re.fullmatch(r"label_values\((.+), (\$?\w+)\)", variable["query"]["query"])
        if variable["refresh"] != 2:
            faults.append(f"{variable['name']} is not refreshed when the time range changes")
        if variable["datasource"]["uid"] != "${datasource}":
            faults.append(f"{variable['name']} has a fixed data source")
        if variable["includeAll"] and variable["allValue"] != ".+":
            faults.append(f"{variable['name']}: All is not .+")
        try:
            promql.parse(expand(found[1] if found else "", CHOSEN))
        except (ValueError, KeyError) as error:
            faults.append(f"{variable['name']}: {error}")
    return faults


def panels_use_the_variable_data_source(board: Json) -> list[str]:
    found = [*panels(board), *(t for p in panels(board) for t in p["targets"]), *board["annotations"]["list"]]
    return [
        str(one.get("title") or one.get("expr"))
        for one in found
        if one["datasource"]["uid"] != "${datasource}"
    ]


def panels_have_title_and_description(board: Json) -> list[str]:
    faults = [f"panel {p['id']} has no title" for p in panels(board) if not p["title"].strip()]
    faults += [f"{p['title']}: no description" for p in panels(board) if len(p["description"]) < 20]
    return faults + [f"{p['title']}: names no metric" for p in panels(board) if "`" not in p["description"]]


def titles_fit_their_panel(board: Json) -> list[str]:
    """A small number is three cells wide, which on a common screen is room for 22 characters."""
    small = (panel for panel in panels(board) if panel["gridPos"]["w"] <= 3)
    return [panel["title"] for panel in small if len(panel["title"]) > 22]


def panels_have_a_unit(board: Json) -> list[str]:
    faults = []
    for panel in panels(board):
        config = panel["fieldConfig"]
        units = [config["defaults"].get("unit", "")]
        units += [p["value"] for o in config["overrides"] for p in o["properties"] if p["id"] == "unit"]
        wrong = [unit for unit in units if unit not in UNITS and not unit.startswith("suffix: ")]
        faults += [f"{panel['title']}: unit {unit!r}" for unit in wrong]
    return faults


def panels_ask_something(board: Json) -> list[str]:
    return [panel["title"] for panel in panels(board) if not panel["targets"]]


def targets_have_letters_of_their_own(board: Json) -> list[str]:
    faults = []
    for panel in panels(board):
        letters = [target["refId"] for target in panel["targets"]]
        if len(set(letters)) != len(letters):
            faults.append(f"{panel['title']}: {letters}")
    ids = [panel["id"] for panel in board["panels"]]
    return faults + ([] if len(set(ids)) == len(ids) else ["panel ids repeat"])


def queries_parse(board: Json) -> list[str]:
    faults = []
    for panel in panels(board):
        for target in panel["targets"]:
            try:
                promql.parse(expand(target["expr"], {**UNLIKELY, **CHOSEN}))
            except (ValueError, KeyError) as error:
                faults.append(f"{panel['title']} {target['refId']}: {error}")
    return faults


def rates_follow_the_scrape_interval(board: Json) -> list[str]:
    """Ranges are ``$__rate_interval`` over time and ``$__range`` for whole runs, never written by hand."""
    faults = []
    for panel, target, tree in parsed(board):
        for call, _ in walk(tree):
            if not isinstance(call, promql.Call):
                continue
            wanted = {"last_over_time": "__range"}.get(call.func.name, "__rate_interval")
            for argument in call.args:
                if isinstance(argument, promql.MatrixSelector):
                    seconds = argument.range.total_seconds()
                    if seconds != promql.parse_duration(UNLIKELY[wanted]).total_seconds():
                        faults.append(
                            f"{panel['title']} {target['refId']}: {call.func.name} over {seconds:g} s"
                        )
    return faults


def counters_are_counted_in_rates_or_runs(board: Json) -> list[str]:
    faults = []
    for panel, target, tree in parsed(board):
        for selector, above in selectors(tree):
            name = (selector.name or "").removeprefix(PREFIX)
            counts = name.endswith(("_total", "_bucket", "_sum", "_count"))
            inside = {node.func.name for node in above if isinstance(node, promql.Call)}
            if counts and not inside & COUNTED_IN:
                faults.append(f"{panel['title']} {target['refId']}: bare {selector.name}")
    return faults


def not_editable(board: Json) -> list[str]:
    return [] if board["editable"] is False else ["editable"]


def metrics_exist(board: Json) -> list[str]:
    """Every queried metric is exported, with the labels that the query matches."""
    faults = []
    for panel, target, tree in parsed(board):
        for selector, _ in selectors(tree):
            name = selector.name or ""
            if name in SCRAPED:
                continue
            family = family_of(name)
            if family is None:
                faults.append(f"{panel['title']} {target['refId']}: {name} is not exported")
                continue
            labels = {*FAMILIES[family].labels, "le"}
            unknown = {matcher.name for matcher in selector.matchers.matchers} - labels
            faults += [
                f"{panel['title']} {target['refId']}: {name} has no label {label}"
                for label in sorted(unknown)
            ]
    return faults


def family_of(name: str) -> str | None:
    """The family that a series' name belongs to."""
    bare = name.removeprefix(PREFIX)
    if bare in FAMILIES and FAMILIES[bare].kind != "histogram":
        return bare if name.startswith(PREFIX) else None
    base = bare.rpartition("_")[0]
    histogram = base in FAMILIES and FAMILIES[base].kind == "histogram"
    return base if histogram and bare.endswith(("_bucket", "_sum", "_count")) else None


def limits_are_bounds(board: Json) -> list[str]:
    """Whatever a reader may choose as a limit, or a query names as one, is a bound as it is spelled."""
    faults = []
    for variable in board["templating"]["list"]:
        if variable["name"] == "ttft_limit":
            bounds = [f"{bound!r}" for bound in FAMILIES["time_to_first_token_seconds"].bounds]
            faults += [
                f"{value} is no bound" for value in variable["query"].split(",") if value not in bounds
            ]
    for panel, target, tree in parsed(board):
        for selector, _ in selectors(tree):
            for matcher in selector.matchers.matchers:
                if matcher.name == "le":
                    family = FAMILIES[family_of(selector.name or "") or ""]
                    if matcher.value not in [repr(bound) for bound in family.bounds]:
                        faults.append(f"{panel['title']} {target['refId']}: le={matcher.value}")
    return faults


def ratios_guard_their_denominator(board: Json) -> list[str]:
    """Whatever divides cannot be zero: it is a number, or compared with zero first."""
    faults = []
    for panel, target, tree in parsed(board):
        for node, _ in walk(tree):
            if not isinstance(node, promql.BinaryExpr) or str(node.op) != "/":
                continue
            under = node.rhs
            while isinstance(under, promql.ParenExpr):
                under = under.expr
            guarded = isinstance(under, promql.BinaryExpr) and str(under.op) == ">"
            constant = not list(selectors(under))
            if not guarded and not constant:
                faults.append(f"{panel['title']} {target['refId']}: {under}")
    return faults


RULES: tuple[Rule, ...] = (
    datasource_variable,
    variables_are_chained_and_refreshed,
    panels_use_the_variable_data_source,
    panels_have_title_and_description,
    titles_fit_their_panel,
    panels_have_a_unit,
    panels_ask_something,
    targets_have_letters_of_their_own,
    queries_parse,
    rates_follow_the_scrape_interval,
    counters_are_counted_in_rates_or_runs,
    not_editable,
    metrics_exist,
    limits_are_bounds,
    ratios_guard_their_denominator,
)

RECORDED = {rule["record"] for group in recording()["groups"] for rule in group["rules"]}

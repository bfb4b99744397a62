"""Panels as Grafana's classic schema has them: one builder per kind, with what every panel of ours must have.

Title, description and unit are required arguments, so no panel can lack them. Colours judge only where there
is a judgement: a number without a limit is blue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any, Literal

Json = dict[str, Any]

DATASOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}
NEUTRAL: Json = {"mode": "fixed", "fixedColor": "blue"}

GOOD, WARN, BAD = "green", "orange", "red"

# One colour per thing wherever it is drawn.
SERIES_COLORS: Mapping[str, str] = {
    "offered": "text",
    "promised": "text",
    "ended": "blue",
    "completed": "green",
    "stalled": "red",
    "error_event": "dark-red",
    "http_error": "orange",
    "truncated": "purple",
    "cut": "dark-purple",
    "unterminated": "light-purple",
    "protocol_error": "dark-orange",
    "not_a_stream": "light-orange",
    "empty": "yellow",
    "connect_error": "dark-yellow",
    "no_response": "light-yellow",
    "abandoned": "text",
    "aborted": "text",
    "connecting": "light-blue",
    "waiting": "blue",
    "streaming": "green",
    "silent": "red",
    "thinking": "green",
    "dead": "red",
    "p50": "green",
    "p95": "orange",
    "p99": "red",
}


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a panel. `name` is the legend, with ``{{label}}`` for a label's value."""

    expr: str
    name: str = ""
    kind: Literal["range", "instant", "table", "heatmap"] = "range"


def targets(queries: Sequence[Query]) -> list[Json]:
    """Return the queries with their letters."""
    return [
        {
            "datasource": DATASOURCE,
            "editorMode": "code",
            "expr": query.expr,
            "format": {"table": "table", "heatmap": "heatmap"}.get(query.kind, "time_series"),
            "instant": query.kind in ("instant", "table"),
            "legendFormat": query.name or "__auto",
            "range": query.kind in ("range", "heatmap"),
            "refId": letter,
        }
        for letter, query in zip(ascii_uppercase, queries, strict=False)
    ]


def thresholds(*steps: tuple[float, str], base: str = GOOD) -> Json:
    """Return colours by value: *base* below the first step."""
    return {
        "mode": "absolute",
        "steps": [{"color": base, "value": None}, *({"color": c, "value": v} for v, c in steps)],
    }


def mapping(value: str, text: str, color: str) -> Json:
    """Return a rule that shows *text* for *value*."""
    return {"type": "value", "options": {value: {"text": text, "color": color, "index": 0}}}


def _panel(
    kind: str, title: str, about: str, queries: Sequence[Query], defaults: Json, options: Json
) -> Json:
    return {
        "type": kind,
        "title": title,
        "description": about,
        "datasource": DATASOURCE,
        "targets": targets(queries),
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": options,
    }


def stat(
    title: str,
    about: str,
    unit: str,
    *queries: Query,
    limits: Json | None = None,
    none: str = "no data",
    worst: str = "",
    mappings: Sequence[Json] = (),
    decimals: int | None = None,
) -> Json:
    """Return one large number: the value of instant queries, or with *worst* a reduction (``max``) over time.

    *limits* colour it; without them it is neutral. *none* is what stands there without data.
    """
    defaults: Json = {
        "unit": unit,
        "noValue": none,
        "color": {"mode": "thresholds"} if limits else NEUTRAL,
        "thresholds": limits or thresholds(base="blue"),
        "mappings": list(mappings),
    }
    if decimals is not None:
        defaults["decimals"] = decimals
    options = {
        "colorMode": "background" if mappings else "value",
        "graphMode": "area" if worst else "none",
        "justifyMode": "center",
        "orientation": "auto",
        "reduceOptions": {"calcs": [worst or "lastNotNull"], "fields": "", "values": False},
        "textMode": "value_and_name" if len(queries) > 1 else "value",
    }
    return _panel("stat", title, about, queries, defaults, options)


def timeseries(
    title: str,
    about: str,
    unit: str,
    *queries: Query,
    stacked: bool = False,
    right: Mapping[str, str] | None = None,
    dashed: Sequence[str] = (),
    lines: Json | None = None,
) -> Json:
    """Return lines over time. *right* maps legends (a regex) to the unit of an axis on the right side.

    *dashed* names the series that are a promise or a limit; *lines* are thresholds to draw.
    """
    custom: Json = {
        "drawStyle": "line",
        "fillOpacity": 30 if stacked else 8,
        "lineWidth": 1,
        "pointSize": 4,
        "showPoints": "auto",  # a run of a few samples is points, not lines
        "spanNulls": False,
        "stacking": {"group": "A", "mode": "normal" if stacked else "none"},
        "thresholdsStyle": {"mode": "dashed" if lines else "off"},
    }
    defaults: Json = {
        "unit": unit,
        "min": 0,
        "noValue": "no data",
        "color": {"mode": "palette-classic"},
        "custom": custom,
        "thresholds": lines or thresholds(base="blue"),
    }
    options = {
        "legend": {
            "calcs": ["lastNotNull", "max"],
            "displayMode": "table",
            "placement": "bottom",
            "showLegend": True,
        },
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    panel = _panel("timeseries", title, about, queries, defaults, options)
    overrides: list[Json] = panel["fieldConfig"]["overrides"]
    for name, color in SERIES_COLORS.items():
        if any(_may_be_called(query.name, name) for query in queries):
            fixed = {"id": "color", "value": {"mode": "fixed", "fixedColor": color}}
            overrides.append(_override("byName", name, fixed))
    for name in dashed:
        style = {"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [10, 10]}}
        overrides.append(_override("byRegexp", name, style, {"id": "custom.fillOpacity", "value": 0}))
    for name, other in (right or {}).items():
        axis = {"id": "custom.axisPlacement", "value": "right"}
        overrides.append(_override("byRegexp", name, axis, {"id": "unit", "value": other}))
    return panel


_VALUES_OF: Mapping[str, frozenset[str]] = {
    "{{phase}}": frozenset({"connecting", "waiting", "streaming", "silent"}),
    "{{kind}}": frozenset({"thinking", "dead"}),
}


def _may_be_called(legend: str, name: str) -> bool:
    if legend == "{{outcome}}":
        return name not in {"p50", "p95", "p99", "offered", "ended", "promised"} and not any(
            name in known for known in _VALUES_OF.values()
        )
    return legend == name or name in _VALUES_OF.get(legend, ())


def _override(matcher: str, name: str, *properties: Json) -> Json:
    return {"matcher": {"id": matcher, "options": name}, "properties": list(properties)}


def heatmap(title: str, about: str, expr: str) -> Json:
    """Return how often which duration (seconds) occurred, over time; *expr* gives buckets by ``le``."""
    defaults: Json = {
        "unit": "s",
        "custom": {
            "hideFrom": {"legend": False, "tooltip": False, "viz": False},
            "scaleDistribution": {"type": "linear"},
        },
    }
    options = {
        "calculate": False,
        "cellGap": 1,
        "color": {"mode": "scheme", "scheme": "Turbo", "scale": "exponential", "exponent": 0.5, "steps": 64},
        "exemplars": {"color": "rgba(255,0,255,0.7)"},
        "filterValues": {"le": 1e-9},  # empty cells stay empty
        "legend": {"show": True},
        "rowsFrame": {"layout": "auto"},
        "tooltip": {"mode": "single", "showColorScale": True, "yHistogram": True},
        "yAxis": {"axisPlacement": "left", "reverse": False, "unit": "s"},
    }
    return _panel("heatmap", title, about, [Query(expr, "{{le}}", "heatmap")], defaults, options)


def bars(title: str, about: str, unit: str, *queries: Query, limits: Json | None = None) -> Json:
    """Return one bar per series, of instant queries."""
    defaults: Json = {
        "unit": unit,
        "min": 0,
        "noValue": "none",
        "color": {"mode": "thresholds"} if limits else NEUTRAL,
        "thresholds": limits or thresholds(base="blue"),
    }
    options = {
        "displayMode": "basic",
        "orientation": "horizontal",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "showUnfilled": True,
        "valueMode": "color",
    }
    return _panel("bargauge", title, about, queries, defaults, options)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: the value of a query, or (with an empty `expr`) a label. `unit` is Grafana's."""

    title: str
    unit: str = "string"
    expr: str = ""
    limits: Json | None = None


def table(title: str, about: str, labels: Mapping[str, str], *columns: Column) -> Json:
    """Return a table with a row per set of *labels* (label to title) and a column per query."""
    queries = [Query(column.expr, "", "table") for column in columns]
    names = {
        f"Value #{letter}" if len(columns) > 1 else "Value": column.title
        for letter, column in zip(ascii_uppercase, columns, strict=False)
    }
    defaults: Json = {
        "unit": "short",
        "noValue": "–",
        "color": NEUTRAL,
        "custom": {"align": "auto", "cellOptions": {"type": "auto"}, "filterable": False},
        "thresholds": thresholds(base="text"),
    }
    options = {
        "cellHeight": "sm",
        "footer": {"show": False, "fields": "", "reducer": ["sum"]},
        "showHeader": True,
    }
    panel = _panel("table", title, about, queries, defaults, options)
    panel["transformations"] = [
        {"id": "merge", "options": {}},
        {
            "id": "organize",
            "options": {
                "excludeByName": {"Time": True},
                "indexByName": {name: at for at, name in enumerate([*labels, *names])},
                "renameByName": {**labels, **names},
            },
        },
    ]
    for column in columns:
        properties: list[Json] = [{"id": "unit", "value": column.unit}]
        if column.limits:
            properties += [
                {"id": "thresholds", "value": column.limits},
                {"id": "color", "value": {"mode": "thresholds"}},
                {"id": "custom.cellOptions", "value": {"type": "color-text"}},
            ]
        panel["fieldConfig"]["overrides"].append(_override("byName", column.title, *properties))
    return panel

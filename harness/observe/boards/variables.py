"""What a reader chooses on a board (data source, run, …), the marks of a run, and links between boards."""

from __future__ import annotations

from collections.abc import Sequence

from harness.observe.boards.panels import DATASOURCE, Json
from harness.observe.families import PREFIX

# Both are bounds of the first-token histogram, so that attainment is a count and no guess.
TTFT_LIMITS = ("0.5", "1.0", "2.5", "5.0", "10.0", "30.0", "60.0")
TTFT_DEFAULT = "2.5"
OBJECTIVES = ("0.9", "0.95", "0.99", "0.999")
OBJECTIVE_DEFAULT = "0.95"


def standard(*, every_run: bool = False) -> list[Json]:
    """Return the six variables of every board, each limited by those before it.

    A board is about one run (the newest by name, until another is chosen): two in one number would be
    neither. *every_run* is for boards that compare.
    """
    chosen = 'run=~"$run",gateway=~"$gateway"'
    streams = f"{PREFIX}open_streams"  # has its labels from the first request on, before anything ended
    return [
        _datasource(),
        _query("run", "Run", f"label_values({PREFIX}run_info, run)", every=every_run, newest=True),
        _query("gateway", "Gateway", f'label_values({PREFIX}run_info{{run=~"$run"}}, gateway)'),
        _query("protocol", "Protocol", f"label_values({streams}{{{chosen}}}, protocol)"),
        _query(
            "scenario", "Scenario", f'label_values({streams}{{{chosen},protocol=~"$protocol"}}, scenario)'
        ),
        _query(
            "model",
            "Model",
            f'label_values({streams}{{{chosen},protocol=~"$protocol",scenario=~"$scenario"}}, model)',
        ),
    ]


def objectives() -> list[Json]:
    """Return what a run is held against: a limit for the first token, and how many have to keep it."""
    return [
        custom("ttft_limit", "TTFT objective (s)", TTFT_LIMITS, TTFT_DEFAULT),
        custom("objective", "Objective (share)", OBJECTIVES, OBJECTIVE_DEFAULT),
    ]


def sides() -> list[Json]:
    """Return what a comparison is by, and its two sides: the first and the last value by name."""
    values = f"label_values({PREFIX}run_info, $by)"
    return [
        custom("by", "Compare by", ("run", "gateway"), "run"),
        _query("a", "A", values, every=False, several=False),
        _query("b", "B", values, every=False, several=False, newest=True),
    ]


def custom(name: str, label: str, values: Sequence[str], default: str) -> Json:
    """Return a variable with fixed values."""
    return {
        "name": name,
        "label": label,
        "type": "custom",
        "query": ",".join(values),
        "options": [{"selected": value == default, "text": value, "value": value} for value in values],
        "current": {"selected": True, "text": default, "value": default},
        "hide": 0,
        "includeAll": False,
        "multi": False,
        "skipUrlSync": False,
    }


def _datasource() -> Json:
    return {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "regex": "",
        "current": {},
        "hide": 0,
        "includeAll": False,
        "multi": False,
        "options": [],
        "refresh": 1,
        "skipUrlSync": False,
    }


def _query(
    name: str, label: str, query: str, *, every: bool = True, several: bool = True, newest: bool = False
) -> Json:
    made: Json = {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": DATASOURCE,
        "definition": query,
        "query": {"query": query, "refId": f"Variable-{name}"},
        "regex": "",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]} if every else {},
        "hide": 0,
        "includeAll": every,
        "multi": several,
        "options": [],
        "refresh": 2,  # also when the time range changes
        "skipUrlSync": False,
        "sort": 2 if newest else 1,  # 2: descending, so that the first is the newest of names that are times
    }
    if every:
        made["allValue"] = ".+"
    return made


def marks() -> list[Json]:
    """Return the marks at which a run began and ended: from its own series, so also after a backfill."""
    return [
        _annotation("Run start", "start", "green", "began"),
        _annotation("Run end", "end", "red", "ended"),
    ]


def _annotation(name: str, which: str, color: str, verb: str) -> Json:
    return {
        "name": name,
        "datasource": DATASOURCE,
        "enable": True,
        "hide": False,
        "iconColor": color,
        "expr": f'{PREFIX}run_{which}_timestamp_seconds{{run=~"$run",gateway=~"$gateway"}} * 1000',
        "useValueForTime": "on",
        "step": "10s",
        "titleFormat": f"Run {{{{run}}}} {verb}",
        "textFormat": "{{gateway}}",
        "tagKeys": "run,gateway",
    }


def links(tag: str) -> list[Json]:
    """Return a menu of all boards that keeps what was chosen."""
    return [
        {
            "asDropdown": False,
            "icon": "external link",
            "includeVars": True,
            "keepTime": True,
            "tags": [tag],
            "targetBlank": False,
            "title": "",
            "tooltip": "",
            "type": "dashboards",
            "url": "",
        }
    ]

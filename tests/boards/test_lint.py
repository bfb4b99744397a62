"""Every board keeps every rule, and every rule is seen to fail on a board that breaks it."""

from __future__ import annotations

import copy

import pytest

from harness.observe.families import FAMILIES, PREFIX
from tests.boards import lint
from tests.boards.expand import BOARDS, panels


@pytest.mark.parametrize("rule", lint.RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("name", BOARDS)
def test_boards_keep_the_rules(rule, name):
    assert [] == rule(BOARDS[name])


def variable(board, name):
    return next(v for v in board["templating"]["list"] if v["name"] == name)


def first(board):
    return next(panels(board))


def ask(expr):
    def breaks(board):
        first(board)["targets"][0]["expr"] = expr

    return breaks


def put(path, value):
    """Set a value in the first panel, in the board, or in a variable."""

    def breaks(board):
        where, *keys, last = path
        at = first(board) if where == "panel" else board if where == "board" else variable(board, where)
        for key in keys:
            at = at[key]
        at[last] = value

    return breaks


BROKEN = [
    (lint.datasource_variable, put(("datasource", "name"), "ds")),
    (lint.datasource_variable, put(("datasource", "label"), "Source")),
    (lint.variables_are_chained_and_refreshed, put(("run", "refresh"), 1)),
    (lint.variables_are_chained_and_refreshed, put(("gateway", "allValue"), ".*")),
    (lint.variables_are_chained_and_refreshed, put(("model", "query"), {"query": "label_values(a{, model)"})),
    (lint.variables_are_chained_and_refreshed, put(("protocol", "datasource"), {"uid": "abc"})),
    (lint.variables_are_chained_and_refreshed, lambda board: board["templating"]["list"].pop(3)),
    (lint.panels_use_the_variable_data_source, put(("panel", "datasource"), {"uid": "abc"})),
    (lint.panels_use_the_variable_data_source, put(("panel", "targets", 0, "datasource"), {"uid": "abc"})),
    (lint.panels_have_title_and_description, put(("panel", "title"), " ")),
    (lint.panels_have_title_and_description, put(("panel", "description"), "")),
    (lint.panels_have_title_and_description, put(("panel", "description"), "says much and names no metric")),
    (
        lint.titles_fit_their_panel,
        lambda board: list(panels(board))[1].update(title="Longer than it has room"),
    ),
    (lint.panels_have_a_unit, put(("panel", "fieldConfig", "defaults", "unit"), "")),
    (lint.panels_have_a_unit, put(("panel", "fieldConfig", "defaults", "unit"), "seconds")),
    (lint.panels_ask_something, put(("panel", "targets"), [])),
    (lint.targets_have_letters_of_their_own, put(("panel", "id"), 3)),
    (
        lint.targets_have_letters_of_their_own,
        lambda board: first(board)["targets"].append(first(board)["targets"][0]),
    ),
    (lint.queries_parse, ask("sum(rate(harness_requests_total[1m])")),
    (lint.queries_parse, ask("sum(harness_users{run='$nobody'})")),
    (lint.rates_follow_the_scrape_interval, ask("sum(rate(harness_requests_total[5m]))")),
    (lint.rates_follow_the_scrape_interval, ask("sum(increase(harness_requests_total[$__range]))")),
    (
        lint.rates_follow_the_scrape_interval,
        ask("sum(last_over_time(harness_requests_total[$__rate_interval]))"),
    ),
    (lint.counters_are_counted_in_rates_or_runs, ask('sum(harness_requests_total{run=~"$run"})')),
    (
        lint.counters_are_counted_in_rates_or_runs,
        ask("max_over_time(harness_stall_duration_seconds_sum[$__range])"),
    ),
    (lint.not_editable, put(("board", "editable"), True)),
    (lint.metrics_exist, ask("sum(harness_streams_total)")),
    (lint.metrics_exist, ask("sum(requests_total)")),
    (lint.metrics_exist, ask("sum(harness_request_attempts)")),
    (lint.metrics_exist, ask('sum(harness_users{run=~"$run"})')),
    (lint.limits_are_bounds, put(("ttft_limit", "query"), "1.0,2.4")),
    (lint.limits_are_bounds, put(("ttft_limit", "query"), "1")),
    (
        lint.limits_are_bounds,
        ask('sum(rate(harness_time_to_first_token_seconds_bucket{le="1"}[$__rate_interval]))'),
    ),
    (lint.ratios_guard_their_denominator, ask("sum(harness_users) / sum(harness_open_streams)")),
    (lint.ratios_guard_their_denominator, ask("1 - (harness_users / (harness_users))")),
]


@pytest.mark.parametrize(("rule", "breaks"), BROKEN, ids=lambda value: getattr(value, "__name__", ""))
def test_a_rule_fails_where_it_is_broken(rule, breaks):
    board = copy.deepcopy(BOARDS["harness-overview.json"])
    breaks(board)

    assert rule(board)


def test_every_rule_was_seen_to_fail():
    assert set(lint.RULES) == {rule for rule, _ in BROKEN}


def test_every_metric_is_on_some_panel():
    """A metric that nobody looks at is either missing on a board or not needed."""
    shown = {
        lint.family_of(selector.name or "")
        for board in BOARDS.values()
        for _, _, tree in lint.parsed(board)
        for selector, _ in lint.selectors(tree)
    }
    marks = {
        mark["expr"].partition("{")[0].removeprefix(PREFIX) for mark in first_board()["annotations"]["list"]
    }
    # Its number is in the alert HarnessWorkerSilent; on a board it would be one line per worker.
    elsewhere = {"worker_report_age_seconds"}

    assert elsewhere == set(FAMILIES) - shown - marks


def first_board():
    return BOARDS["harness-overview.json"]

"""Every alert, once where it has to fire and once where it must not, judged by promtool.

Series are in promtool's notation: ``0+2x60`` is a counter that rises by 2 a step; a step is 15 s.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.observe.boards.files import generate
from harness.observe.boards.rules import ALERTS, alerts, recording
from tests.boards.lint import RECORDED, SCRAPED, family_of, selectors
from tests.prometheus.server import promtool

import promql_parser as promql  # isort: skip

RUN = 'run="r1",gateway="g"'
STREAM = f'{RUN},protocol="chat",scenario="s",model="m"'
ON = {f"harness_run_start_timestamp_seconds{{{RUN}}}": "1700000000x400"}
ENDED = {f"harness_run_end_timestamp_seconds{{{RUN}}}": "1700000100x400"}


def attempts(**outcomes: str) -> dict[str, str]:
    """Attempts by outcome."""
    return {
        f'harness_attempts_total{{{STREAM},finish="x",status="200",outcome="{outcome}"}}': values
        for outcome, values in outcomes.items()
    }


def first_tokens(within: str, all_of_them: str) -> dict[str, str]:
    """First tokens within 5 s, and all."""
    return {
        f'harness_time_to_first_token_seconds_bucket{{{STREAM},le="{le}"}}': values
        for le, values in (("5.0", within), ("+Inf", all_of_them))
    }


def stalls(values: str, class_: str = "keepalive_only_mid", fatal: str = "true") -> dict[str, str]:
    return {f'harness_stalls_total{{{STREAM},stall_class="{class_}",fatal="{fatal}"}}': values}


def lag(fast: str, slow: str) -> dict[str, str]:
    """Waits of the event loop: up to 1 ms, and up to 100 ms."""
    return {
        f'harness_hub_lag_seconds_bucket{{worker="w1",le="{le}"}}': values
        for le, values in (("0.001", fast), ("0.05", fast), ("0.1", slow), ("+Inf", slow))
    }


@dataclass(frozen=True)
class Case:
    """At *at*, the alert fires with these labels and this number in its description, or not at all."""

    alert: str
    what: str
    series: dict[str, str]
    labels: dict[str, str] | None = None
    number: str = ""
    at: str = "10m"
    external: dict[str, str] = field(default_factory=dict)


PROTOCOL = {"run": "r1", "gateway": "g", "protocol": "chat"}
WHOLE_RUN = {"run": "r1", "gateway": "g"}

CASES = [
    Case(
        "HarnessStallRate",
        "2 % of the attempts stall",
        {**attempts(completed="0+49x60", stalled="0+1x60"), **stalls("0+1x60")},
        PROTOCOL,
        "2%",
    ),
    Case(
        "HarnessStallRate",
        "0.5 % stall",
        {**attempts(completed="0+199x60", stalled="0+1x60"), **stalls("0+1x60")},
    ),
    Case(
        "HarnessStallRate",
        "only warnings",
        {**attempts(completed="0+50x60"), **stalls("0+10x60", "slow_progress", "false")},
    ),
    Case(
        "HarnessStallRate",
        "watched ones that came back",
        {**attempts(completed="0+50x60"), **stalls("0+10x60", fatal="false")},
    ),
    Case(
        "HarnessStallRate",
        "one of four attempts is no rate",
        {**attempts(completed="0x3 3x57", stalled="0x3 1x57"), **stalls("0x3 1x57")},
        at="2m",
    ),
    Case(
        "HarnessStallRate",
        "stalls of a run that is long over",
        {**attempts(completed="0+49x20 _x60", stalled="0+1x20 _x60"), **stalls("0+1x20 _x60")},
        at="15m",
    ),
    Case(
        "HarnessKeepaliveViolations",
        "a tenth is broken",
        {
            f'harness_keepalives_total{{{STREAM},kind="comment"}}': "0+20x60",
            f'harness_keepalive_deviations_total{{{STREAM},severity="violation"}}': "0+2x60",
        },
        PROTOCOL,
        "10%",
    ),
    Case(
        "HarnessKeepaliveViolations",
        "late is not broken",
        {
            f'harness_keepalives_total{{{STREAM},kind="comment"}}': "0+20x60",
            f'harness_keepalive_deviations_total{{{STREAM},severity="late"}}': "0+9x60",
        },
    ),
    Case(
        "HarnessTtftBurnFast",
        "a fifth is late",
        {**attempts(completed="0+50x400"), **first_tokens("0+40x400", "0+50x400")},
        PROTOCOL,
        "20%",
        "70m",
    ),
    Case(
        "HarnessTtftBurnFast",
        "a fifth fails before its first token",
        {**attempts(completed="0+40x400", http_error="0+10x400"), **first_tokens("0+40x400", "0+40x400")},
        PROTOCOL,
        "20%",
        "70m",
    ),
    Case(
        "HarnessTtftBurnFast",
        "none has a first token at all",
        attempts(http_error="0+10x400"),
        PROTOCOL,
        "100%",
        "70m",
    ),
    Case(
        "HarnessTtftBurnFast",
        "a tenth is late",
        {**attempts(completed="0+50x400"), **first_tokens("0+45x400", "0+50x400")},
        at="70m",
    ),
    Case(
        "HarnessTtftBurnFast",
        "those that the client ended do not count",
        {**attempts(completed="0+50x400", aborted="0+50x400"), **first_tokens("0+50x400", "0+50x400")},
        at="70m",
    ),
    Case(
        "HarnessTtftBurnFast",
        "it was so, and is over",
        {**attempts(completed="0+50x400"), **first_tokens("0+40x240 9610+50x160", "0+50x400")},
        at="69m",
    ),
    Case(
        "HarnessTtftBurnSlow",
        "a tenth is late",
        {**attempts(completed="0+50x400"), **first_tokens("0+45x400", "0+50x400")},
        PROTOCOL,
        "10%",
        "70m",
    ),
    Case(
        "HarnessTtftBurnSlow",
        "a twentieth is late",
        {**attempts(completed="0+50x400"), **first_tokens("0+48x400", "0+50x400")},
        at="70m",
    ),
    Case(
        "HarnessErrorEvents",
        "5 % end with an error",
        {
            **attempts(completed="0+95x60", error_event="0+5x60"),
            f'harness_error_events_total{{{STREAM},error_type="server_error",phase="mid_stream"}}': "0+5x60",
        },
        PROTOCOL,
        "5%",
    ),
    Case(
        "HarnessErrorEvents",
        "half a per cent",
        {
            **attempts(completed="0+199x60", error_event="0+1x60"),
            f'harness_error_events_total{{{STREAM},error_type="server_error",phase="mid_stream"}}': "0+1x60",
        },
    ),
    Case(
        "HarnessGeneratorLag",
        "a tenth of the waits is 100 ms",
        {**ON, **lag("0+90x60", "0+100x60")},
        {"worker": "w1"},
        "95ms",
    ),
    Case("HarnessGeneratorLag", "all is quick", {**ON, **lag("0+100x60", "0+100x60")}),
    Case("HarnessGeneratorLag", "slow, but no run is on", lag("0+90x60", "0+100x60")),
    Case("HarnessGeneratorLag", "slow after the run", {**ON, **ENDED, **lag("0+90x60", "0+100x60")}),
    Case(
        "HarnessGeneratorCpu",
        "a full core",
        {**ON, 'harness_generator_cpu_ratio{worker="w1"}': "0.97x60"},
        {"worker": "w1"},
        "97%",
    ),
    Case("HarnessGeneratorCpu", "half a core", {**ON, 'harness_generator_cpu_ratio{worker="w1"}': "0.5x60"}),
    Case(
        "HarnessGeneratorCpu",
        "a full core without a run",
        {'harness_generator_cpu_ratio{worker="w1"}': "0.97x60"},
    ),
    Case(
        "HarnessGeneratorCpu",
        "a full core for a moment",
        {**ON, 'harness_generator_cpu_ratio{worker="w1"}': "0.5x39 0.97 0.5x20"},
    ),
    Case(
        "HarnessArrivalsDropped",
        "a tenth is dropped",
        {
            f'harness_arrivals_total{{{STREAM},result="started"}}': "0+90x60",
            f'harness_arrivals_total{{{STREAM},result="dropped"}}': "0+10x60",
        },
        PROTOCOL,
        "10%",
    ),
    Case(
        "HarnessArrivalsDropped",
        "none is dropped",
        {
            f'harness_arrivals_total{{{STREAM},result="started"}}': "0+90x60",
            f'harness_arrivals_total{{{STREAM},result="dropped"}}': "0x60",
        },
    ),
    Case(
        "HarnessWorkerLost",
        "one is missing",
        {**ON, 'harness_workers{state="missing"}': "1x60", 'harness_workers{state="running"}': "3x60"},
        {},
        "1 workers",
    ),
    Case(
        "HarnessWorkerLost",
        "all are there",
        {**ON, 'harness_workers{state="missing"}': "0x60", 'harness_workers{state="running"}': "4x60"},
    ),
    Case(
        "HarnessWorkerLost",
        "missing after the run",
        {**ON, **ENDED, 'harness_workers{state="missing"}': "1x60"},
    ),
    Case(
        "HarnessWorkerSilent",
        "twelve seconds",
        {**ON, 'harness_worker_report_age_seconds{worker="w2"}': "12x60"},
        {"worker": "w2"},
        "12s",
    ),
    Case(
        "HarnessWorkerSilent",
        "three seconds",
        {**ON, 'harness_worker_report_age_seconds{worker="w2"}': "3x60"},
    ),
    Case(
        "HarnessExporterGone",
        "a run stops in the middle",
        {f"harness_run_start_timestamp_seconds{{{RUN}}}": "1700000000x20 stale"},
        WHOLE_RUN,
        "2023-11-14",
        "8m",
    ),
    Case("HarnessExporterGone", "the run is on", ON),
    Case(
        "HarnessExporterGone",
        "it ended, and then the exporter went",
        {
            f"harness_run_start_timestamp_seconds{{{RUN}}}": "1700000000x20 stale",
            f"harness_run_end_timestamp_seconds{{{RUN}}}": "_x19 1700000100 stale",
        },
        at="8m",
    ),
    Case(
        "HarnessExporterGone",
        "it went a quarter of an hour ago",
        {f"harness_run_start_timestamp_seconds{{{RUN}}}": "1700000000x20 stale"},
        at="20m",
    ),
    Case("HarnessExporterGone", "there never was a run", {'up{job="harness"}': "0x60"}),
    Case(
        "HarnessRunInvalid",
        "two reasons, one of them here",
        {f'harness_run_valid{{{RUN},reason="late_arrivals"}}': "0x60"},
        {**WHOLE_RUN, "reason": "late_arrivals"},
        "judged 0",
    ),
    Case("HarnessRunInvalid", "valid", {f'harness_run_valid{{{RUN},reason="none"}}': "1x60"}),
]

MADE = generate()
BY_NAME = {rule["alert"]: rule for group in alerts()["groups"] for rule in group["rules"]}


def judge(folder: Path, *groups: dict[str, Any]) -> Any:
    """What promtool says of groups of cases, all in one run: starting it costs more than judging."""
    for name in ("recording", "alerts"):
        text = MADE[f"dashboards/prometheus/{name}.yml"]
        (folder / f"{name}.yml").write_text(text, encoding="utf-8")
    test = {"rule_files": ["recording.yml", "alerts.yml"], "evaluation_interval": "30s", "tests": groups}
    (folder / "test.yml").write_text(json.dumps(test), encoding="utf-8")
    return promtool("test", "rules", str(folder / "test.yml"))


def group(case: Case, labels: dict[str, str] | None) -> dict[str, Any]:
    """*case* as promtool takes it; labels None: nothing may fire."""
    rule = BY_NAME[case.alert]
    expected = []
    if labels is not None:
        annotations = {
            "summary": filled(rule["annotations"]["summary"], labels),
            "description": describe(case),
            "runbook_url": rule["annotations"]["runbook_url"],
        }
        full = {**labels, "severity": rule["labels"]["severity"]}
        expected = [{"exp_labels": full, "exp_annotations": annotations}]
    return {
        "name": case.what,
        "interval": "15s",
        "input_series": [{"series": name, "values": values} for name, values in case.series.items()],
        "alert_rule_test": [{"eval_time": case.at, "alertname": case.alert, "exp_alerts": expected}],
    }


def filled(template: str, labels: dict[str, str]) -> str:
    return re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda found: labels[found[1]], template)


def describe(case: Case) -> str:
    """The description with the number that the case names in the place of the template's."""
    template = filled(BY_NAME[case.alert]["annotations"]["description"], case.labels or {})
    number = re.sub(r"[^0-9a-z%.\- ].*", "", case.number)
    value = re.search(r"\{\{ \$value[^}]*\}\}", template)
    assert value
    after = template[value.end() :]
    shown = number.removesuffix(" workers").removeprefix("judged ")
    if case.alert == "HarnessExporterGone":
        shown = "2023-11-14 22:13:20 +0000 UTC"
    return template[: value.start()] + shown + after


@pytest.mark.parametrize("name", BY_NAME)
def test_an_alert_fires_where_it_has_to_and_nowhere_else(name, tmp_path):
    cases = [case for case in CASES if case.alert == name]
    assert {True, False} == {case.labels is not None for case in cases}

    done = judge(tmp_path, *(group(case, case.labels) for case in cases))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("case", [CASES[0], CASES[1]], ids=["fires", "does not"])
def test_promtool_would_have_said_so(case, tmp_path):
    """The opposite expectation fails, so the tests above prove something."""
    opposite = None if case.labels is not None else PROTOCOL

    assert judge(tmp_path, group(case, opposite)).returncode == 1


def test_rules_and_configuration_are_right_by_promtool(tmp_path):
    made = MADE
    for path in ("recording.yml", "alerts.yml", "prometheus.yml"):
        (tmp_path / path).write_text(made[f"dashboards/prometheus/{path}"], encoding="utf-8")

    checked = promtool("check", "config", str(tmp_path / "prometheus.yml"))
    assert (checked.returncode, checked.stdout.count("SUCCESS")) == (0, 4), checked.stderr
    (tmp_path / "alerts.yml").write_text(
        made["dashboards/prometheus/alerts.yml"].replace("rate5m > 0.01", "rate5m >")
    )
    assert promtool("check", "config", str(tmp_path / "prometheus.yml")).returncode == 1


def test_rules_ask_for_what_is_exported_or_recorded():
    exprs = [
        r["expr"] for made in (recording(), alerts()) for group in made["groups"] for r in group["rules"]
    ]
    names = {selector.name or "" for expr in exprs for selector, _ in selectors(promql.parse(expr))}

    assert set() == {name for name in names - RECORDED - SCRAPED if family_of(name) is None}


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_every_alert_says_who_what_and_how_bad(alert):
    rule = BY_NAME[alert.name]

    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert "$value" in rule["annotations"]["description"]
    assert rule["annotations"]["runbook_url"] == f"docs/runbook.md#{alert.heading.lower().replace(' ', '-')}"

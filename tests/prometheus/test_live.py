"""A real run, simulated gateway, real Prometheus: the panels say what summary.json says."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.observe.buckets import FIRST_TOKEN
from harness.observe.results import read_records
from tests.boards.expand import BOARDS, CHOSEN, expand, panels
from tests.ports import find_free_port
from tests.prometheus.server import Prometheus, promtool

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parents[2]
VALUES = {**CHOSEN, "run": "live", "__rate_interval": "4s", "__range": "2m"}


@dataclass
class Live:
    """A finished run: its folder, its summary, and the Prometheus that watched it."""

    prometheus: Prometheus
    folder: Path
    summary: dict[str, Any]
    at: float

    def panel(self, board: str, title: str, query: int = 0) -> Any:
        """A number, or numbers by the values of their labels."""
        panel = next(p for p in panels(BOARDS[f"harness-{board}.json"]) if p["title"] == title)
        found = self.prometheus.instant(expand(panel["targets"][query]["expr"], VALUES), self.at)
        if len(found) == 1 and not found[0]["metric"]:
            return float(found[0]["value"][1])
        return {"|".join(s["metric"][k] for k in sorted(s["metric"])): float(s["value"][1]) for s in found}


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    folder = tmp_path_factory.mktemp("live")
    port = find_free_port()
    job = {
        "job_name": "harness",
        "scrape_interval": "1s",
        "static_configs": [{"targets": [f"127.0.0.1:{port}"]}],
    }
    with Prometheus(folder / "tsdb", json.dumps({"scrape_configs": [job]})) as prometheus:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "locust",
                "--headless",
                "--host",
                "sim",
                "--gateway",
                "hopbase",
                "--time-scale",
                "0.01",
                "--sim-mix",
                "ok=70,stall-mid=10,error-mid=10,truncate=10",
                "-u",
                "24",
                "-r",
                "24",
                "-t",
                "6s",
                "--results",
                str(folder / "results"),
                "--run-name",
                "live",
                "--metrics-port",
                str(port),
                "--only-summary",
            ],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        results = folder / "results" / "live"
        assert (results / "summary.json").is_file(), done.stderr[-3000:]
        yield Live(prometheus, results, json.loads((results / "summary.json").read_text()), time.time())


def test_counts_are_the_summarys_to_the_last_stream(live):
    summary, totals = live.summary, live.summary["totals"]
    assert summary["attempts"] > 50

    assert live.panel("overview", "Requests") == summary["requests"]["ended"]
    assert live.panel("overview", "Stalled") == totals["outcomes"]["stalled"]
    assert live.panel("overview", "Errors in streams") == totals["outcomes"]["error_event"]
    by_protocol: Counter[str] = Counter()
    for name, count in live.panel("errors", "Outcomes by protocol").items():
        outcome, protocol, _ = name.split("|")
        by_protocol[f"{protocol} {outcome}"] += count
    assert by_protocol == {
        f"{protocol} {outcome}": n
        for protocol, group in summary["protocols"].items()
        for outcome, n in group["outcomes"].items()
    }
    judged = summary["attempts"] - totals["outcomes"].get("aborted", 0)
    assert live.panel("overview", "Completed") == pytest.approx(totals["outcomes"]["completed"] / judged)


def test_objectives_are_exact_counts_of_the_records(live):
    records = [r for r in read_records(live.folder / "attempts.jsonl") if r.outcome != "aborted"]
    fast = sum(r.first_token_s is not None and r.first_token_s <= 2.5 for r in records)

    assert live.panel("overview", "TTFT objective met") == pytest.approx(fast / len(records))


@pytest.mark.parametrize(("q", "name"), [(0.5, "p50_s"), (0.95, "p95_s"), (0.99, "p99_s")])
def test_percentiles_are_the_summarys_within_a_bucket(live, q, name):
    family = "harness_time_to_first_token_seconds_bucket"
    shown = live.prometheus.number(
        f'histogram_quantile({q}, sum by (le) (last_over_time({family}{{run="live"}}[2m])))', live.at
    )

    assert near(FIRST_TOKEN, live.summary["totals"]["ttft"][name], shown)


def test_the_p95_of_the_overview_is_the_summarys_within_a_bucket(live):
    assert near(FIRST_TOKEN, live.summary["totals"]["ttft"]["p95_s"], live.panel("overview", "TTFT p95"))


def near(bounds, exact, shown):
    """Whether *shown* is no further than the buckets on both sides of *exact* reach."""
    at = bisect_left(bounds, exact)
    return (bounds[at - 2] if at > 1 else 0.0) <= shown <= bounds[at + 1]


def test_durations_add_up(live):
    """The sum of a histogram is no estimate."""
    records = list(read_records(live.folder / "attempts.jsonl"))
    shown = live.prometheus.number(
        'sum(last_over_time(harness_stream_duration_seconds_sum{run="live"}[2m]))', live.at
    )

    assert shown == pytest.approx(sum(r.end_s for r in records if r.outcome != "aborted"), abs=1e-3)


def test_keepalives_and_tokens_are_the_summarys(live):
    keepalive, tokens = live.summary["totals"]["keepalive"], live.summary["totals"]["tokens"]

    def counted(name, **matchers):
        inner = ",".join(f'{k}="{v}"' for k, v in {"run": "live", **matchers}.items())
        return live.prometheus.number(f"sum(last_over_time({name}{{{inner}}}[2m]))", live.at)

    assert counted("harness_keepalives_total") == keepalive["comments"] + keepalive["pings"]
    assert counted("harness_tokens_total", kind="output") == tokens["output"]
    assert live.panel("stalls", "Promised keepalive") == pytest.approx(keepalive["promised_s"]) == 0.1
    mean = counted("harness_keepalive_interval_seconds_sum") / counted(
        "harness_keepalive_interval_seconds_count"
    )
    assert mean == pytest.approx(keepalive["interval_mean_s"], rel=0.05)


def test_the_run_is_known_as_simulated_marked_and_judged(live):
    assert live.panel("overview", "What this data is") == 1
    start, end = live.summary["started_at"], live.summary["ended_at"]
    lasted = live.panel("overview", "Runs in view", query=1)
    assert list(lasted.values()) == pytest.approx([end - start], abs=1e-3)
    # A short run's last values reach Prometheus because the exporter waits for the scrape that sees them.
    assert live.panel("overview", "Valid") == int(live.summary["validity"]["valid"])


def test_over_time_the_load_the_silence_and_the_generator_were_seen(live):
    start, end = live.summary["started_at"], live.summary["ended_at"]

    def highest(board, title, query=0):
        panel = next(p for p in panels(BOARDS[f"harness-{board}.json"]) if p["title"] == title)
        expr = expand(panel["targets"][query]["expr"], VALUES)
        return max(float(v) for s in live.prometheus.over(expr, start, end, 1) for _, v in s["values"])

    assert highest("overview", "Users and workers") == 24
    assert 0 < highest("capacity", "Open streams") <= 24
    # A stalled stream is silent of output until its limit of 1.65 s; keepalives come every 0.1 s.
    assert 0.9 < highest("stalls", "Oldest wait now") < 5
    assert 0 < highest("overview", "Event loop lag p99") < 1
    assert 0.01 < highest("overview", "CPU, busiest process") < 2
    assert 0 < highest("overview", "Scrape duration") < 1


def test_the_export_of_the_run_fills_the_boards_of_a_prometheus_that_was_not_there(live, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "harness", "export", str(live.folder), "-o", str(tmp_path / "run.om")],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "samples of live" in done.stderr
    made = promtool(
        "tsdb", "create-blocks-from", "openmetrics", str(tmp_path / "run.om"), str(tmp_path / "tsdb")
    )
    assert made.returncode == 0, made.stderr
    with Prometheus(tmp_path / "tsdb") as prometheus:
        there = Live(prometheus, live.folder, live.summary, live.summary["ended_at"] + 10)
        for board, title in [
            ("overview", "Requests"),
            ("overview", "Completed"),
            ("overview", "TTFT p95"),
            ("overview", "Stalled"),
            ("overview", "Valid"),
            ("overview", "What this data is"),
            ("errors", "Outcomes by protocol"),
            ("stalls", "Stalls of this run"),
            ("stalls", "Waiting covered"),
            ("errors", "Tokens wasted"),
        ]:
            assert there.panel(board, title) == live.panel(board, title), title
        values = {**VALUES, "__rate_interval": "20s"}
        for board, title in [("stalls", "Gaps between tokens"), ("stalls", "Keepalive intervals")]:
            panel = next(p for p in panels(BOARDS[f"harness-{board}.json"]) if p["title"] == title)
            cells = prometheus.over(
                expand(panel["targets"][0]["expr"], values), live.summary["started_at"], there.at
            )
            assert max(float(v) for s in cells for _, v in s["values"]) > 10, title

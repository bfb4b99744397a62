from __future__ import annotations

import io
import re
from typing import Any

import pytest

from harness.gateways.profile import Keepalive
from harness.observe.state import Reason, RunState
from harness.observe.summary import build_summary
from harness.observe.table import print_summary


def printed(records, files=(), **changed):
    given: dict[str, Any] = {
        "run": "night",
        "gateway": "sim:hopbase",
        "version": "0.1.0",
        "simulated": True,
        "valid": True,
    }
    given |= {"started_at": 0.0, "ended_at": 60.0, **changed}
    out = io.StringIO()
    print_summary(build_summary(records, RunState(**given)), files, out)
    return out.getvalue()


def row(text, *starts):
    """The cells of the row that begins with *starts*."""
    pattern = r"^\s*" + r"\s+".join(map(re.escape, starts)) + r"\s"
    (line,) = [line for line in text.splitlines() if re.match(pattern, line)]
    return re.split(r"\s{2,}", line.strip())[len(starts) :]


@pytest.fixture
def records(record, stalled, error_event):
    return [
        *(record(request=f"q{i}") for i in range(8)),
        stalled(request="q8"),
        error_event(request="q9"),
        record(request="q10", protocol="messages", first_token_s=1.25),
    ]


def test_rows_hold_the_summarys_numbers_per_protocol(records):
    text = printed(records)

    assert row(text, "streams", "measured") == ["10", "1", "11"]
    assert " ".join(row(text, "completed")) == "8 80.0 % 1 100.0 % 9 81.8 %"
    assert row(text, "TTFT", "p50") == ["400 ms", "1.25 s", "400 ms"]
    assert row(text, "longest gap", "max") == ["130 ms", "130 ms", "130 ms"]
    assert row(text, "stalls, hard") == ["1", "–", "1"]
    assert row(text, "keepalive_only_mid") == ["1", "–", "1"]
    assert row(text, "tokens out") == ["50", "5", "55"]


def test_simulated_numbers_say_so_with_their_time_scale(records):
    assert (
        "SIMULATED: these numbers are played and say nothing about a real gateway (time scale 0.02)"
        in printed(records, time_scale=0.02)
    )
    assert "SIMULATED" not in printed(records, simulated=False)


def test_the_promise_stands_beside_what_was_kept(record, keepalive):
    kept = keepalive(comments=4, gap_mean_s=10.1, gap_max_s=17.5, late=1)
    text = printed([record(keepalive=kept)], keepalive=Keepalive("x", 10.0, "periodic", 16.0, 22.0))

    assert row(text, "promised each", "periodic") == ["10.0 s"]
    assert row(text, "interval", "mean") == ["10.1 s"]
    assert "17.5 s" in text
    assert row(text, "late") == ["1"]


def test_a_verdict_with_its_reasons(records):
    assert "run valid – the load generator kept up" in printed(records)
    one = (Reason("lost_records", "3 records could not be written"),)
    assert "run INVALID – 3 records could not be written" in printed(records, valid=False, reasons=one)
    assert "run not judged" in printed(records, valid=None)


def test_failures_and_files_come_last(records):
    text = printed(records, files=["results/night/summary.json"])

    assert re.search(r"1× +stalled/keepalive_only_mid +stuck: ", text)
    assert text.index("failures") < text.index("verdict") < text.index("files")
    assert text.rstrip().endswith("results/night/summary.json")


def test_without_a_terminal_it_is_plain_text_of_100_columns(records):
    text = printed(records)

    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 100


def test_a_servers_words_cannot_steer_the_terminal(error_event):
    text = printed([error_event("\x1b[2J[bold]boom[/bold]", request="q\x07")])

    assert "\x1b" not in text
    assert "\x07" not in text
    assert text.count("[bold]boom[/bold]") == 2  # among the error events, and among the failures


def test_a_run_without_measured_streams_is_no_crash():
    assert "no measured streams" in printed([])


def test_scenarios_and_models_get_a_row_each(record):
    text = printed([record(), record(request="q2", model="m2", outcome="cut", finish=None)])

    assert row(text, "chat", "default", "m1")[:2] == ["1", "100.0 %"]
    assert row(text, "chat", "default", "m2")[:2] == ["1", "0.0 %"]

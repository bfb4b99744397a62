"""A wrong gate file is one line: file, line, what is wrong, the nearest right word."""

from __future__ import annotations

import pytest

from harness.judge.gatefile import GateFileError, parse_gates, read_gates
from harness.judge.gates import Abort
from harness.judge.metrics import METRICS, RATES, TIMES

GOOD = """\
version = 1
scenario = "short chats"
warmup = "5s"

[slo]
ttft = "1s"

[[gate]]
id = "first-word"
metric = "ttft"
stat = "p95"
op = "<"
limit = "1.5s"
why = "people leave"
where = { protocol = "chat" }
abort = { after = "30s", sustained = "10s" }

[[gate]]
id = "good"
metric = "goodput"
stat = "rate"
op = ">="
limit = "99%"
why = '''
id = "not a key"'''
[gate.where]
model = "m1"
"""


def test_a_whole_file():
    gates = parse_gates(GOOD, "g.toml")
    first, good = gates.gates

    assert ("short chats", 5.0, 0.0, {"ttft": 1.0}) == (
        gates.scenario, gates.warmup_s, gates.cooldown_s, gates.slo,
    )  # fmt: skip
    assert ("ttft", "p95", "<", 1.5, {"protocol": "chat"}) == (
        first.metric, first.stat, first.op, first.limit, first.where,
    )  # fmt: skip
    assert Abort(after_s=30.0, sustained_s=10.0, window_s=30.0) == first.abort
    assert (8, 18) == (first.line, good.line)
    assert (0.99, {"model": "m1"}, "request", "attempt") == (good.limit, good.where, good.view, first.view)
    # what is not said
    assert ("point", "fail", "warn", "fail", "count", 59) == (
        first.decide, first.on_no_data, first.on_inconclusive, first.severity, first.failed,
        first.min_samples,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"ttft"\nstat', '"tftt"\nstat', "g.toml:10: unknown metric 'tftt' (did you mean ttft?): use one of"),
        ('"p95"', '"p959"', "g.toml:11: ttft has no stat 'p959' (did you mean p95?): use one of p50 p90 p95"),
        ('"p95"', '"rate"', "g.toml:11: ttft has no stat 'rate'"),
        ('"good"', '"first-word"', "g.toml:19: id 'first-word' stands in line 8 already"),
        ('"1.5s"', "1.5", 'g.toml:13: limit: 1.5 is a bare number: write a duration with a unit, as in "'),
        ('"1.5s"', '"1.5"', "g.toml:13: limit: expected a duration with a unit"),
        ('"99%"', "0.99", "g.toml:23: limit: 0.99 is a bare number: write a percentage, as in "),
        ('"99%"', '"101%"', "g.toml:23: limit: expected a percentage"),
        ('"99%"', '"99s"', "g.toml:23: limit: expected a percentage"),
        ("protocol =", "protocl =", "g.toml:15: where: unknown key 'protocl' (did you mean protocol?)"),
        ('model = "m1"', "model = 5", "g.toml:27: where.model: expected text, got 5"),
        ("after =", "aftr =", "g.toml:16: unknown key 'aftr' (did you mean after?)"),
        ('after = "30s"', "after = 30", "g.toml:16: after: expected a duration with a unit"),
        ('why = "people', 'wy = "people', "g.toml:14: unknown key 'wy' (did you mean why?)"),
        ('why = "people leave"\n', "", "g.toml:8: why is missing"),
        ('why = "people leave"', 'why = " "', "g.toml:14: why: expected text"),
        ('op = "<"', 'op = "=<"', "g.toml:12: op: expected one of <, <=, >, >=, got '=<'"),
        ('stat = "p95"', 'stat = "p95"\nstat = "p99"', "g.toml:12: not valid TOML: a key stands twice"),
        ('op = "<"', 'op = "<', "g.toml:12: not valid TOML: the text is not closed on its line"),
        ('"5s"', "5", "g.toml:3: warmup: expected a duration with a unit"),
        ("warmup", "warmpu", "g.toml:3: unknown key 'warmpu' (did you mean warmup?)"),
        ("version = 1", "version = 2", "g.toml:1: version: this harness reads 1, got 2"),
        ("version = 1\n", "", "g.toml:1: version is missing: write version = 1"),
        ('ttft = "1s"', 'tpott = "1s"', "g.toml:6: slo: unknown metric 'tpott' (did you mean tpot?)"),
        ('[slo]\nttft = "1s"\n', "", "g.toml:18: goodput needs limits: add a table"),
        ("[[gate]]", "[[gates]]", "g.toml:8: unknown key 'gates' (did you mean gate?)"),
        ('op = "<"', 'op = "<"\ndecide = "intervall"', "g.toml:13: decide: expected one of point, interval"),
        ('stat = "p95"', 'stat = "max"\ndecide = "interval"', "g.toml:12: ttft max has no interval"),
        ('op = "<"', 'op = "<"\nmin_samples = 0', "g.toml:13: min_samples: expected a whole number"),
        ('op = "<"', 'op = "<"\nmethod = "history"', "g.toml:13: method is for gates with a baseline"),
        ('op = "<"', 'op = "<"\nbaseline = "b.json"', "g.toml:14: limit: expected a ratio to the baseline"),
        ('op = "<"', 'op = "<"\nbaseline = 5', 'g.toml:13: baseline: expected a file, or "given"'),
        ('op = "<"', 'op = "<"\nconfidence = 95', "g.toml:13: confidence: expected a number from 0.5"),
        ('id = "first-word"\nmetric = "ttft"', 'id = "f"\nmetric = "gap_max"\nview = "request"',
         "g.toml:11: gap_max is always per attempt"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line_with_its_place(old, new, message):
    assert old in GOOD
    with pytest.raises(GateFileError) as error:
        parse_gates(GOOD.replace(old, new, 1), "g.toml")

    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_a_file_without_gates_passes_nothing():
    with pytest.raises(GateFileError, match=r"^g.toml:1: no \[\[gate\]\]: a file without gates"):
        parse_gates("version = 1\n", "g.toml")


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(GateFileError, match=r"^cannot read gate file .*none.toml: No such file"):
        read_gates(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(GateFileError, match="not UTF-8 text"):
        read_gates(tmp_path / "binary.toml")


def test_the_files_defaults_reach_every_gate_that_says_nothing_else(toml_gate):
    text = 'version = 1\non_no_data = "skip"\nfailed = "leave_out"\nconfidence = 0.9\n' + toml_gate()
    (one,) = parse_gates(text, "g.toml").gates
    (other,) = parse_gates(text + 'on_no_data = "warn"\nfailed = "count"\n', "g.toml").gates

    assert ("skip", "leave_out", 0.9) == (one.on_no_data, one.failed, one.confidence)
    assert ("warn", "count") == (other.on_no_data, other.failed)


@pytest.mark.parametrize("metric", [name for name in METRICS if name not in (*TIMES, *RATES)])
def test_counts_may_be_bare_numbers(metric, toml_gate):
    """There is nothing to mistake in a number of requests."""
    text = toml_gate(metric=metric, stat="value", op=">=", limit=100)

    assert 100.0 == parse_gates("version = 1\n" + text, "g.toml").gates[0].limit


@pytest.mark.parametrize(
    ("stat", "needed"), [("p50", 6), ("p90", 29), ("p95", 59), ("p99", 299), ("p99.9", 2995), ("mean", 1)]
)
def test_how_many_streams_a_stat_needs(stat, needed, toml_gate):
    assert needed == parse_gates("version = 1\n" + toml_gate(stat=stat), "g.toml").gates[0].min_samples

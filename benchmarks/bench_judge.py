"""A million records judged and reported: seconds and memory of `harness gate` and `harness report`.

Bound: both together within 30 s, and each within 1 GB. The records are made up: three protocols, times
spread log-normally, 3 % failures of several kinds, one hour long. Their file takes 1.7 GB in the temporary
folder while this runs (`TMPDIR` chooses it). Usage: python benchmarks/bench_judge.py [records]
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path

from harness.stream.outcome import Outcome
from harness.stream.record import (
    SCHEMA,
    Attempt,
    ErrorRecord,
    KeepaliveRecord,
    Progress,
    RequestSummary,
    Retry,
    Stall,
    Tokens,
    to_json,
)

RECORDS = 1_000_000
BOUND_S, BOUND_MB = 30.0, 1_000.0
START, HOUR_S = 1_700_000_000.0, 3_600.0
PROTOCOLS = (("chat", "model-a"), ("responses", "model-a"), ("messages", "model-b"))

OUTCOMES: tuple[Outcome, ...] = ("completed", "stalled", "error_event", "cut", "http_error")

GATES = """\
version = 1
warmup = "30s"
[slo]
ttft = "3s"
gap_max = "5s"
[[gate]]
id = "goodput"
metric = "goodput"
stat = "rate"
op = ">="
limit = "90%"
decide = "interval"
why = "benchmark"
""" + "".join(
    f"""\
[[gate]]
id = "{metric}-{stat}-{protocol}"
metric = "{metric}"
stat = "{stat}"
op = "<"
limit = "60s"
decide = "interval"
where = {{ protocol = "{protocol}" }}
why = "benchmark"
"""
    for metric, stat in (
        ("ttft", "p95"),
        ("ttft", "p99"),
        ("tpot", "p50"),
        ("gap_max", "p90"),
        ("silence", "p90"),
    )
    for protocol, _ in PROTOCOLS
)


def main() -> int:
    """Make the records, run both commands, print what they took."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS
    with tempfile.TemporaryDirectory(prefix="bench-judge-") as name:
        run = Path(name) / "run"
        run.mkdir()
        size = write_run(run, count)
        gates = Path(name) / "gates.toml"
        gates.write_text(GATES)
        print(f"{count:,} records, {size / 1e9:.2f} GB, {GATES.count('[[gate]]')} gates")
        python = [sys.executable, "-m", "harness"]
        total = 0.0
        fits = True
        for words in (["gate", str(run), "--gates", str(gates)], ["report", str(run)]):
            seconds, cpu_s, megabytes, code = measured([*python, *words])
            total += seconds
            fits = fits and megabytes <= BOUND_MB and code in (0, 20)
            row = f"harness {words[0]:<7} {seconds:6.1f} s  (CPU {cpu_s:5.1f} s)  {megabytes:6.0f} MB"
            print(f"{row}  {1e6 * cpu_s / count:5.1f} µs per record  exit {code}")
        page = (run / "report.html").stat().st_size
        bound = BOUND_S * count / RECORDS
        said = "within" if total <= bound and fits else "BEYOND"
        print(f"together {total:.1f} s: {said} the bound of {bound:.0f} s and {BOUND_MB:.0f} MB")
        print(f"the page is {page / 1e3:.0f} kB")
    return 0


def measured(command: list[str]) -> tuple[float, float, float, int]:
    """Return wall and CPU seconds, peak resident megabytes and exit code of *command*, its output dropped."""
    began = time.perf_counter()
    with open(os.devnull, "wb") as nowhere:
        pid = os.posix_spawn(
            command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, nowhere.fileno(), 1)]
        )
        _, status, usage = os.wait4(pid, 0)
    seconds, cpu_s = time.perf_counter() - began, usage.ru_utime + usage.ru_stime
    return seconds, cpu_s, usage.ru_maxrss / 1024, os.waitstatus_to_exitcode(status)


def write_run(run: Path, count: int) -> int:
    """Write a folder with *count* records and return the size of its record file."""
    chance = random.Random(11)
    templates = [template(chance) for _ in range(2_000)]
    with (run / "attempts.jsonl").open("wb") as file:
        for i in range(count):
            moment = START + HOUR_S * i / count
            line = templates[chance.randrange(len(templates))]
            file.write(line.replace(b"REQUEST", b"%016x" % i).replace(b"1111111111.5", b"%.6f" % moment))
    (run / "run.json").write_text(json.dumps({"run": "bench", "started_at": START, "gateway": "generic"}))
    validity = {"valid": True, "reasons": [], "codes": [], "threshold_s": 0.15}
    summary = {
        "run": "bench",
        "attempts": count,
        "started_at": START,
        "gateway": "generic",
        "validity": validity,
    }
    (run / "summary.json").write_text(json.dumps(summary))
    return (run / "attempts.jsonl").stat().st_size


def template(chance: random.Random) -> bytes:
    """Return one record as a line whose id and moment are to be filled in."""
    protocol, model = chance.choice(PROTOCOLS)
    ttft = round(chance.lognormvariate(-0.5, 0.5), 6)
    gap = round(chance.lognormvariate(-3.5, 0.3), 6)
    tokens = chance.randrange(20, 400)
    last = round(ttft + gap * tokens, 6)
    outcome = chance.choices(OUTCOMES, (970, 10, 10, 5, 5))[0]
    lost = outcome == "http_error"
    stall = Stall("keepalive_only_mid", "mid_stream", 120.0, last, last + 120.0, True)
    error = ErrorRecord("stream", "server_error", "upstream_error", "please retry", True, "data")
    end = last + 120.0 if outcome == "stalled" else last + 0.01
    record = Attempt(
        schema=SCHEMA, run="bench", request="REQUEST", attempt=1, final=True, protocol=protocol,
        gateway="generic", simulated=False, scenario="default", model=model, worker="local", phase="measure",
        scheduled_at=1111111111.5, sent_at=1111111111.5, clock="kernel", lag_max_s=0.001,
        uncertain_max_s=None, uncertain_events=0, reused_connection=True, status=429 if lost else 200,
        peer="127.0.0.1:8080", server_request_id="req_0123456789abcdef", response_id="resp_0123456789abcdef",
        connect_s=None, tls_s=None, headers_s=0.02, first_byte_s=0.021, first_event_s=0.021,
        first_token_s=None if lost else ttft, first_content_s=None if lost else ttft, first_reasoning_s=None,
        first_tool_s=None, last_token_s=None if lost else last, last_byte_s=last,
        terminal_s=last if outcome == "completed" else None, end_s=round(0.03 if lost else end, 6),
        events=tokens, bytes=200 * tokens, reads=tokens, tokens=Tokens(100, tokens, None, None, "usage"),
        progress=Progress(0, *[None] * 4) if lost else Progress(tokens, gap, 2 * gap, 3 * gap, ttft + gap),
        keepalive=KeepaliveRecord(2, 0, 10.0, 9.9, 10.0, 10.0 + gap, 0, 0, "keepalive"),
        silence_max_s=10 * gap, silence_max_at_s=0.1, silence_end_s=gap, outcome=outcome,
        finish="stop" if outcome == "completed" else None, stall=stall if outcome == "stalled" else None,
        soft_stalls=[], error=error if outcome in ("error_event", "http_error") else None, violations={},
        retry=Retry("none"),
        request_summary=RequestSummary(1, outcome, "not_needed", ttft, ttft, round(end, 6), 0, None),
    )  # fmt: skip
    return to_json(record) + b"\n"


if __name__ == "__main__":
    raise SystemExit(main())

"""A key is sent to its gateway and is nowhere else: not in files, pages, metrics, logs, process list.

The gateway repeats every header that it gets, as a refusal and inside streams, so that whatever a server says
is looked through too.
"""

import os
from pathlib import Path

import gevent
import httpx

KEY, HEADER_KEY = "sk-canary-7Fq2Zb9Lw4", "team-canary-Kx81mQ0s"
ENV = {"CANARY_KEY": KEY, "CANARY_HEADER": HEADER_KEY}
OPTIONS = ("--api-key-env", "CANARY_KEY", "--header", "X-Team=env:CANARY_HEADER", "--model", "m")


def check(text, where):
    for secret in (KEY, HEADER_KEY):
        for part in (secret, secret[:14], secret.encode().hex()):
            assert part not in text, where


def check_files(folder):
    files = [path for path in folder.rglob("*") if path.is_file()]
    for path in files:
        check(path.read_bytes().decode("utf-8", "replace"), path)
    return {path.name for path in files}


def check_process(pid):
    check(Path(f"/proc/{pid}/cmdline").read_text(), "the process title")
    check(Path(f"/proc/{pid}/comm").read_text(), "the process name")


PAGES = (
    "/", "/stats/requests", "/stats/report", "/stats/report?download=1", "/stats/requests/csv",
    "/stats/failures/csv", "/exceptions", "/exceptions/csv", "/tasks", "/logs", "/harness/live.json",
    "/harness/tab.js", "/harness/download/attempts.jsonl",
)  # fmt: skip


def test_whatever_a_run_leaves_behind_or_serves_holds_no_key(launch, hostile, tmp_path, free_ports, until):
    page, metrics = free_ports(2)
    process = launch(
        "run", "--host", hostile.url("echo-stream"), *OPTIONS, "--save-content", "--debug", "-L", "DEBUG",
        "--no-preflight", "--autostart", "-u", "3", "-t", "60s", "--web-port", page,
        "--metrics-port", metrics, "--metrics-linger", "0s", "--results", "results", "--csv", "csv",
        "--html", "page.html", **ENV,
    )  # fmt: skip
    until(lambda: len(hostile.asked) > 20, timeout_s=30)
    check_process(process.popen.pid)
    with httpx.Client(trust_env=False) as client:
        for path in PAGES:
            answer = client.get(f"http://127.0.0.1:{page}{path}")
            assert 200 == answer.status_code, path
            check(answer.text, path)
        client.post(f"http://127.0.0.1:{page}/stop", timeout=30)
        summary = client.get(f"http://127.0.0.1:{page}/harness/download/summary.json")
        assert '"error_event"' in summary.text
        check(summary.text, "the summary")
        exposition = client.get(f"http://127.0.0.1:{metrics}/metrics").text
        assert "harness_error_events_total{" in exposition
        check(exposition, "metrics")
    gevent.sleep(1.2)
    process.signal(15)
    process.wait()

    check(process.out + process.err, "the console")
    files = check_files(tmp_path)
    assert {"run.json", "attempts.jsonl", "timelines.jsonl", "content.jsonl", "summary.json"} <= files
    assert any(KEY in line and HEADER_KEY in line for line in hostile.asked)  # it was sent
    records = (tmp_path / "results" / "latest" / "attempts.jsonl").read_text()
    assert "Bearer [key]" in records or "[key] " in records


def test_a_probe_shows_no_key(launch, hostile):
    ways = [(how, *more) for how in ("echo", "echo-stream") for more in ((), ("--json",), ("--debug",))]
    probes = [
        launch("probe", hostile.url(how), *OPTIONS, "--protocol", "chat", *more, **ENV) for how, *more in ways
    ]

    for process, way in zip(probes, ways, strict=True):
        assert 10 == process.wait(), way
        check(process.out + process.err, way)
        assert "[key]" in process.out, way
    assert len(ways) == "".join(hostile.asked).count(f"Bearer {KEY}")


def test_a_refusal_before_the_run_shows_no_key(launch, hostile, tmp_path):
    process = launch(
        "run", "--headless", "--host", hostile.url("echo"), *OPTIONS, "--debug", "-t", "1s", **ENV
    )

    assert 2 == process.wait()
    assert "HTTP 401" in process.err
    assert "[key]" in process.err
    check(process.out + process.err, "the console")
    check_files(tmp_path)


def test_a_key_that_cannot_be_sent_is_named_by_its_variable_alone(launch):
    process = launch(
        "probe", "http://127.0.0.1:1", *OPTIONS, "--debug", **ENV | {"CANARY_KEY": f"{KEY}\n{KEY}"}
    )

    assert 2 == process.wait()
    assert "CANARY_KEY" in process.err
    check(process.out + process.err, "the console")


def test_a_key_does_not_follow_a_redirect(launch, hostile):
    process = launch("probe", hostile.url("redirect"), *OPTIONS, "--protocol", "chat", "--json", **ENV)

    assert 10 == process.wait()
    assert 1 == len(hostile.asked)
    assert '"status":307' in process.out
    assert os.environ.get("CANARY_KEY") is None

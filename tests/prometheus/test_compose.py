"""The compose file without an engine: its services run natively, with its commands and files.

Each service has a loopback address of its own, and host names and wildcard addresses become that one, so
ports stay as they are written. Grafana alone is left out.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.observe.results import read_records
from tests.boards.compose import REPOSITORY, SERVICES, command
from tests.ports import find_free_port
from tests.prometheus.server import Prometheus

pytestmark = pytest.mark.slow

# Addresses of this process's own, so that two runs of the tests on one machine do not meet.
NET = 2 + os.getpid() % 250
ADDRESS = {
    "sim": f"127.7.{NET}.1",
    "master": f"127.7.{NET}.2",
    "worker": f"127.7.{NET}.3",
    "prometheus": f"127.7.{NET}.4",
}
DISTRIBUTED = {"--master": 0, "--master-bind-host": 1}


def local(text: str, service: str) -> str:
    """*text* of *service* with every host as its address on loopback; paths and options keep their names."""
    text = text.replace("0.0.0.0", ADDRESS[service]).replace("127.0.0.1", ADDRESS[service])
    return re.sub(
        r"""(?:(?<=//)|(?<=["\s])|^)(sim|master|prometheus)(?=:\d|$)""", lambda found: ADDRESS[found[1]], text
    )


def arguments(service: str, folder: Path, drop: dict[str, int] | None = None) -> list[str]:
    """The command of *service* as it runs here; *drop*: options to leave out, with their number of values."""
    _, subcommand, *rest = command(service)
    kept: list[str] = []
    words = iter(rest)
    for word in words:
        if word in (drop or {}):
            for _ in range((drop or {})[word]):
                next(words)
        else:
            word = local(word, service)
            kept.append(re.sub(r"^/(results|tmp)\b", rf"{folder}/\1", word))
    return [sys.executable, "-m", "harness", subcommand, *kept]


class Bench:
    """The services that were started, to be stopped by their own ids."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        self.home = folder / "home"  # where a container could not write
        self.home.mkdir()

    def start(self, service: str, *, drop: dict[str, int] | None = None, more: tuple[str, ...] = ()) -> None:
        environment = {
            k: local(str(v), service) for k, v in (SERVICES[service].get("environment") or {}).items()
        }
        with (self.folder / f"{service}-{len(self.processes)}.log").open("wb") as log:
            self.processes.append(
                subprocess.Popen(
                    [*arguments(service, self.folder, drop), *more],
                    cwd=self.home,
                    env={**os.environ, **environment},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            )

    def wait_healthy(self, service: str) -> None:
        """Run the health check of the compose file until it succeeds."""
        _, _, *probe = SERVICES[service]["healthcheck"]["test"]
        deadline = time.monotonic() + 20
        while subprocess.run(
            [sys.executable, *(local(word, service) for word in probe)],
            capture_output=True,
            timeout=20,
            check=False,
        ).returncode:
            dead = [p.args for p in self.processes if p.poll() is not None]
            assert not dead, self.logs()
            assert time.monotonic() < deadline, self.logs()
            time.sleep(0.1)

    def logs(self) -> str:
        return "\n".join(f"{p.name}:\n{p.read_text()[-1500:]}" for p in sorted(self.folder.glob("*.log")))

    def ask(self, path: str, **form: object) -> Any:
        data = urllib.parse.urlencode(form).encode() if form else None
        with urllib.request.urlopen(f"http://{ADDRESS['master']}:8089{path}", data, timeout=10) as answer:
            text = answer.read().decode()
        return json.loads(text) if text.startswith(("{", "[")) else text

    def stop(self) -> None:
        # Not asked to end: a master would wait for a last scrape that nobody makes.
        for process in self.processes:
            process.kill()
            process.wait()


@contextmanager
def prometheus(folder: Path) -> Iterator[Prometheus]:
    """Prometheus with the files and the flags of the compose file."""
    config = folder / "etc"
    config.mkdir()
    mount = next(m for m in SERVICES["prometheus"]["volumes"] if m.endswith("/etc/prometheus:ro")).split(":")[
        0
    ]
    for file in (REPOSITORY / mount).iterdir():
        (config / file.name).write_text(local(file.read_text(), "prometheus").replace("5s", "1s"))
    flags = [
        local(flag, "prometheus")
        .replace("/etc/prometheus", str(config))
        .replace("=/prometheus", f"={folder}/tsdb")
        for flag in SERVICES["prometheus"]["command"]
    ]
    with Prometheus.started(flags, ADDRESS["prometheus"], 9090, folder / "prometheus.log") as server:
        yield server


def play(bench: Bench, seconds: float) -> None:
    """Press Start, wait, press Stop, and wait until the books are closed."""
    started = bench.ask("/swarm", user_count=8, spawn_rate=8)
    assert started["success"], started
    time.sleep(seconds)
    bench.ask("/stop", now="")
    deadline = time.monotonic() + 30
    while not list((bench.folder / "results").glob("*/summary.json")):
        assert time.monotonic() < deadline, bench.logs()
        time.sleep(0.2)


def compare(bench: Bench, server: Prometheus) -> None:
    """All targets up, and the sums are those of the records."""
    (results,) = (p.parent for p in (bench.folder / "results").glob("[!l]*/summary.json"))  # not `latest`
    records = list(read_records(results / "attempts.jsonl"))
    assert len(records) > 10
    deadline = time.monotonic() + 20
    ended = f'harness_run_end_timestamp_seconds{{run="{results.name}"}}'
    everything = {"harness": 1, "prometheus": 1}
    while True:  # until a scrape has seen the end, and Prometheus itself (its discovery takes up to 5 s)
        now = time.time()
        up = {s["metric"]["job"]: float(s["value"][1]) for s in server.instant("up", now)}
        if server.instant(ended, now) and up == everything:
            break
        assert time.monotonic() < deadline, f"up: {up}\n{bench.logs()}"
        time.sleep(0.2)
    shown = {
        s["metric"]["protocol"]: float(s["value"][1])
        for s in server.instant("sum by (protocol) (harness_attempts_total)", now)
    }
    assert shown == {p: sum(r.protocol == p for r in records) for p in {r.protocol for r in records}}
    tokens = server.number('sum(harness_tokens_total{kind="output"})', now)
    assert tokens == sum(r.tokens.output or 0 for r in records)
    assert {"sim:hopbase"} == {s["metric"]["gateway"] for s in server.instant("harness_run_info", now)}
    loaded = server.get("/api/v1/rules")["groups"]
    assert {"harness-recording", "harness-alerts"} == {group["name"] for group in loaded}
    assert not [r for group in loaded for r in group["rules"] if r["health"] == "err"]


@pytest.fixture
def bench(tmp_path):
    made = Bench(tmp_path)
    yield made
    made.stop()
    assert [] == list(made.home.iterdir())


# Short answers, so that a run of a few seconds has whole streams.
QUICK = ("--tokens", "5", "--mix", "ok=100")


def test_simulator_generator_and_prometheus_of_the_compose_file_work_together(bench, tmp_path):
    bench.start("sim", more=QUICK)
    bench.wait_healthy("sim")
    bench.start("master", drop=DISTRIBUTED)
    bench.wait_healthy("master")
    with prometheus(tmp_path) as server:
        play(bench, 3)
        compare(bench, server)


def test_one_scrape_of_the_master_has_the_sums_of_all_workers(bench, tmp_path):
    bench.start("sim", more=QUICK)
    bench.wait_healthy("sim")
    # Locust's own port is the one that others on this machine take on every address.
    port = str(find_free_port())
    bench.start("master", more=("--master-bind-port", port))
    bench.wait_healthy("master")
    for _ in range(2):
        bench.start("worker", more=("--master-port", port))
    deadline = time.monotonic() + 20
    while bench.ask("/worker-count") != {"worker_count": 2}:
        assert time.monotonic() < deadline, bench.logs()
        time.sleep(0.2)
    with prometheus(tmp_path) as server:
        play(bench, 4)
        compare(bench, server)
        assert server.number('sum(harness_workers{state!="missing"})', time.time()) == 2

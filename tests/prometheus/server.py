"""Debian's Prometheus and promtool, run for a test on a free port of loopback and stopped by its id."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from tests.ports import find_free_port

MISSING = [tool for tool in ("prometheus", "promtool") if shutil.which(tool) is None]
Series = dict[str, Any]

_READY_S = 20.0


def promtool(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run promtool to its end."""
    return subprocess.run(
        ["promtool", *arguments], input=stdin, capture_output=True, text=True, timeout=120, check=False
    )


class Prometheus:
    """A running server; stops when the block ends."""

    def __init__(self, data: Path, config: str = "{}") -> None:
        """Start one over the folder *data*, on a free port."""
        data.mkdir(parents=True, exist_ok=True)
        file = data.parent / f"{data.name}.yml"
        file.write_text(config, encoding="utf-8")
        port = find_free_port()
        flags = [
            f"--config.file={file}",
            f"--storage.tsdb.path={data}",
            "--storage.tsdb.retention.time=100y",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        self._start(flags, "127.0.0.1", port, data.parent / f"{data.name}.log")

    @classmethod
    def started(cls, flags: list[str], host: str, port: int, log: Path) -> Prometheus:
        """One with flags of the caller's own, listening on *host* and *port*."""
        made = cls.__new__(cls)
        made._start(flags, host, port, log)
        return made

    def _start(self, flags: list[str], host: str, port: int, log: Path) -> None:
        self.url = f"http://{host}:{port}"
        self.log = log
        with log.open("wb") as file:
            self.process = subprocess.Popen(["prometheus", *flags], stdout=file, stderr=file)

    def __enter__(self) -> Prometheus:
        deadline = time.monotonic() + _READY_S
        while True:
            try:
                with urllib.request.urlopen(f"{self.url}/-/ready", timeout=2):
                    return self
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    self.__exit__()
                    raise AssertionError(
                        f"Prometheus did not start: {self.log.read_text()[-2000:]}"
                    ) from None
                time.sleep(0.05)

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def get(self, path: str, **parameters: str | list[str]) -> Any:
        """The `data` of an answer of the HTTP interface; an error is the server's own words."""
        query = urllib.parse.urlencode(parameters, doseq=True)
        try:
            with urllib.request.urlopen(f"{self.url}{path}?{query}", timeout=20) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from None

    def instant(self, expr: str, at: float) -> list[Series]:
        """The series of an instant query."""
        return list(self.get("/api/v1/query", query=expr, time=str(at))["result"])

    def over(self, expr: str, start: float, end: float, step: float = 5) -> list[Series]:
        """The series of a range query."""
        found = self.get("/api/v1/query_range", query=expr, start=str(start), end=str(end), step=str(step))
        return list(found["result"])

    def number(self, expr: str, at: float) -> float:
        """The value of an instant query that has exactly one."""
        found = self.instant(expr, at)
        assert len(found) == 1, (expr, found)
        return float(found[0]["value"][1])

    def label_values(self, label: str, selector: str, start: float, end: float) -> list[str]:
        """What Grafana asks for ``label_values(selector, label)``."""
        return list(
            self.get(f"/api/v1/label/{label}/values", **{"match[]": selector}, start=str(start), end=str(end))
        )

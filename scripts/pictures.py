"""Pictures of the boards: a simulated run, a real Prometheus, Grafana's front-end library, Chromium.

    make pictures      (needs Node 20, npm, chromium, and prometheus on the PATH; writes docs/pictures/*.png)

No Grafana server is involved: panels are drawn by @grafana/ui from what their queries return; heatmaps and
bars, which it has not, by `pictures/page.jsx`. On a busy machine the run will be invalid, and say so.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.boards.expand import BOARDS, CHOSEN, expand, panels
from tests.ports import find_free_port
from tests.prometheus.server import MISSING, Prometheus

REPOSITORY = Path(__file__).parents[1]
SOURCE = REPOSITORY / "scripts" / "pictures"
BUILD = REPOSITORY / "build" / "pictures"
TARGET = REPOSITORY / "docs" / "pictures"

RUN = "demo"
SECONDS = 60
# Promises and limits of a profile, five times as fast: stalls and keepalives are seen within a minute.
LOAD = [
    "--host",
    "sim",
    "--gateway",
    "hopbase",
    "--time-scale",
    "0.05",
    "-u",
    "60",
    "-r",
    "4",
    "-t",
    f"{SECONDS}s",
    "--sim-mix",
    "ok=80,slow-first-token=12,error-mid=3,stall-mid=3,truncate=1,stall-mid-dead=1",
]

# Picture -> board and the panels on it, by title.
PICTURES = {
    "overview": (
        "harness-overview.json",
        [
            "What this data is",
            "Valid",
            "Requests",
            "Completed",
            "TTFT p95",
            "Longest silence now",
            "Stalled",
            "Errors in streams",
            "TTFT objective met",
            "Offered and achieved load",
            "Open streams by phase",
            "On the way to the first token, p95",
            "Outcomes",
            "Gap between tokens",
            "TTFT p95 by protocol",
        ],
    ),
    "stalls": (
        "harness-stalls.json",
        [
            "What this data is",
            "Oldest silence now",
            "Oldest wait now",
            "Silent streams now",
            "Stalled",
            "Recovered",
            "Keepalive violations",
            "Promised keepalive",
            "Waiting covered",
            "Oldest silence and oldest wait for output",
            "Longest silence per stream",
            "Gaps between tokens",
            "Keepalive intervals",
            "Keepalive interval against the promise",
            "Waiting for output: thinking or dead",
            "Share of the waiting that keepalives covered",
        ],
    ),
}


def main() -> int:
    """Make the pictures; return 1 if a program is missing."""
    missing = [*MISSING, *(tool for tool in ("npm", "chromium") if shutil.which(tool) is None)]
    if missing:
        print(f"pictures: {', '.join(missing)} not found", file=sys.stderr)
        return 1
    BUILD.mkdir(parents=True, exist_ok=True)
    TARGET.mkdir(parents=True, exist_ok=True)
    bundle()
    with tempfile.TemporaryDirectory() as folder, watching(Path(folder)) as (prometheus, port):
        measure(Path(folder), port)
        start = prometheus.number(f'harness_run_start_timestamp_seconds{{run="{RUN}"}}', time.time())
        for name, (board, titles) in PICTURES.items():
            draw(name, BOARDS[board], titles, prometheus, start + 2, start + SECONDS + 4)
    return 0


def bundle() -> None:
    """Install the library and bundle the page with it; the second time it is there already."""
    for file in ("package.json", "page.jsx", "page.html"):
        shutil.copy(SOURCE / file, BUILD / file)
    if not (BUILD / "node_modules").exists():
        subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock"], cwd=BUILD, check=True
        )
    subprocess.run(
        [
            "npx",
            "esbuild",
            "page.jsx",
            "--bundle",
            "--outfile=bundle.js",
            "--loader:.js=jsx",
            "--log-level=error",
            '--define:process.env.NODE_ENV="production"',
            "--loader:.svg=dataurl",
            "--loader:.woff2=dataurl",
            "--loader:.ttf=empty",
        ],
        cwd=BUILD,
        check=True,
    )


@contextmanager
def watching(folder: Path) -> Iterator[tuple[Prometheus, int]]:
    """Run a Prometheus that scrapes a port once a second."""
    port = find_free_port()
    job = {
        "job_name": "harness",
        "scrape_interval": "1s",
        "static_configs": [{"targets": [f"127.0.0.1:{port}"]}],
    }
    with Prometheus(folder / "tsdb", json.dumps({"scrape_configs": [job]})) as prometheus:
        yield prometheus, port


def measure(folder: Path, port: int) -> None:
    """Run the load, with its metrics on *port*."""
    command = [
        sys.executable,
        "-m",
        "locust",
        "--headless",
        *LOAD,
        "--results",
        str(folder),
        "--run-name",
        RUN,
    ]
    subprocess.run([*command, "--metrics-port", str(port), "--only-summary"], cwd=REPOSITORY, check=False)


def draw(
    name: str, board: dict[str, Any], titles: list[str], prometheus: Prometheus, start: float, end: float
) -> None:
    """Write one picture."""
    values = {**CHOSEN, "run": RUN, "__rate_interval": "6s", "__range": "5m"}
    chosen = [panel for panel in panels(board) if panel["title"] in titles]
    for panel in chosen:
        # What is open now, while something is; all else when the run is over.
        at = end - 8 if panel["title"].endswith(" now") else time.time()
        panel["series"] = [
            one for target in panel["targets"] for one in ask(prometheus, target, values, (start, end, at))
        ]
    rows = settle(chosen)
    data = {"title": board["title"], "range": [start, end], "panels": chosen}
    page = (BUILD / "page.html").read_text(encoding="utf-8").replace('"PICTURE_DATA"', json.dumps(data))
    (BUILD / f"{name}.html").write_text(page, encoding="utf-8")
    target = TARGET / f"{name}.png"
    subprocess.run(
        [
            "chromium",
            "--headless",
            "--no-sandbox",
            "--hide-scrollbars",
            "--virtual-time-budget=8000",
            f"--window-size=1412,{rows * 38 + 60}",
            f"--screenshot={target}",
            f"file://{BUILD / name}.html",
        ],
        check=True,
        capture_output=True,
    )
    print(f"pictures: {target.relative_to(REPOSITORY)}")


def ask(
    prometheus: Prometheus, target: dict[str, Any], values: dict[str, str], when: tuple[float, float, float]
) -> list[dict[str, Any]]:
    """Return what Grafana would draw of a query: series with the names of the legend."""
    expr = expand(target["expr"], values)
    start, end, at = when
    found = prometheus.instant(expr, at) if target["instant"] else prometheus.over(expr, start, end, 1)
    series = []
    for one in found:
        samples = [one["value"]] if target["instant"] else one["values"]
        legend = target["legendFormat"]
        for label, value in one["metric"].items():
            legend = legend.replace(f"{{{{{label}}}}}", value)
        series.append(
            {"name": legend, "times": [t for t, _ in samples], "values": [float(v) for _, v in samples]}
        )
    return series


def settle(chosen: list[dict[str, Any]]) -> int:
    """Move the chosen panels together, in their order, and return the number of grid rows they take."""
    x = y = tallest = 0
    for panel in chosen:
        at = panel["gridPos"] = dict(panel["gridPos"])
        if x + at["w"] > 24:
            x, y, tallest = 0, y + tallest, 0
        at["x"], at["y"] = x, y
        x, tallest = x + at["w"], max(tallest, at["h"])
    return y + tallest


if __name__ == "__main__":
    sys.exit(main())

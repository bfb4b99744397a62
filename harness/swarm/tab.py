"""The tab "Streams" in Locust's web UI: a live table, charts under it, the silent streams, downloads.

Locust's page takes a table as data (`extended_tabs`); charts have no hook, so one script is put into the
page that draws them as SVG under the table. Everything is served behind Locust's own login, if there is one.
"""

from __future__ import annotations

from locust.web import WebUI

import json
import time
from importlib import resources
from typing import Any

import gevent
from flask import Blueprint, Response, jsonify, request, send_file

from harness.observe.results import ATTEMPTS, SUMMARY
from harness.observe.snapshot import Snapshot
from harness.observe.totals import Totals
from harness.observe.watching import SAMPLE_S, Samples, finite, rows
from harness.swarm.ending import validity_of
from harness.swarm.node import Node

_COLUMNS = (
    ("name", "Protocol"),
    ("streams", "Streams"),
    ("failed", "Failed"),
    ("open", "Open: connecting / waiting / streaming / silent"),
    ("ttft", "TTFT p50 / p95 / p99 (ms)"),
    ("content", "First content p50 / p95 / p99 (ms)"),
    ("gap", "Inter-token p50 / p99 (ms)"),
    ("silence", "Oldest silence now / so far (s)"),
    ("keepalive", "Keepalive interval p99 (ms)"),
    ("stalls", "Stalls"),
    ("soft", "Soft stalls"),
    ("errors", "Error events"),
    ("retries", "Retries: recovered / exhausted"),
    ("wasted", "Wasted tokens"),
)

_DOWNLOADS = ((ATTEMPTS, "Attempts (JSONL)"), (SUMMARY, "Summary (JSON)"), ("report.html", "Report (HTML)"),
              ("verdict.json", "Verdict (JSON)"))  # fmt: skip


class Tab:
    """The tab of one process; `attach` it to the web UI."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._samples = Samples()
        self._baseline: Totals | None = None

    def attach(self, web_ui: WebUI) -> None:
        """Add the tab, its routes and its script to *web_ui*."""
        assert web_ui.app is not None
        base = self._node.options.web_base_path or ""
        web_ui.template_args.update(
            extended_tabs=[{"title": "Streams", "key": "streams"}],
            extended_tables=[
                {"key": "streams", "structure": [{"key": key, "title": title} for key, title in _COLUMNS]}
            ],
            extended_csv_files=[
                {"href": f"{base}/harness/download/{name}", "title": title} for name, title in _DOWNLOADS
            ],
        )
        web_ui.app.register_blueprint(self._routes(web_ui, base))
        web_ui.app.after_request(self._extend)
        self._node.environment.events.reset_stats.add_listener(self._reset)
        gevent.spawn(self._sample)

    def _routes(self, web_ui: WebUI, base: str) -> Blueprint:
        routes = Blueprint("harness", __name__, url_prefix=f"{base}/harness")

        @routes.route("/live.json")
        @web_ui.auth_required_if_enabled
        def live() -> Response:
            run = self._node.run
            return jsonify(
                run=None if run is None else run.name,
                gateway=None if run is None else run.settings.gateway,
                samples=list(self._samples),
                silent=self._node.silent(),
                workers=self._node.workers_now(),
                validity=self._validity(),
                simulated=run is not None and run.settings.simulated,
            )

        @routes.route("/tab.js")
        def script() -> Response:
            text = resources.files("harness.swarm").joinpath("tab.js").read_text("utf-8")
            return Response(text, mimetype="text/javascript")

        @routes.route("/download/<name>")
        @web_ui.auth_required_if_enabled
        def download(name: str) -> Response:
            keeper = self._node.keeper
            allowed = {file for file, _ in _DOWNLOADS}
            if keeper is None or name not in allowed:
                return Response("there is no run to download from yet\n", 404, mimetype="text/plain")
            keeper.flush()
            path = keeper.folder.path.resolve() / name
            if not path.is_file():
                return Response(f"{name} is written when the run has ended\n", 404, mimetype="text/plain")
            return send_file(path, as_attachment=True, download_name=f"{keeper.run}-{name}")

        return routes

    def _extend(self, response: Response) -> Response:
        """Add our rows to Locust's numbers and our script to its page."""
        if request.endpoint == "locust.request_stats" and response.is_json:
            data = response.get_json()
            data["extended_stats"] = [{"key": "streams", "data": self._rows()}]
            response.set_data(json.dumps(finite(data), allow_nan=False))
        elif request.endpoint == "locust.index" and response.mimetype == "text/html":
            base = self._node.options.web_base_path or ""
            tag = f'<script src="{base}/harness/tab.js" data-base="{base}"></script></body>'
            response.set_data(response.get_data(as_text=True).replace("</body>", tag))
        return response

    def _totals(self) -> Totals | None:
        node = self._node
        if node.run is None:
            return None
        return Snapshot.from_plain(node.observe().snapshot).run(node.run.name)

    def _rows(self) -> list[dict[str, Any]]:
        totals = self._totals()
        if totals is None:
            return []
        baseline = self._baseline if self._baseline is not None and self._baseline.run == totals.run else None
        return rows(totals, baseline)

    def _validity(self) -> dict[str, Any]:
        """Return whether the run is valid: the verdict at its end, until then how it stands."""
        state, totals = (self._node.states[-1] if self._node.states else None), self._totals()
        if state is None or totals is None:
            return {"valid": None, "reasons": []}
        valid, reasons = state.valid, state.reasons
        if self._node.is_on:
            tolerate = self._node.options.tolerate_worker_loss
            now = validity_of(totals, self._node.losses(), state.threshold_s, tolerate=tolerate)
            valid, reasons = now.valid, now.reasons
        return {"valid": valid, "reasons": [reason.text for reason in reasons]}

    def _reset(self, **_: Any) -> None:
        """Locust's reset button: the tab counts from here; the counters of the exporter never go back."""
        self._baseline = self._totals()
        self._samples.clear()

    def _sample(self) -> None:
        while True:
            gevent.sleep(SAMPLE_S)
            runner = self._node.environment.runner
            totals = (
                self._totals() if runner is not None and runner.state in ("spawning", "running") else None
            )
            if totals is not None:
                self._samples.take(totals, time.time())

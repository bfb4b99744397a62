"""Configuration with which Prometheus scrapes a run and Grafana shows the boards, nothing to click."""

from __future__ import annotations

from harness.observe.boards.panels import Json

SCRAPE_INTERVAL = "5s"
EXPORTER_PORT = 9646


def prometheus() -> Json:
    """Return Prometheus's configuration: one scrape of the master is enough for any number of workers."""
    return {
        "global": {"scrape_interval": SCRAPE_INTERVAL, "evaluation_interval": SCRAPE_INTERVAL},
        "rule_files": ["recording.yml", "alerts.yml"],
        "scrape_configs": [
            {"job_name": "harness", "static_configs": [{"targets": [f"master:{EXPORTER_PORT}"]}]},
            {"job_name": "prometheus", "static_configs": [{"targets": ["127.0.0.1:9090"]}]},
        ],
    }


def grafana_datasource() -> Json:
    """Return Grafana's data source; its interval has to be the scrape interval, which rate windows follow."""
    return {
        "apiVersion": 1,
        "prune": True,
        "datasources": [
            {
                "name": "Prometheus",
                "uid": "harness-prometheus",
                "type": "prometheus",
                "access": "proxy",
                "url": "http://prometheus:9090",
                "isDefault": True,
                "editable": False,
                "jsonData": {"httpMethod": "POST", "timeInterval": SCRAPE_INTERVAL},
            }
        ],
    }


def grafana_boards() -> Json:
    """Return where Grafana finds the boards."""
    return {
        "apiVersion": 1,
        "providers": [
            {
                "name": "harness",
                "folder": "Harness",
                "type": "file",
                "allowUiUpdates": False,
                "disableDeletion": True,
                "options": {"path": "/var/lib/grafana/dashboards"},
            }
        ],
    }

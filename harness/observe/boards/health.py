"""What stands on every board: whether the data is simulated, and whether the load generator kept up."""

from __future__ import annotations

from harness.observe.boards.layout import Placed, Row, small, wide
from harness.observe.boards.panels import BAD, WARN, Query, mapping, stat, thresholds
from harness.observe.boards.queries import RANGE, RATE, metric, rate, share
from harness.observe.families import PREFIX

# Prometheus makes this one itself for every target; the job is named in the scrape configuration.
SCRAPE_SECONDS = 'scrape_duration_seconds{job="harness"}'


def banner() -> Placed:
    """Return the panel that says whether a gateway was played or real."""
    info = f"last_over_time({{}}[{RANGE}])"
    simulated = info.format(metric("run_info", 'simulated="true"'))
    any_run = info.format(metric("run_info"))
    return wide(
        stat(
            "What this data is",
            "Orange when any run in view was played by the simulated gateway, whose numbers say nothing"
            " about a real one. Such series also carry a gateway that begins with 'sim:'.\n\nMetric:"
            f" `{PREFIX}run_info`",
            "none",
            Query(f"max({simulated}) or max({any_run}) * 0", "", "instant"),
            none="No run in this time range",
            mappings=[
                mapping("1", "SIMULATED DATA: a simulated gateway was measured, not a real one", "orange"),
                mapping("0", "A real gateway was measured", "blue"),
            ],
        ),
        height=2,
    )


def generator_row() -> Row:
    """Return the numbers of the load generator itself. If one is red, so is every other number of the run."""
    void = "If this is red, the run's numbers describe the load generator and not the gateway."
    lag = f"sum by (le) (rate({PREFIX}{{}}_bucket[{RATE}]))"
    arrivals = rate("arrivals_total")
    dropped = rate("arrivals_total", 'result="dropped"')

    def worst(title: str, about: str, unit: str, expr: str, warn: float, bad: float) -> Placed:
        limits = thresholds((warn, WARN), (bad, BAD))
        return small(stat(title, f"{about} {void}", unit, Query(expr), limits=limits, worst="max", none="–"))

    def p99(name: str) -> str:
        return f"histogram_quantile(0.99, {lag.format(name)}) >= 0"

    return Row(
        "Load generator: void if red",
        [
            worst(
                "Event loop lag p99",
                "Worst in view: how much later than asked a process came round. Metric:"
                f" `{PREFIX}hub_lag_seconds`.",
                "s",
                p99("hub_lag_seconds"),
                0.02,
                0.05,
            ),
            worst(
                "Read lag p99",
                "Worst in view: how long bytes waited in the kernel. The kernel's time stamps keep it out of"
                f" the measured times. Metric: `{PREFIX}generator_lag_seconds`.",
                "s",
                p99("generator_lag_seconds"),
                0.05,
                0.2,
            ),
            worst(
                "Uncertain arrivals p99",
                "Worst in view: width of the window in which an event arrived, among those read late. "
                f"Metric: `{PREFIX}generator_uncertainty_seconds`.",
                "s",
                p99("generator_uncertainty_seconds"),
                0.02,
                0.1,
            ),
            worst(
                "CPU, busiest process",
                f"Worst in view; 100 % is one core. Metric: `{PREFIX}generator_cpu_ratio`.",
                "percentunit",
                f"max({PREFIX}generator_cpu_ratio)",
                0.7,
                0.9,
            ),
            worst(
                "Arrivals dropped",
                "Worst in view: planned starts for which no user was free. "
                f"Metric: `{PREFIX}arrivals_total`.",
                "percentunit",
                share(dropped, arrivals),
                0.001,
                0.01,
            ),
            worst(
                "Arrival lag p99",
                "Worst in view: how much later than planned a request started. "
                f"Metric: `{PREFIX}arrival_lag_seconds`.",
                "s",
                f"histogram_quantile(0.99, {rate('arrival_lag_seconds_bucket', by=('le',))}) >= 0",
                0.005,
                0.05,
            ),
            worst(
                "Open sockets",
                f"Worst in view, all processes together. Metric: `{PREFIX}generator_open_sockets`.",
                "short",
                f"sum({PREFIX}generator_open_sockets)",
                20_000,
                28_000,
            ),
            worst(
                "Scrape duration",
                "Worst in view: a slow scrape is a starved generator. Metric: `scrape_duration_seconds`.",
                "s",
                f"max({SCRAPE_SECONDS})",
                0.1,
                0.5,
            ),
        ],
    )

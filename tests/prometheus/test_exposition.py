"""The exporter's output by promtool's rules for names, units and help; and under a flood of labels."""

from __future__ import annotations

import pytest

from harness.observe.aggregate import Aggregate
from harness.observe.exposition import text
from harness.observe.families import FAMILIES
from harness.observe.labels import Labels
from harness.observe.state import Observed
from harness.stream.record import ErrorRecord, Retry
from tests.prometheus.dataset import NO_STREAM, Session, attempt
from tests.prometheus.server import promtool


def test_every_metric_passes_promtools_check(dataset):
    exposition = text(dataset.last, openmetrics=False)
    with_samples = {
        line.partition("{")[0].partition(" ")[0] for line in exposition.splitlines() if line[0] != "#"
    }

    # All families have samples in the made-up runs, so the check sees all of them.
    assert [] == [name for name in FAMILIES if not any(s.startswith(f"harness_{name}") for s in with_samples)]
    checked = promtool("check", "metrics", stdin=exposition)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_promtool_would_have_said_so(dataset):
    exposition = text(dataset.last, openmetrics=False)

    checked = promtool(
        "check", "metrics", stdin=exposition.replace("harness_retries_total", "harness_retries")
    )
    assert checked.returncode == 3
    assert 'counter metrics should have "_total" suffix' in checked.stdout + checked.stderr


def test_an_empty_exporter_passes_too():
    checked = promtool("check", "metrics", stdin=text(Observed(Aggregate().snapshot(0.0)), openmetrics=False))

    assert checked.returncode == 0


@pytest.mark.parametrize("what", ["error types", "statuses", "violations", "retry reasons", "models"])
def test_a_flood_of_values_that_a_server_chooses_makes_a_bounded_number_of_series(what):
    aggregate = Aggregate("w1")
    aggregate.begin_run("r1")

    def attempts(number):
        for i in range(number):
            value = f'evil-{i}-"\\\n' + "x" * 500
            labels = Labels("r1", "chat", "g", "default", value if what == "models" else "m1")
            changed = {
                "error types": {
                    "outcome": "error_event",
                    "error": ErrorRecord("stream", value, None, "", False, "data"),
                },
                "statuses": {"outcome": "http_error", **NO_STREAM, "status": 1000 + i},
                "violations": {"violations": {value: 1}},
                "models": {},
                "retry reasons": {"final": False, "outcome": "cut", "retry": Retry("retry", value, 0.1)},
            }[what]
            session = Session()
            aggregate.attempt_started(labels, session)
            aggregate.attempt_ended(labels, session, attempt(labels, i, **changed))

    def series():
        lines = text(Observed(aggregate.snapshot(0.0)), openmetrics=False).splitlines()
        return sum(not line.startswith("#") for line in lines)

    attempts(300)
    before = series()
    attempts(5000)

    assert before == series() < 40_000
    body = text(Observed(aggregate.snapshot(0.0)), openmetrics=False)
    assert '="other"' in body
    assert max(map(len, body.splitlines())) < 800

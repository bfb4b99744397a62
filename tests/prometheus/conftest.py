"""What the tests on a real Prometheus share; without one they are skipped, and say so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.prometheus.dataset import Dataset, make
from tests.prometheus.server import MISSING, Prometheus, promtool

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs the programs if they are not there."""
    if MISSING:
        why = f"NOT TESTED: no {' or '.join(MISSING)} on the PATH; sh scripts/prometheus.sh installs both"
        for item in items:
            if HERE in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture(scope="session")
def dataset() -> Dataset:
    return make()


@pytest.fixture(scope="session")
def backfilled(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A Prometheus that holds the made-up runs r1 and r2."""
    folder = tmp_path_factory.mktemp("backfill")
    (folder / "data.om").write_text(dataset.text, encoding="utf-8")
    done = promtool(
        "tsdb", "create-blocks-from", "openmetrics", str(folder / "data.om"), str(folder / "tsdb")
    )
    assert done.returncode == 0, done.stderr
    with Prometheus(folder / "tsdb") as server:
        yield server

"""The generated files: fresh in this repository, whole, read by other parsers, and reported when stale."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harness.cli import main
from harness.observe.boards import files, rules
from harness.observe.boards.yamltext import to_yaml
from harness.observe.counting import Vocabularies
from harness.observe.families import FAMILIES

REPOSITORY = Path(__file__).parents[2]


def test_the_committed_files_are_fresh():
    assert [] == files.stale(REPOSITORY, files.generate())


def test_stale_missing_and_foreign_files_are_named(tmp_path, capsys):
    assert main(["dashboards", "--root", str(tmp_path)]) == 0
    assert main(["dashboards", "--root", str(tmp_path), "--check"]) == 0
    assert (
        main(["dashboards", "--root", str(tmp_path), "--check", "--runbook", "https://docs.example/run"]) == 1
    )
    (tmp_path / "dashboards/grafana/harness-stalls.json").write_text("{}")
    (tmp_path / "dashboards/prometheus/alerts.yml").unlink()
    (tmp_path / "dashboards/grafana/old.json").write_text("{}")
    capsys.readouterr()

    assert main(["dashboards", "--root", str(tmp_path), "--check"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "harness dashboards: dashboards/grafana/harness-stalls.json is stale",
        "harness dashboards: dashboards/prometheus/alerts.yml is missing",
        "harness dashboards: dashboards/grafana/old.json is not generated",
        "harness dashboards: write them anew with `harness dashboards`",
    ]


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path, capsys):
    (tmp_path / "dashboards").write_text("in the way")

    assert main(["dashboards", "--root", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("harness dashboards: cannot write ")


def test_the_runbook_may_be_elsewhere():
    made = files.generate("https://docs.example/runbook")["dashboards/prometheus/alerts.yml"]

    assert 'runbook_url: "https://docs.example/runbook#streams-stall"' in made


def test_every_file_is_read_back_as_it_was_meant():
    made = files.generate()

    assert 11 == len(made)
    for path, text in made.items():
        if path.endswith(".json"):
            assert files.boards()[Path(path).name] == json.loads(text)
    assert rules.recording() == yaml.safe_load(made["dashboards/prometheus/recording.yml"])
    assert rules.alerts() == yaml.safe_load(made["dashboards/prometheus/alerts.yml"])


def test_the_data_source_has_the_scrape_interval():
    """Grafana derives the window of rates from it; with its own default of 15 s charts would be coarse."""
    made = files.generate()
    prometheus = yaml.safe_load(made["dashboards/prometheus/prometheus.yml"])
    (source,) = yaml.safe_load(made["dashboards/provisioning/datasources/prometheus.yml"])["datasources"]

    assert prometheus["global"]["scrape_interval"] == source["jsonData"]["timeInterval"] == "5s"


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-9999, 9999).map(lambda n: n / 8)
    | st.text(
        alphabet=st.characters(exclude_categories=("C", "Zl", "Zp")) | st.sampled_from("\n:#-'\"{}[]|> ")
    ),
    lambda inner: st.lists(inner) | st.dictionaries(st.from_regex(r"[a-z_]{1,9}", fullmatch=True), inner),
    max_leaves=12,
)


@given(PLAIN.filter(lambda data: isinstance(data, dict | list)))
def test_yaml_is_read_back_the_same(data):
    assert data == yaml.safe_load(to_yaml(data, "a note"))


def test_the_metrics_page_names_every_metric_label_and_limit():
    page = files.generate()["docs/metrics.md"]

    for family in FAMILIES.values():
        section = page.partition(f"### `harness_{family.name}`\n")[2].partition("\n###")[0]
        assert family.help in section
        assert f"{family.kind.capitalize()}. Labels: " in section
        assert bool(family.bounds) == ("Buckets: [" in section)
    words = Vocabularies()
    for name, vocabulary in [
        ("error types", words.error_types),
        ("models", words.models),
        ("statuses", words.statuses),
        ("rules", words.rules),
        ("reasons", words.reasons),
    ]:
        room = sum(vocabulary.fold(f"v{i}") != "other" for i in range(1000))
        assert f"{name} {room}" in " ".join(page.split())


@pytest.mark.parametrize("name", [alert.name for alert in rules.ALERTS])
def test_every_alert_leads_to_a_heading_of_the_runbook(name):
    alert = next(a for a in rules.ALERTS if a.name == name)
    runbook = (REPOSITORY / "docs" / "runbook.md").read_text(encoding="utf-8")
    section = runbook.partition(f"\n## {alert.heading}\n")[2].partition("\n## ")[0]

    assert f"`{name}`" in section
    assert "**Look at**" in section
    assert "**Do**" in section

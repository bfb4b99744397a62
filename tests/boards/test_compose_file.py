"""The compose file and the Dockerfile without an engine: paths, ports, variables, users, probes."""

from __future__ import annotations

from locust.argument_parser import get_parser

import argparse
import re
from fnmatch import fnmatch

import pytest
import yaml

import harness.load  # noqa: F401  # gives Locust's parser the options of the harness
from harness.observe.boards.provisioning import EXPORTER_PORT
from harness.sim.options import add_arguments
from tests.boards.compose import (
    COMPOSE,
    DOCKERFILE,
    OURS,
    REPOSITORY,
    SERVICES,
    TEXT,
    VARIABLE,
    command,
    filled,
)


def test_the_services_are_those_of_a_whole_test_bench():
    assert set(SERVICES) == {"sim", "master", "worker", "prometheus", "grafana"}
    assert set(OURS) == {"sim", "master", "worker"}


@pytest.mark.parametrize("name", SERVICES)
def test_every_mounted_path_is_there_and_every_volume_declared(name):
    for mount in SERVICES[name].get("volumes", []):
        source, target = mount.split(":")[:2]
        assert target.startswith("/")
        if source.startswith("."):
            assert (REPOSITORY / source).is_dir(), mount
            assert mount.endswith(":ro")
        else:
            assert source in COMPOSE["volumes"]


@pytest.mark.parametrize("name", SERVICES)
def test_every_path_that_a_service_names_is_mounted(name):
    service = SERVICES[name]
    mounts = {m.split(":")[1]: m.split(":")[0] for m in service.get("volumes", [])}
    mounts |= dict.fromkeys(service.get("tmpfs", []), "tmpfs")
    words = [*map(str, service.get("command", [])), *map(str, (service.get("environment") or {}).values())]
    for path in re.findall(r"(?:^|(?<==))/[\w/.-]+", "\n".join(words), re.MULTILINE):
        home = next((target for target in mounts if path == target or path.startswith(target + "/")), None)
        assert home, f"{path} is in no mount of {name}"
        if mounts[home].startswith("."):
            assert (REPOSITORY / mounts[home] / path.removeprefix(home).lstrip("/")).exists(), path


def test_grafana_finds_data_source_and_boards():
    source = yaml.safe_load((REPOSITORY / "dashboards/provisioning/datasources/prometheus.yml").read_text())
    boards = yaml.safe_load((REPOSITORY / "dashboards/provisioning/dashboards/harness.yml").read_text())
    mounts = {m.split(":")[1]: m.split(":")[0] for m in SERVICES["grafana"]["volumes"]}
    listens = next(c for c in SERVICES["prometheus"]["command"] if "listen-address" in c).rpartition(":")[2]

    assert source["datasources"][0]["url"] == f"http://prometheus:{listens}"
    assert mounts[boards["providers"][0]["options"]["path"]] == "./dashboards/grafana"
    assert {"datasources", "dashboards"} == {
        p.name for p in (REPOSITORY / "dashboards/provisioning").iterdir()
    }
    assert mounts["/etc/grafana/provisioning"] == "./dashboards/provisioning"


def test_prometheus_scrapes_the_port_of_the_master():
    config = yaml.safe_load((REPOSITORY / "dashboards/prometheus/prometheus.yml").read_text())
    targets = {job["job_name"]: job["static_configs"][0]["targets"] for job in config["scrape_configs"]}

    assert targets["harness"] == [f"master:{EXPORTER_PORT}"]
    assert "--metrics-port" not in SERVICES["master"]["command"]  # so it is the default
    metrics = SERVICES["master"]["command"].index("--metrics-host")
    assert SERVICES["master"]["command"][metrics + 1] == "0.0.0.0"
    assert config["rule_files"] == ["recording.yml", "alerts.yml"]


@pytest.mark.parametrize("name", SERVICES)
def test_ports_are_open_on_loopback_alone(name):
    for port in SERVICES[name].get("ports", []):
        address, outside, inside = port.split(":")
        assert (address, outside) == ("127.0.0.1", inside)
        if name in OURS:
            assert re.search(rf"^EXPOSE .*\b{inside}\b", DOCKERFILE, re.MULTILINE)


def test_only_grafana_on_loopback_may_be_read_without_a_password():
    assert SERVICES["grafana"]["environment"]["GF_AUTH_ANONYMOUS_ENABLED"] == "true"
    assert SERVICES["grafana"]["environment"]["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"
    assert SERVICES["grafana"]["ports"] == ["127.0.0.1:3000:3000"]


@pytest.mark.parametrize("name", SERVICES)
def test_nobody_is_root_and_every_service_is_probed_without_curl(name):
    service = SERVICES[name]
    if name in OURS:
        user = re.search(r"^USER (\S+)$", DOCKERFILE, re.MULTILINE)
        assert user
        assert int(user[1]) > 0
        assert service["healthcheck"]["test"][:2] == ["CMD", "python"]
        compile(service["healthcheck"]["test"][3], name, "exec")
    else:
        assert int(service["user"]) > 0
        assert service["healthcheck"]["test"][:2] == ["CMD", "wget"]
    assert "curl" not in str(service)
    for other, wanted in service.get("depends_on", {}).items():
        assert wanted == {"condition": "service_healthy"}
        assert "healthcheck" in SERVICES[other]


def test_images_are_pinned():
    images = [service["image"] for name, service in SERVICES.items() if name not in OURS]
    images += re.findall(r"^FROM (\S+:\S+)", DOCKERFILE, re.MULTILINE)

    assert len(images) == 4
    for image in images:
        assert re.search(r":v?\d+\.\d+\.\d+", image), image


def test_every_variable_has_a_default_and_reaches_a_service():
    assert len(VARIABLE.findall(TEXT)) == TEXT.count("${")
    for name in {name for name, _ in VARIABLE.findall(TEXT)}:
        assert "marker-value" in str(filled(**{name: "marker-value"})["services"]), name


@pytest.mark.parametrize("name", OURS)
def test_the_commands_use_options_that_exist(name):
    _, subcommand, *arguments = command(name)
    if subcommand == "run":
        parser: argparse.ArgumentParser = get_parser()
    else:
        parser = argparse.ArgumentParser()
        add_arguments(parser)

    assert vars(parser.parse_args(arguments))["gateway"] == "hopbase"


def test_the_image_is_built_of_what_is_there_and_not_ignored():
    ignored = (REPOSITORY / ".dockerignore").read_text(encoding="utf-8").splitlines()
    allowed = [line[1:] for line in ignored if line.startswith("!")]
    copied = [
        source
        for sources in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)
        for source in sources.split()
    ]

    assert ignored[0] == "*"
    assert set(copied) == set(allowed)
    for source in copied:
        assert (REPOSITORY / source).exists(), source
        assert not [line for line in ignored[1:] if not line.startswith("!") and fnmatch(source, line)]


def test_results_are_on_a_volume_that_the_user_may_write():
    at = SERVICES["master"]["command"].index("--results")
    folder = SERVICES["master"]["command"][at + 1]

    assert f"results:{folder}" in SERVICES["master"]["volumes"]
    assert re.search(rf"mkdir {folder} && chown harness:harness {folder}$", DOCKERFILE, re.MULTILINE)
    assert re.search(rf"^VOLUME {folder}$", DOCKERFILE, re.MULTILINE)

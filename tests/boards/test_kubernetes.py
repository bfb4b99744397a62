"""The manifests of docs/kubernetes.md against what the operator's API takes, and against ourselves."""

from __future__ import annotations

from locust.argument_parser import get_parser

import copy
import re
import shlex

import pytest
import yaml
from jsonschema import Draft202012Validator

import harness.load  # noqa: F401  # gives Locust's parser the options of the harness
from harness.observe.boards.health import SCRAPE_SECONDS
from harness.observe.boards.provisioning import EXPORTER_PORT
from harness.sim.options import add_arguments
from tests.boards.compose import DOCKERFILE, REPOSITORY

PAGE = (REPOSITORY / "docs" / "kubernetes.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
DOCUMENTS = [document for block in BLOCKS for document in yaml.safe_load_all(block)]

TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
QUANTITIES = {"type": "object", "additionalProperties": {"type": ["string", "integer"]}}
ROLE = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "labels": TEXTS,
        "annotations": TEXTS,
        "resources": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"requests": QUANTITIES, "limits": QUANTITIES},
        },
    },
}
# What locust.io/v1 takes. A cluster drops what it does not know without a word; here that is an error.
LOCUST_TEST = {
    "type": "object",
    "additionalProperties": False,
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"const": "locust.io/v1"},
        "kind": {"const": "LocustTest"},
        "metadata": {"type": "object", "required": ["name"]},
        "spec": {
            "type": "object",
            "additionalProperties": False,
            "required": ["workers"],
            "properties": {
                "annotations": TEXTS,
                "labels": TEXTS,
                "image": {"type": "string"},
                "imagePullPolicy": {"enum": ["IfNotPresent", "Always", "Never"]},
                "imagePullSecrets": {"type": "array"},
                "workers": {"type": "integer", "minimum": 1},
                "args": {"type": "string"},
                "env": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "additionalProperties": False,
                        "required": ["name"],
                        "properties": {"name": {"type": "string"}, "value": {"type": "string"}},
                    },
                },
                "master": ROLE,
                "worker": ROLE,
                "locustfile": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {
                        "content": {"type": "string"},
                        "configMap": {"type": "object", "required": ["name"]},
                    },
                    "oneOf": [{"required": ["content"]}, {"required": ["configMap"]}],
                },
                "metrics": {"type": "object"},
            },
        },
    },
}


def faults(document):
    return [error.message for error in Draft202012Validator(LOCUST_TEST).iter_errors(document)]


def of_kind(kind):
    (found,) = (d for d in DOCUMENTS if d.get("kind") == kind)
    return found


def test_the_page_holds_the_manifests():
    assert ["Deployment", "Service", "LocustTest", None] == [d.get("kind") for d in DOCUMENTS]


def test_the_load_test_is_what_the_operator_takes():
    assert [] == faults(of_kind("LocustTest"))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("apiVersion",), "locust.cloud/v1"),
        (("spec", "workers"), "4"),
        (("spec", "args"), ["--headless"]),
        (("spec", "host"), "http://x"),
        (("spec", "env"), [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "x", "key": "y"}}}]),
        (("spec", "master", "ports"), [9646]),
        (("spec", "locustfile", "configMap"), {"name": "x"}),
    ],
)
def test_what_it_does_not_take_is_found(path, value):
    document = copy.deepcopy(of_kind("LocustTest"))
    *keys, last = path
    at = document
    for key in keys:
        at = at[key]
    at[last] = value

    assert faults(document)


@pytest.mark.parametrize("role", [["--master"], ["--worker", "--master-host", "harness-master"]])
def test_the_arguments_mean_something_in_both_roles(role):
    spec = of_kind("LocustTest")["spec"]
    more = re.search(r"add `(--headless[^`]*)` to `args`", PAGE)
    assert more

    for arguments in (shlex.split(spec["args"]), shlex.split(f"{spec['args']} {more[1]}")):
        parsed = get_parser().parse_args([*role, *arguments])
        assert (parsed.gateway, parsed.num_users, parsed.metrics_host) == ("hopbase", 200, "0.0.0.0")
        # The operator's mount over /home/locust is read-only.
        assert parsed.results == "/results"
        assert parsed.locustfile == "/home/locust/locustfile.py"


def test_the_locustfile_is_importable_as_it_stands():
    namespace: dict[str, object] = {}
    exec(of_kind("LocustTest")["spec"]["locustfile"]["content"], namespace)

    assert {"ChatUser", "MessagesUser", "ResponsesUser"} <= set(namespace)


def test_the_image_is_one_that_takes_the_operators_arguments_and_is_not_root():
    images = {of_kind("LocustTest")["spec"]["image"]}
    pod = of_kind("Deployment")["spec"]["template"]["spec"]
    images |= {container["image"] for container in pod["containers"]}
    (image,) = images

    assert f"docker build --target locust -t {image} ." in PAGE
    assert 'FROM runtime AS locust\nENTRYPOINT ["harness", "run"]\n' in DOCKERFILE
    assert f"\nUSER {pod['securityContext']['runAsUser']}\n" in DOCKERFILE


def test_the_simulators_command_and_ports_fit_together():
    import argparse

    (container,) = of_kind("Deployment")["spec"]["template"]["spec"]["containers"]
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    program, command, *arguments = container["command"]
    parsed = parser.parse_args(arguments)
    service = of_kind("Service")

    assert (program, command) == ("harness", "sim")
    assert parsed.port == container["ports"][0]["containerPort"] == service["spec"]["ports"][0]["targetPort"]
    assert container["readinessProbe"]["httpGet"] == {"path": "/v1/models", "port": parsed.port}
    url = f"http://{service['metadata']['name']}:{service['spec']['ports'][0]['port']}"
    assert f"--host {url}" in of_kind("LocustTest")["spec"]["args"]


def test_prometheus_finds_the_exporter_under_the_job_that_boards_ask_for():
    config = DOCUMENTS[-1]["scrape_configs"][0]

    assert f'job="{config["job_name"]}"' in SCRAPE_SECONDS
    assert config["relabel_configs"][-1]["replacement"] == f"$1:{EXPORTER_PORT}"
    annotations = of_kind("LocustTest")["spec"]["master"]["annotations"]
    assert annotations == {"prometheus.io/scrape": "true", "prometheus.io/port": str(EXPORTER_PORT)}

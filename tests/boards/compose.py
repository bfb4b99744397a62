"""The compose file as Docker reads it: variables filled with their defaults, anchors merged."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).parents[2]
TEXT = (REPOSITORY / "docker-compose.yml").read_text(encoding="utf-8")
DOCKERFILE = (REPOSITORY / "Dockerfile").read_text(encoding="utf-8")

VARIABLE = re.compile(r"\$\{(\w+):-([^}]*)\}")


def filled(text: str = TEXT, **values: str) -> dict[str, Any]:
    """The file with its variables replaced by *values* or their defaults."""
    return dict(yaml.safe_load(VARIABLE.sub(lambda found: values.get(found[1], found[2]), text)))


COMPOSE = filled()
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = [name for name, service in SERVICES.items() if service.get("build")]


def command(service: str) -> list[str]:
    """The whole command of a service of ours, entry point and all."""
    found = re.search(r'^ENTRYPOINT \["(\w+)"\]$', DOCKERFILE, re.MULTILINE)
    assert found
    return [found[1], *map(str, SERVICES[service]["command"])]

"""Plain data as YAML that people can read: what rule and provisioning files need, and nothing more."""

from __future__ import annotations

import json
import re

# Read back as the same string by every YAML parser; anything else is quoted as JSON, which is YAML.
_PLAIN = re.compile(r"[A-Za-z_/.][A-Za-z0-9_/. -]*[A-Za-z0-9_/]|[A-Za-z_/]")
_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


def to_yaml(data: object, comment: str) -> str:
    """Return *data* (dicts, lists, strings, numbers, booleans) under a *comment*."""
    head = "".join(f"# {line}\n" for line in comment.splitlines())
    return head + "\n".join(_lines(data)) + "\n"


def _lines(data: object) -> list[str]:
    if isinstance(data, dict) and data:
        return [line for key, value in data.items() for line in _entry(f"{_scalar(key)}:", value)]
    if isinstance(data, list) and data:
        return [line for item in data for line in _item(item)]
    return [_scalar(data)]


def _entry(key: str, value: object) -> list[str]:
    if isinstance(value, dict | list) and value:
        return [key, *(f"  {line}" for line in _lines(value))]
    if isinstance(value, str) and "\n" in value and value == value.strip():
        return [f"{key} |-", *(f"  {line}" if line else "" for line in value.split("\n"))]
    return [f"{key} {_scalar(value)}"]


def _item(item: object) -> list[str]:
    first, *rest = _lines(item)
    return [f"- {first}", *(f"  {line}" for line in rest)]


def _scalar(value: object) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value, ensure_ascii=False)

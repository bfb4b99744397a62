"""The lock files: complete, hashed, in step with pyproject.toml, and silent about where they were made."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

REPOSITORY = Path(__file__).parents[2]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def pins(lock: str) -> dict[str, list[str]]:
    """Name and version, as `name==version`, to the hashes of each pin in a lock file."""
    found: dict[str, list[str]] = {}
    for line in (REPOSITORY / lock).read_text(encoding="utf-8").splitlines():
        if pin := re.match(r"([a-z0-9-]+==[^\s;]+)", line):
            hashes = found.setdefault(pin[1], [])
        elif digest := re.fullmatch(r"    --hash=(sha256:[0-9a-f]{64})(?: \\)?", line):
            hashes.append(digest[1])
        else:
            raise AssertionError(f"{lock}: neither pin nor hash: {line}")
    return found


LOCKS = sorted(path.name for path in REPOSITORY.glob("requirements*.lock"))


def test_the_locks_are_these():
    peers = ["requirements-peers-litellm.lock", "requirements-peers-node.lock"]

    assert ["requirements-dev.lock", *peers, "requirements.lock"] == LOCKS


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_is_hashed_and_no_line_says_where_it_came_from(lock):
    assert all(pins(lock).values())


@pytest.mark.parametrize(
    ("lock", "wanted"),
    [
        ("requirements.lock", PROJECT["dependencies"]),
        ("requirements-dev.lock", [*PROJECT["dependencies"], *EXTRAS["dev"]]),
    ],
)
def test_the_lock_holds_what_pyproject_asks_for(lock, wanted):
    """After a change of a dependency: `make lock`."""
    locked = dict(pin.split("==") for pin in pins(lock))

    stale = [text for text in wanted if not in_lock(Requirement(text), locked)]

    assert [] == stale


def in_lock(wanted: Requirement, locked: dict[str, str]) -> bool:
    return wanted.name in locked and wanted.specifier.contains(locked[wanted.name], prereleases=True)


def test_both_locks_agree():
    """What users install is what was tested."""
    assert pins("requirements.lock").items() <= pins("requirements-dev.lock").items()


def test_the_lock_of_npm_packages_is_hashed_and_says_nothing_of_registries():
    text = (REPOSITORY / "tests/peers/aimock/package-lock.json").read_text(encoding="utf-8")
    packages = [entry for name, entry in json.loads(text)["packages"].items() if name]

    assert packages
    assert all(entry["integrity"].startswith("sha512-") for entry in packages)
    assert "://" not in text

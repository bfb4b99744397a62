"""What a results folder says about its run beside the records:

``run.json`` and ``summary.json``, if they are there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from harness.observe.results import RUN, SUMMARY, ResultsError


@dataclass(frozen=True, slots=True)
class RunFacts:
    """A run's folder and its two descriptions; empty where a file is missing."""

    folder: Path
    run: Mapping[str, Any]
    summary: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The run's name."""
        return str(self.run.get("run") or self.summary.get("run") or self.folder.name)

    @property
    def gateway(self) -> str:
        """The gateway, ``sim:…`` if simulated; a question mark if no file says."""
        return str(self.summary.get("gateway") or self.run.get("gateway") or "?")

    @property
    def simulated(self) -> bool:
        """Whether the gateway was played."""
        return bool(self.summary.get("simulated") or self.run.get("simulated"))

    @property
    def time_scale(self) -> float:
        """By how much the profile's durations were multiplied."""
        return _number(self.run.get("time_scale", self.summary.get("time_scale")), 1.0)

    @property
    def started_at(self) -> float | None:
        """Unix seconds."""
        value = self.summary.get("started_at", self.run.get("started_at"))
        return value if isinstance(value, float) else None

    @property
    def killed(self) -> bool:
        """Whether the run began as usual and never came to its end: what was open then is in no record."""
        return bool(self.run) and not self.summary

    @property
    def tags(self) -> dict[str, str]:
        """The tags that the run was given."""
        tags = self.run.get("tags")
        return {str(k): str(v) for k, v in tags.items()} if isinstance(tags, dict) else {}


def read_facts(folder: Path) -> RunFacts:
    """Return what the folder says of its run. Raises `ResultsError` if a file is there and makes no sense."""
    return RunFacts(folder, _object(folder / RUN), _object(folder / SUMMARY))


def _object(path: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ResultsError(f"cannot read {path} ({error.strerror or error})") from None
    except msgspec.DecodeError as error:
        raise ResultsError(f"{path} is not the JSON that a run writes: {error}") from None


def _number(value: object, fallback: float) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else fallback

"""What a run leaves behind, while it goes on: its folder, its records, its timelines."""

from __future__ import annotations

import locust

import platform
import time
from argparse import Namespace
from collections.abc import Callable
from typing import Any

import msgspec

from harness import __version__
from harness.load.settings import Settings
from harness.observe.results import ATTEMPTS, RUN, TIMELINES, AttemptLog, LineFile, ResultsFolder
from harness.observe.timelines import TimelineLog
from harness.stream import Attempt
from harness.swarm.configure import tags_of

# Options whose values are secrets or may hold one, and what argparse itself keeps.
_NOT_SHOWN = frozenset({"header", "api_key_env", "web_login", "tls_key"})


class Keeper:
    """The sink of a run's records on the master or local node."""

    def __init__(self, folder: ResultsFolder, save_content: bool) -> None:
        self.folder = folder
        self.run = folder.run
        self.attempts = AttemptLog(folder.path / ATTEMPTS)
        self.timelines = TimelineLog(folder.path / TIMELINES)
        self.content = LineFile(folder.path / "content.jsonl") if save_content else None

    @classmethod
    def open(cls, options: Namespace, settings: Settings) -> Keeper:
        """Make the folder and write `run.json`. Raises `UsageError` or `ResultsError`."""
        tags = tags_of(options.tag)
        name = options.run_name or time.strftime("%Y%m%d-%H%M%S")
        keeper = cls(ResultsFolder(options.results, name), settings.save_content)
        keeper.folder.write_json(RUN, describe_run(keeper.run, options, settings, tags))
        return keeper

    def add(
        self, record: Attempt, timeline: Callable[[], dict[str, Any]], content: dict[str, Any] | None
    ) -> None:
        """Keep an ended attempt; what cannot be written is counted as lost."""
        self.attempts.add(record)
        self.timelines.add(record, timeline)
        if content is not None and self.content is not None:
            self.content.append(msgspec.json.encode(content))

    def flush(self) -> None:
        """Hand what was taken to the operating system, so that a killed run loses at most the last second."""
        for file in self._files():
            file.flush()

    def close(self) -> None:
        """Write what is left and close the files."""
        for file in self._files():
            file.close()

    @property
    def lost(self) -> int:
        """Records that did not reach the disk."""
        return self.attempts.lost

    def _files(self) -> list[LineFile]:
        return [self.attempts, self.timelines, *([self.content] if self.content is not None else [])]


def describe_run(run: str, options: Namespace, settings: Settings, tags: dict[str, str]) -> dict[str, Any]:
    """Return what `run.json` says: enough to run the same again, and no secret."""
    shown = {
        name: value
        for name, value in sorted(vars(options).items())
        if name not in _NOT_SHOWN
        and not name.startswith("_")
        and isinstance(value, str | int | float | bool | list)
    }
    return {
        "schema": "harness.run/1",
        "run": run,
        "started_at": time.time(),
        "gateway": settings.gateway,
        "simulated": settings.simulated,
        "base_url": settings.base_url,
        "protocols": settings.protocols,
        "models": settings.models,
        "time_scale": settings.time_scale,
        "seed": settings.seed,
        "tags": tags,
        "limits": settings.profile.limits.as_dict(),
        "model_limits": {model: limits.as_dict() for model, limits in settings.profile.model_limits.items()},
        "keepalive": settings.profile.keepalive,
        "on_stall": settings.on_stall,
        "warmup_s": settings.warmup_s,
        "versions": {
            "harness": __version__,
            "locust": locust.__version__,
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.release()}",
        },
        "options": shown,
    }

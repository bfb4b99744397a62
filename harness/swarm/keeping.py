"""What a run leaves behind, while it goes on: its folder, its records, its timelines."""

from __future__ import annotations

import locust

import logging
import platform
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from harness import __version__
from harness.load.settings import Settings, UsageError
from harness.observe.results import (
    ATTEMPTS,
    CONTENT,
    RUN,
    TIMELINES,
    AttemptLog,
    LineFile,
    ResultsError,
    ResultsFolder,
)
from harness.observe.timelines import TimelineLog
from harness.stream import Attempt
from harness.stream.record import from_json
from harness.swarm.configure import tags_of

logger = logging.getLogger(__name__)

# Options whose values are secrets or may hold one, and what argparse itself keeps.
_NOT_SHOWN = frozenset({"header", "api_key_env", "web_login", "tls_key"})


class Keeper:
    """The sink of a run's records on the master or local node."""

    def __init__(self, folder: ResultsFolder, save_content: bool) -> None:
        self.folder = folder
        self._about: dict[str, Any] = {}
        self.run = folder.run
        self.attempts = AttemptLog(folder.path / ATTEMPTS)
        self.timelines = TimelineLog(folder.path / TIMELINES)
        self.content = LineFile(folder.path / CONTENT) if save_content else None
        self.watch: Callable[[Attempt], None] | None = None  # sees each record as it is kept

    @classmethod
    def open(cls, options: Namespace, settings: Settings) -> Keeper:
        """Make the folder and write `run.json`. Raises `ResultsError`."""
        name = options.run_name or time.strftime("%Y%m%d-%H%M%S")
        keeper = cls(ResultsFolder(options.results, name), settings.save_content)
        keeper._about = about_run(keeper.run, options, settings)
        keeper.folder.write_json(RUN, keeper._about)
        return keeper

    def call_simulated(self, gateway: str) -> None:
        """Correct `run.json`: the gateway turned out to be a simulated one. Never raises, the run is on."""
        self._about.update(gateway=gateway, simulated=True)
        try:
            self.folder.write_json(RUN, self._about)
        except ResultsError as error:
            logger.warning("%s", error)

    def add(
        self, record: Attempt, timeline: Callable[[], dict[str, Any]], content: dict[str, Any] | None
    ) -> None:
        """Keep an ended attempt; what cannot be written is counted as lost."""
        self.attempts.add(record)
        self.timelines.add(record, timeline)
        if self.watch is not None:
            self.watch(record)
        if content is not None and self.content is not None:
            self.content.append(msgspec.json.encode(content))

    def take(self, line: Mapping[str, Any]) -> None:
        """Keep what a worker sent: a record as JSON, its timeline if it has one, its content if kept."""
        raw = line["record"].encode()
        try:
            record = from_json(raw)
        except ValueError as error:
            self.attempts.lose(str(error))
            return
        self.attempts.append(raw)
        if line["timeline"] is not None:
            self.timelines.add(record, lambda: line["timeline"])
        if self.watch is not None:
            self.watch(record)
        if line["content"] is not None and self.content is not None:
            self.content.append(msgspec.json.encode(line["content"]))

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


def about_run(run: str, options: Namespace, settings: Settings) -> dict[str, Any]:
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
        "tags": tags_of(options.tag),
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


def check_results(base: str) -> None:
    """Raise `UsageError` if no run could leave its results in the folder *base*; make it if it is missing."""
    try:
        Path(base).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=base):
            pass
    except OSError as error:
        raise UsageError(
            f"cannot write results to {base} ({error.strerror or error}): "
            "choose a writable folder with --results DIR"
        ) from None

"""A run's folder: ``DIR/<run>/`` with the files that a run leaves behind, and ``DIR/latest``.

Whole files appear at once or not at all (a temporary name, then a rename). The line files grow while the run
goes on; a line that cannot be written is counted as lost and never disturbs a stream.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from harness.stream.record import SCHEMA, Attempt, from_json, to_json

ATTEMPTS = "attempts.jsonl"
TIMELINES = "timelines.jsonl"
RUN = "run.json"
SUMMARY = "summary.json"
CONTENT = "content.jsonl"
CAPACITY = "capacity.json"
LATEST = "latest"

_BUFFER_BYTES = 64 * 1024

Write = Callable[[int, memoryview], int]


class ResultsError(Exception):
    """Results cannot be written or read; the message is one line that says what and how to mend it."""


class ResultsFolder:
    """The folder of one run, made when this object is: ``base/run``, or ``base/run-2`` if that exists.

    Raises `ResultsError` if it cannot be made.
    """

    def __init__(self, base: Path | str, run_name: str) -> None:
        self.base = Path(base)
        if not run_name or run_name in (".", "..", LATEST) or "/" in run_name or "\0" in run_name:
            raise ResultsError(
                f"run name {run_name!r} is not a folder's name: choose another with --run-name"
            )
        try:
            self.base.mkdir(parents=True, exist_ok=True)
            self.path = self._make(run_name)
            self._point_latest()
        except OSError as error:
            raise ResultsError(
                f"cannot write results to {self.base} ({error.strerror or error}): "
                "choose a writable folder with --results DIR"
            ) from None

    @property
    def run(self) -> str:
        """The name that the run got."""
        return self.path.name

    def write_json(self, name: str, data: object) -> Path:
        """Write *data* (plain, dataclasses, structs) to the file *name*, whole or not at all.

        Raises `ResultsError` if the disk does not take it.
        """
        path = self.path / name
        temporary = self.path / f".{name}.tmp"
        try:
            temporary.write_bytes(msgspec.json.format(msgspec.json.encode(data), indent=2) + b"\n")
            temporary.replace(path)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise ResultsError(f"cannot write {path} ({error.strerror or error})") from None
        return path

    def _make(self, run_name: str) -> Path:
        number = 1
        while True:
            path = self.base / (run_name if number == 1 else f"{run_name}-{number}")
            try:
                path.mkdir()
            except FileExistsError:
                number += 1
            else:
                return path

    def _point_latest(self) -> None:
        """Let ``latest`` point to this run: a rename over the old link leaves no moment without one."""
        temporary = self.base / f".{LATEST}.{self.run}"
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(self.run, target_is_directory=True)
        temporary.replace(self.base / LATEST)


class LineFile:
    """A file of lines that only grows. Raises `ResultsError` if it cannot be opened, and never after that."""

    def __init__(self, path: Path, write: Write = os.write) -> None:
        self.path = path
        self.lines = 0  # on disk
        self.lost = 0  # not on disk, and never will be
        self.error: str | None = None  # why the last line was lost
        self._write = write
        self._buffer: list[bytes] = []
        self._size = 0
        self._end = 0  # the file is good up to here
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise ResultsError(f"cannot write {path} ({error.strerror or error})") from None

    def append(self, line: bytes) -> None:
        """Take *line* (without its end); it is on disk after the next `flush`."""
        self._buffer += (line, b"\n")
        self._size += len(line) + 1
        if self._size >= _BUFFER_BYTES:
            self.flush()

    def flush(self) -> None:
        """Hand everything to the operating system: a process that is killed later loses none of it."""
        if not self._buffer:
            return
        data, lines = b"".join(self._buffer), len(self._buffer) // 2
        self._buffer, self._size = [], 0
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[self._write(self._fd, rest) :]
        except OSError as error:
            self.error = error.strerror or str(error)
            self.lost += lines
            self._cut_back()
        else:
            self._end += len(data)
            self.lines += lines

    def close(self) -> None:
        """Flush and close. Closing twice is harmless; lines that come later are lost, and counted."""
        self.flush()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def lose(self, why: str) -> None:
        """Count a line that could not even be made."""
        self.lost += 1
        self.error = why

    def _cut_back(self) -> None:
        """Remove what was written of a failed flush, so that the file holds whole lines only."""
        try:
            os.ftruncate(self._fd, self._end)
            os.lseek(self._fd, self._end, os.SEEK_SET)
        except OSError:
            pass  # not a plain file; a reader reports the torn line


class AttemptLog(LineFile):
    """``attempts.jsonl``: one line per attempt."""

    def add(self, record: Attempt) -> None:
        """Append *record*. Never raises: what cannot be written is counted in `lost`."""
        try:
            line = to_json(record)
        except (ValueError, TypeError, msgspec.MsgspecError) as error:
            self.lose(str(error))
        else:
            self.append(line)


def find_results(path: Path | str) -> Path:
    """Return the run folder that *path* means: itself, the newest run inside it, or a record file's folder.

    Raises `ResultsError` if there is none.
    """
    path = Path(path)
    if path.name == ATTEMPTS and path.is_file():
        return path.parent
    for folder in (path, path / LATEST):
        if (folder / ATTEMPTS).is_file():
            return folder.resolve()
    if not path.exists():
        raise ResultsError(f"{path} does not exist: give a run's folder, or the folder given to --results")
    raise ResultsError(f"{path} holds no results: there is no {ATTEMPTS} in it, nor in {path / LATEST}")


def read_records(path: Path, notes: list[str] | None = None) -> Iterator[Attempt]:
    """Yield the records of the file *path*.

    A last line without its end is what a killed run leaves behind: it is left out, and *notes* says so.
    Raises `ResultsError` if the file cannot be read or is not one of this schema version.
    """
    for number, line, whole in _lines(path):
        try:
            yield from_json(line)
        except ValueError as error:
            if whole:
                raise ResultsError(f"{path}, line {number}: {error}") from None
            if notes is not None:
                notes.append(f"{path.name}: the last line is cut off and was left out (the run was killed?)")


def read_timelines(path: Path, notes: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """Yield the lines of ``timelines.jsonl`` as they are; errors and notes as in `read_records`."""
    for number, line, whole in _lines(path):
        try:
            yield msgspec.json.decode(line, type=dict[str, Any])
        except msgspec.DecodeError as error:
            if whole:
                raise ResultsError(f"{path}, line {number}: not a timeline: {error}") from None
            if notes is not None:
                notes.append(f"{path.name}: the last line is cut off and was left out")


def _lines(path: Path) -> Iterator[tuple[int, bytes, bool]]:
    """Yield number, text and wholeness of each line that is not empty."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if text := line.strip():
                    yield number, text, line.endswith(b"\n")
    except OSError as error:
        raise ResultsError(f"cannot read {path} ({error.strerror or error})") from None


__all__ = [
    "ATTEMPTS", "LATEST", "RUN", "SCHEMA", "SUMMARY", "TIMELINES", "AttemptLog", "LineFile", "ResultsError",
    "ResultsFolder", "find_results", "read_records", "read_timelines",
]  # fmt: skip

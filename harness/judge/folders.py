"""Which runs a path means, where more than one may be meant."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from harness.observe.results import ATTEMPTS, ResultsError, find_results


def runs_in(paths: Iterable[Path | str]) -> list[Path]:
    """Return the run folders that *paths* mean, each once: a run itself, or every run in a results folder.

    Raises `ResultsError` for a path that holds none.
    """
    found: dict[Path, None] = {}
    for path in map(Path, paths):
        inside = [] if (path / ATTEMPTS).is_file() else _inside(path)
        for folder in inside or [find_results(path)]:
            found[folder] = None
    return list(found)


def _inside(path: Path) -> list[Path]:
    try:
        folders = sorted(path.iterdir())
    except OSError as error:
        if path.is_dir():
            raise ResultsError(f"cannot read {path} ({error.strerror or error})") from None
        return []
    # `latest` is a link to one of the others.
    return [
        folder.resolve() for folder in folders if not folder.is_symlink() and (folder / ATTEMPTS).is_file()
    ]

"""Writing a file whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from harness.observe.results import ResultsError


def write_whole(path: Path, data: bytes | str) -> Path:
    """Write *data* to a temporary name beside *path* and rename it. Raises `ResultsError` with one line."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data.encode("utf-8") if isinstance(data, str) else data)
        temporary.replace(path)
    except OSError as error:
        try:
            temporary.unlink(missing_ok=True)
        except OSError:
            pass  # the folder is not ours to write; there is nothing to tidy
        raise ResultsError(f"cannot write {path} ({error.strerror or error})") from None
    return path

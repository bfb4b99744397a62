"""Lines for whoever runs the load, on the error stream: the output belongs to tables and JSON."""

from __future__ import annotations

import sys


def say(words: str) -> None:
    """Print one line under the harness's name, at once."""
    print(f"harness: {words}", file=sys.stderr, flush=True)

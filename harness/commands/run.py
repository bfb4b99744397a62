"""``harness run``: Locust with the packaged locustfile, so that it works outside a clone."""

from __future__ import annotations

from locust.main import main as locust_main

import importlib
import os
import sys
from pathlib import Path

import harness


def run_locust(arguments: list[str]) -> int:
    """Run Locust with *arguments*; ``-f`` among them, or ``LOCUST_LOCUSTFILE``, names another locustfile."""
    os.environ.setdefault("LOCUST_LOCUSTFILE", str(Path(harness.__file__).with_name("locustfile.py")))
    if {"-h", "--help"} & set(arguments):
        # Locust shows its help before it reads a locustfile, and our options come with ours.
        importlib.import_module("harness.load")
    sys.argv = ["locust", *arguments]  # Locust's web UI reads it again
    locust_main()
    return 0

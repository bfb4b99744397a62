"""``harness run``: Locust with the packaged locustfile, so that it works outside a clone."""

from __future__ import annotations

from locust.main import main as locust_main

import sys
from pathlib import Path

import harness


def run_locust(arguments: list[str]) -> int:
    """Run Locust with *arguments*; another locustfile among them takes the place of the packaged one."""
    own = any(a in ("-f", "--locustfile") or a.startswith(("-f=", "--locustfile=")) for a in arguments)
    packaged = [] if own else ["-f", str(Path(harness.__file__).with_name("locustfile.py"))]
    sys.argv = ["locust", *packaged, *arguments]
    locust_main()
    return 0

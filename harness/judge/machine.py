"""The class of a machine: what two machines share whose numbers may be compared."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

_NOISE = re.compile(r"\((?:R|TM|r|tm)\)|\bCPU\b|@.*$|\b\d+-Core\b|\bProcessor\b")


def machine_class(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return the class of this machine from its CPU model and the cores that this process may use."""
    return class_of(_model(cpuinfo), usable_cores())


def class_of(model: str, cores: int) -> str:
    """Return the class of a CPU model and a number of cores: ``amd-epyc-7763-x2``."""
    words = re.sub(r"[^A-Za-z0-9.]+", "-", _NOISE.sub(" ", model)).strip("-").lower()
    return f"{words or 'unknown'}-x{cores}"


def usable_cores() -> int:
    """Return how many cores this process may run on: a container may have fewer than its machine."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


def _model(cpuinfo: Path) -> str:
    try:
        for line in cpuinfo.read_text("utf-8", "replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() in ("model name", "Model", "cpu model"):
                return value.strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()

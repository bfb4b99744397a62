"""The faults: one small file each. A new file in this folder is in `FAULTS` by being there."""

import importlib
import pkgutil

from harness.sim.faults.registry import FAULTS, Fault, fault

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["FAULTS", "Fault", "fault"]

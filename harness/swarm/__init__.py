"""Locust glue: options, listeners, the simulator for ``--host sim``, results and the end of a run."""

from harness.swarm.library import attach
from harness.swarm.listeners import connect

connect()

__all__ = ["attach"]

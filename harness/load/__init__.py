"""Locust users, what they ask, and how a request becomes records.

For a locustfile of one's own: ``from harness.load import StreamUser``. Importing this room connects
the harness to Locust: its options, listeners and metrics are there by import. The room itself knows
nothing of that glue; the packaging names it (entry points of the group ``harness.load``).
"""

from __future__ import annotations

from importlib.metadata import entry_points

from harness.load.prompts import Prompt
from harness.load.settings import Settings, UsageError
from harness.load.users import ChatUser, MessagesUser, ResponsesUser, StreamUser

for _plugin in entry_points(group="harness.load"):
    _plugin.load()

__all__ = ["ChatUser", "MessagesUser", "Prompt", "ResponsesUser", "Settings", "StreamUser", "UsageError"]

"""The harness's own user, whose first request comes in its turn: Locust starts users in lots, each second.

`SPREAD` is "USERS,SECONDS": the n-th of so many users begins after its share of the seconds.
"""

import os
from itertools import count

import gevent

import harness.load

__all__ = ["ChatUser"]

_users, _, _seconds = os.environ["SPREAD"].partition(",")
_numbers = count()


class ChatUser(harness.load.ChatUser):
    """A chat user."""

    def on_start(self) -> None:
        """Wait for its turn."""
        super().on_start()
        gevent.sleep(next(_numbers) % int(_users) / int(_users) * float(_seconds))

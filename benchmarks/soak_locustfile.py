"""The packaged users, and a look into their own process every few seconds: `soak.py` reads what it writes."""

from locust import events
from locust.env import Environment

import gc
import json
import os
import time
from pathlib import Path
from typing import Any

import gevent

from harness.locustfile import ChatUser, MessagesUser, ResponsesUser  # noqa: F401

EACH_S = 15.0


@events.init.add_listener
def watch(environment: Environment, **_: Any) -> None:
    """Append one line per look to the file that SOAK_INSIDE names."""
    path = Path(os.environ["SOAK_INSIDE"])

    def look() -> dict[str, float]:
        # What existed at start-up is frozen, and not walked: this takes a few milliseconds.
        objects = gc.get_objects()
        alive = sum(isinstance(thing, gevent.Greenlet) and not thing.ready() for thing in objects)
        return {
            "at": time.time(),
            "objects": len(objects),
            "greenlets": alive,
            "users": environment.runner.user_count if environment.runner else 0,
            "locust_seconds": sum(
                len(entry.num_reqs_per_sec) + len(entry.num_fail_per_sec)
                for entry in (*environment.stats.entries.values(), environment.stats.total)
            ),
            "locust_history": len(environment.stats.history),
            "locust_errors": len(environment.stats.errors),
        }

    def keep_looking() -> None:
        while True:
            gevent.sleep(EACH_S)
            with path.open("a") as file:
                file.write(json.dumps(look()) + "\n")

    gevent.spawn(keep_looking)

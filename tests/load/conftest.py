from locust.env import Environment
from locust.event import Events

import pytest


class Library:
    """Runs users of a class against a host, in this process: what `harness.swarm.attach` is for."""

    def __init__(self, results):
        self._results = results
        self._nodes = []

    def start(self, user_class, users=1, **options):
        from harness.swarm import attach

        environment = Environment(user_classes=[user_class], events=Events())
        defaults = {"results": str(self._results), "model": "m", "no_preflight": True}
        self.node = attach(environment, **defaults | options)
        self._nodes.append(self.node)
        self.runner = environment.create_local_runner()
        self.runner.start(users, spawn_rate=users)
        return self.node

    def stop(self):
        self.runner.quit()
        return self.node

    def close(self):
        for node in self._nodes:
            node.close()


@pytest.fixture
def library(tmp_path):
    made = Library(tmp_path / "results")
    yield made
    made.close()

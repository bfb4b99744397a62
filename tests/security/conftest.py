import subprocess
import sys
from pathlib import Path

import gevent
import pytest


class Hostile:
    def __init__(self):
        self._process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("hostile.py")], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self._lines = self._process.stdout
        self.port = int(self._lines.readline())
        self.asked = []
        self._reader = gevent.spawn(self._read)

    def _read(self):
        for line in self._lines:
            self.asked.append(line)
        self._lines.close()

    def url(self, how):
        return f"http://127.0.0.1:{self.port}/{how}"

    def end(self):
        self._process.terminate()
        self._process.wait()
        self._reader.join(timeout=5)


@pytest.fixture
def hostile():
    server = Hostile()
    yield server
    server.end()

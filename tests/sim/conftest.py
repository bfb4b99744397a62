"""A plan's stage without sockets and clocks: everything runs on numbers that the tests set."""

from types import SimpleNamespace

import pytest

from harness.gateways import load
from harness.sim.clockwork import Clockwork
from harness.sim.dialects import dialect
from harness.sim.dialogues import DIALOGUES
from harness.sim.dialogues.base import Identity
from harness.sim.pace import Pace, Schedule
from harness.sim.playback import Beat, Playback
from harness.sim.script import Circumstances, Script
from harness.sim.truth import TruthLine


class FakeLink:
    """Writes down what a playback does to its connection, with the time of each write."""

    def __init__(self, stage):
        self.stage = stage
        self.congested = False
        self.lost = False
        self.writes = []
        self.ended = None

    def write(self, data):
        self.writes.append((round(self.stage.now, 6), data))

    def gone(self):
        return self.lost

    def finish(self):
        self.ended = "finished"

    def close(self):
        self.ended = "closed"

    def reset(self):
        self.ended = "reset"

    @property
    def bytes(self):
        return b"".join(data for _, data in self.writes)

    def times_of(self, needle):
        return [at for at, data in self.writes if needle in data]


class Stage:
    """Plays plans on a fake clock."""

    def __init__(self):
        self.now = 0.0
        self.clockwork = Clockwork(lambda: self.now)
        self.lines = []

    def play(self, plan, *, outcome="completed", beat=None, until=0.0, chunked=True, start=True):
        link = FakeLink(self)
        line = TruthLine("r", 1, "chat", "f", "", 0.0)
        beat = beat or Beat(b": keepalive\n\n", 10.0, periodic=False, promised=False)
        playback = Playback(
            iter(plan), outcome, line, link, self.clockwork, beat, b"HEAD\r\n", chunked, self.now,
            lambda playback, line: self.lines.append(line),
        )  # fmt: skip
        if start:
            playback.start(self.now)
        if until:
            self.run(until)
        return SimpleNamespace(link=link, line=line, playback=playback)

    def run(self, until):
        """Let the time pass, due by due, up to *until*."""
        while (due := self.clockwork.earliest()) is not None and due <= until:
            self.now = max(self.now, due)
            self.clockwork.run()
        self.now = until


@pytest.fixture
def stage():
    return Stage()


@pytest.fixture
def make_script():
    """Return a maker of scripts: protocol, gateway, tokens, spelling, and what else matters."""

    def make(
        protocol="chat", gateway="generic", count=6, spelling="official", usage=True, scale=1.0, finish="stop"
    ):
        profile = load(gateway).scaled(scale)
        at = Circumstances(
            protocol=protocol,
            profile=profile,
            limits=profile.limits,
            attempt=1,
            wall_s=1_700_000_000.0,
            own_headers={"X-Harness-Sim": gateway},
            request_id="req_1",
        )
        accent = dialect(spelling, role_with_text=gateway == "hopbase").accent
        prefix = "hx" if gateway == "sabiuco" else ""
        identity = Identity("0001", "m", 1_700_000_000, prefix)
        dialogue = DIALOGUES[protocol](identity, accent, usage, 7)
        return Script(at, dialogue, Schedule(Pace(0.2, 0.02, count), 1), count, finish)

    return make

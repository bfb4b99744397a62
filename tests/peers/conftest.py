"""Peers: the simulator as upstream, and ways to ask a URL with our own session, an SDK, or a plain socket."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.gateways import load
from harness.load.exchange import new_request_id, open_session, perform, prepare
from harness.load.prompts import Prompt
from harness.load.settings import Settings
from harness.stream import Identity, Retry, assemble
from harness.transport import HarnessTransport

PEERS = Path(__file__).parents[2] / ".peers"
SCALE = 0.01
MODELS = {"chat": "m", "responses": "m", "messages": "m"}


@pytest.fixture(scope="session")
def start():
    """Return a starter of processes; all get SIGTERM at the end."""
    started = []

    def start(command, **options):
        process = subprocess.Popen(command, start_new_session=True, **options)
        started.append(process)
        return process

    yield start
    for process in started:
        os.killpg(process.pid, signal.SIGTERM)
    for process in started:
        process.communicate(timeout=20)


@pytest.fixture(scope="session")
def start_sim(start):
    """Return a starter of simulators: their URL."""

    def start_sim(*options):
        command = [sys.executable, "-m", "harness.sim", "--port", "0", "--tokens", "12", *options]
        process = start(
            [*command, "--first-token", "10ms", "--gap", "2ms"], stdout=subprocess.PIPE, text=True
        )
        ready = re.search(r"http://\S+", process.stdout.readline())
        assert ready is not None
        return ready[0]

    return start_sim


@pytest.fixture(scope="session")
def ask():
    """Return a function that asks a URL with our own session and returns the record."""

    def ask(
        url,
        protocol,
        *,
        model="m",
        prompt="hello",
        headers=None,
        gateway="generic",
        scale=1.0,
        key=None,
        limits=(),
    ):
        profile = load(gateway).scaled(scale)
        for name, seconds in limits:
            profile = profile.with_limit(name, seconds)
        settings = Settings(url, profile, {}, MODELS, (Prompt.of(prompt),), time_scale=scale)
        call = prepare(settings, protocol, Prompt.of(prompt), request=new_request_id(), key=key, nonce=None,
                       model=model, headers=headers)  # fmt: skip
        session = open_session(settings, call)
        transport = HarnessTransport()
        try:
            perform(transport, call, 1, session)
        finally:
            transport.close()
        identity = Identity("peers", call.request, 1, protocol, gateway, False, "default", model, "local",
                            "measure", time.time())  # fmt: skip
        return assemble(session, identity, 0.0, retry=Retry("none"), final=True)

    return ask


def wait_until(answers, process, seconds, log):
    """Wait until *answers* returns true while *process* lives."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()
        if answers():
            return
        time.sleep(0.2)
    raise AssertionError(f"not ready after {seconds} s: {log.read_text()[-2000:]}")

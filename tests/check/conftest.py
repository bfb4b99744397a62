"""Simulated gateways that keep or break promises, and the answers that they gave."""

import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from importlib import resources

import pytest
from rich.console import Console

from harness.commands.asking import Asker
from harness.gateways import load
from harness.judge.check import Case, judge, promises_of, steps_for
from harness.load.prompts import Prompt
from harness.load.settings import Settings

SCALE = 0.02


def profile_text(name, *changes):
    text = resources.files("harness.gateways").joinpath(f"{name}.toml").read_text("utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.fixture(scope="session")
def start_sim(tmp_path_factory):
    """Return a starter of simulators, one per gateway and changes to its profile; all stop at the end."""
    started = []

    @cache
    def start(gateway, *changes, scale=SCALE):
        file = tmp_path_factory.mktemp("gateway") / "played.toml"
        file.write_text(profile_text(gateway, *changes), "utf-8")
        pace = ["--first-token", "20ms", "--gap", "2ms", "--tokens", "24"]
        command = [sys.executable, "-m", "harness.sim", "--port", "0", "--gateway", str(file), *pace]
        process = subprocess.Popen([*command, "--time-scale", str(scale)], stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        ready = re.search(r"http://\S+", process.stdout.readline())
        assert ready is not None
        return ready[0]

    yield start
    for process in started:
        process.terminate()
        process.communicate(timeout=10)


@pytest.fixture(scope="session")
def ask(start_sim):
    """Return a function that asks a simulated gateway *situations* and returns what was seen."""

    def ask(gateway, situations, *, url=None, protocols=None, plays=(), provoke="header", runs=3):
        profile = load(gateway).scaled(SCALE)
        url = url or start_sim(gateway)
        models = {p: e.model or "m" for p, e in profile.endpoints.items()}
        settings = Settings(url, profile, {}, models, (Prompt.of("hello"),), keys=("k",), time_scale=SCALE)
        asker = Asker(settings, provoke, dict(plays), parallel=18)
        steps = steps_for(situations, profile, protocols or profile.endpoints, upstream=True, runs=runs)
        asker.ask_all(steps, Console(quiet=True))
        return asker.seen

    return ask


@pytest.fixture(scope="session")
def seen_of(ask):
    """Return everything that a faithful simulator of a gateway shows, asked once."""

    @cache
    def seen_of(gateway):
        asks = {name for promise in promises_of(load(gateway)) for name in promise.check.asks}
        return ask(gateway, asks)

    return seen_of


@pytest.fixture
def verdicts():
    """Return a function from observations to the verdict of every promise of a gateway."""

    def verdicts(gateway, observations, provoked=True, simulated=True, profile=None):
        profile = profile or load(gateway).scaled(SCALE)
        case = Case(profile, tuple(observations), provoked, simulated)
        return judge(promises_of(profile), case)

    return verdicts


@pytest.fixture(scope="session")
def ask_broken(ask):
    """Return a function that plays one situation differently and returns what was seen of it."""

    @cache
    def ask_broken(gateway, situation, fault, protocol, url=None):
        plays = {} if fault is None else {situation: fault}
        return ask(gateway, (situation,), url=url, protocols=(protocol,), plays=plays, runs=1)

    return ask_broken


@pytest.fixture
def broken_by(seen_of, ask_broken, verdicts):
    """Return a function that plays one situation differently and returns the ids that are broken by it."""

    def broken_by(gateway, situation, fault, protocol, url=None):
        changed = ask_broken(gateway, situation, fault, protocol, url)
        kept = [s for s in seen_of(gateway) if (s.situation, s.protocol) != (situation, protocol)]
        found = verdicts(gateway, [*changed, *kept])
        broken = {f.id: f.verdict for f in found if f.verdict.status == "broken"}
        return set(broken), {f.id: f.verdict for f in found} | broken

    return broken_by


def changed_record(seen, **changes):
    """Return *seen* with fields of its record replaced."""
    from msgspec import structs

    return replace(seen, record=structs.replace(seen.record, **changes))

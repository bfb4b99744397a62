import json
import re
from collections import Counter

import gevent
import pytest


class Gateway:
    """A simulated gateway on a port of its own, which outlives what happens to the load generator."""

    def __init__(self, launch, port, truth, *options):
        self.port, self.truth = port, truth
        self.process = launch(
            "sim", "--port", port, "--gateway", "hopbase", "--time-scale", "0.01", "--truth", truth,
            "--first-token", "50ms", "--gap", "10ms", "--tokens", "20", *options,
        )  # fmt: skip
        self.process.wait_for("ready on")
        self.url = f"http://127.0.0.1:{port}"

    def truths(self):
        lines = self.truth.read_text().splitlines() if self.truth.exists() else []
        return {(line["request"], line["attempt"]): line for line in map(json.loads, lines)}


class Load:
    """A run against a gateway, and what it left behind."""

    def __init__(self, launch, results, url, *arguments, **how):
        self.results = results
        self.process = launch(
            "run", "--headless", "--only-summary", "--exit-code-on-error", "0", "--host", url,
            "--gateway", "hopbase", "--time-scale", "0.01", "--protocols", "chat", "--model", "m",
            "--metrics-linger", "0s", "--results", results, *arguments, **how,
        )  # fmt: skip

    def spawned(self):
        self.process.wait_for("All users spawned")
        gevent.sleep(0.5)
        return self

    @property
    def records(self):
        lines = (self.results / "latest" / "attempts.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    @property
    def outcomes(self):
        return Counter(record["outcome"] for record in self.records)

    @property
    def summary(self):
        return json.loads((self.results / "latest" / "summary.json").read_text())

    @property
    def books(self):
        """What the table at the end says: started, recorded, open and lost."""
        words = r"([\d,]+) attempts started = ([\d,]+) recorded \+ ([\d,]+) open(?: \+ ([\d,]+) LOST)?"
        (found,) = re.findall(words, self.process.out)
        return tuple(int(number.replace(",", "") or 0) for number in found)

    def ended_well(self):
        """No traceback, every attempt that was started has its line."""
        assert "Traceback" not in self.process.out + self.process.err
        assert (len(self.records), len(self.records), 0, 0) == self.books


@pytest.fixture
def gateway_on(launch, tmp_path):
    def start(port, *options, truth="truth.jsonl"):
        return Gateway(launch, port, tmp_path / truth, *options)

    return start


@pytest.fixture
def load(launch, tmp_path):
    def start(url, *arguments, results=tmp_path / "results", **how):
        return Load(launch, results, url, *arguments, **how)

    return start

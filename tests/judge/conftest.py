"""Made-up records, runs and gate files: every test states only what it is about."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.stream.record import Attempt, ErrorRecord, Progress, RequestSummary, Stall, to_json
from tests import records

START = 1_000_000.0


def make_record(number: int = 0, ttft: float | None = 0.4, **changed: Any) -> Attempt:
    """A completed chat stream, one each tenth of a second: first token 0.4 s, five tokens, done at 1 s."""
    outcome = changed.get("outcome", "completed")
    sent_at = changed.get("sent_at", START + number / 10)
    end_s = changed.get("end_s", 1.0)
    fields: dict[str, Any] = {
        "request": f"q{number}",
        "scheduled_at": sent_at,
        "sent_at": sent_at,
        "first_token_s": ttft,
        "first_content_s": ttft,
        "last_token_s": None if ttft is None else ttft + 0.5,
        "request_summary": RequestSummary(1, outcome, None, ttft, ttft, end_s, 0, None),
    }
    if ttft is None:
        fields["progress"] = Progress(0, *[None] * 4)
    if not changed.get("final", True):
        fields["request_summary"] = msgspec.UNSET
    return records.make_record(**{**fields, **changed})


def make_stalled(number: int = 0, class_: str = "keepalive_only_mid", **changed: Any) -> Attempt:
    """A stream that a hard limit of 1.5 s ended after its last token at 0.9 s."""
    stall = Stall(class_, "mid_stream", 1.5, 0.9, 2.4, True)
    return make_record(
        number, **{"outcome": "stalled", "finish": None, "stall": stall, "end_s": 2.4, **changed}
    )


def make_rejected(number: int = 0, status: int = 429, **changed: Any) -> Attempt:
    """A request that the gateway refused at once."""
    error = ErrorRecord("http", "rate_limit_error", None, "slow down", True, "http")
    fields = {"outcome": "http_error", "status": status, "finish": None, "error": error, "end_s": 0.05}
    return make_record(number, None, **{**fields, "silence_max_s": None, "events": 0, **changed})


class Folder:
    """Writes a run's folder, and gate files beside it."""

    def __init__(self, base: Path) -> None:
        self.base = base

    def run(
        self, attempts: Iterable[Attempt], name: str = "r1", summary: dict[str, Any] | None = None,
        run: dict[str, Any] | None = None, tail: bytes = b"",
    ) -> Path:  # fmt: skip
        """A finished run with these records; its summary says that it is valid."""
        folder = self.base / name
        folder.mkdir(parents=True)
        name = folder.name
        lines = [to_json(record) + b"\n" for record in attempts]
        (folder / "attempts.jsonl").write_bytes(b"".join(lines) + tail)
        about = {"schema": "harness.run/1", "run": name, "gateway": "g", "started_at": START, **(run or {})}
        (folder / "run.json").write_text(json.dumps(about))
        said = {
            "schema": "harness.summary/1", "run": name, "gateway": "g", "simulated": False, "time_scale": 1.0,
            "attempts": len(lines), "started_at": START, "ended_at": START + len(lines) / 10,
            "validity": {"valid": True, "reasons": [], "codes": []},
        }  # fmt: skip
        (folder / "summary.json").write_text(json.dumps({**said, **(summary or {})}))
        return folder

    def gates(self, *gates: dict[str, Any], name: str = "gates.toml", head: str = "") -> Path:
        """A gate file; each gate is completed by `gate`."""
        text = f"version = 1\n{head}\n" + "".join(gate(**fields) for fields in gates)
        path = self.base / name
        path.write_text(text)
        return path


def gate(**fields: Any) -> str:
    """One ``[[gate]]`` as TOML: TTFT p95 below 1.5 s unless told otherwise; None leaves a key out."""
    filled = {
        "id": "g1", "metric": "ttft", "stat": "p95", "op": "<", "limit": "1.5s", "why": "people leave",
        **fields,
    }  # fmt: skip
    return "[[gate]]\n" + "".join(
        f"{key} = {_toml(value)}\n" for key, value in filled.items() if value is not None
    )


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(inner)}" for key, inner in value.items()) + " }"
    return json.dumps(value)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def record() -> Callable[..., Attempt]:
    return make_record


@pytest.fixture
def stalled() -> Callable[..., Attempt]:
    return make_stalled


@pytest.fixture
def rejected() -> Callable[..., Attempt]:
    return make_rejected


@pytest.fixture
def toml_gate() -> Callable[..., str]:
    return gate

"""Reads a gate file; a wrong one is one line: file, line, what is wrong, the nearest right word.

Nothing is ignored: a misspelt key or metric that silently dropped its gate would be a gate that always
passes.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Iterable
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, TypeVar, cast

from harness.gateways.durations import DurationError, parse_duration
from harness.judge.gates import MIN_RUNS, WHERE, Abort, Gate, Gates, Op
from harness.judge.metrics import METRICS, MIN_SAMPLES, QUANTILES, REQUEST_TIMES, TIMES, Metric, view_of
from harness.judge.places import Places
from harness.judge.quantities import QuantityError, parse_limit, parse_ratio

T = TypeVar("T")

VERSION = 1
OPS = ("<", "<=", ">", ">=")
POLICIES = ("fail", "warn", "skip")
FILE_KEYS = (
    "version", "scenario", "warmup", "cooldown", "confidence", "failed", "on_no_data", "on_inconclusive",
    "slo", "gate",
)  # fmt: skip
REQUIRED = ("id", "metric", "stat", "op", "limit", "why")
GATE_KEYS = (
    *REQUIRED, "where", "decide", "min_samples", "on_no_data", "on_inconclusive", "severity", "abort",
    "baseline", "method", "min_runs", "confidence", "failed", "view",
)  # fmt: skip
ABORT_KEYS = ("after", "sustained", "window")

# What tomllib says, as someone says it who does not think of dictionaries.
_TOML_WORDS = {
    "Cannot overwrite a value": "a key stands twice",
    "Illegal character '\\n'": "the text is not closed on its line",
}

# How far back an abort looks where the file does not say: long enough for a percentile of a modest load.
_WINDOW_S = 30.0


class GateFileError(ValueError):
    """The gate file cannot be used; the message is one line for the user. Exit code 23."""


def read_gates(path: Path | str) -> Gates:
    """Return the gates in the file *path*. Raises `GateFileError`."""
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise GateFileError(f"cannot read gate file {path}: {reason}") from None
    return parse_gates(text, str(path))


def parse_gates(text: str, source: str) -> Gates:
    """Return the gates in the TOML *text*; *source* names it in errors. Raises `GateFileError`."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at line (\d+), column \d+\)", str(error))
        line = int(place[1]) if place else text.count("\n") + 1
        reason = re.sub(r" \(at .*\)$", "", str(error))
        reason = _TOML_WORDS.get(reason, reason)
        raise GateFileError(f"{source}:{line}: not valid TOML: {reason}") from None
    return _Reader(data, Places(text), source).gates()


class _Reader:
    """Reads the parsed file; it knows where everything stands."""

    def __init__(self, data: dict[str, Any], places: Places, source: str) -> None:
        self._data, self._places, self._source = data, places, source

    def gates(self) -> Gates:
        top = self._data
        self._known(top, FILE_KEYS, self._places.top)
        self._version()
        entries = top.get("gate", [])
        if not isinstance(entries, list) or not entries or not all(isinstance(e, dict) for e in entries):
            raise self._error(self._places.top("gate"), "no [[gate]]: a file without gates passes everything")
        slo = self._slo()
        seen: dict[str, int] = {}
        gates = []
        for index, entry in enumerate(entries):
            gate = _GateReader(self, entry, index).gate(bool(slo))
            if gate.id in seen:
                raise self._error(
                    self._places.key("gate", "id", index),
                    f"id {gate.id!r} stands in line {seen[gate.id]} already: each gate needs its own",
                )
            seen[gate.id] = gate.line
            gates.append(gate)
        scenario = top.get("scenario", "default")
        if not isinstance(scenario, str) or not scenario:
            raise self._error(
                self._places.key("", "scenario"), f"scenario: expected a name, got {scenario!r}"
            )
        return Gates(
            source=self._source,
            gates=tuple(gates),
            scenario=scenario,
            warmup_s=self.duration(top, "warmup", 0.0, lambda: self._places.key("", "warmup")),
            cooldown_s=self.duration(top, "cooldown", 0.0, lambda: self._places.key("", "cooldown")),
            slo=slo,
        )

    def default(self, key: str, choices: Iterable[str], fallback: str) -> str:
        """Return the file's default for a gate's key."""
        return self.choice(self._data, key, choices, fallback, lambda: self._places.key("", key))

    def confidence(self, data: dict[str, Any], fallback: float, line: Callable[[], int]) -> float:
        value = data.get("confidence", fallback)
        if isinstance(value, float) and 0.5 <= value < 1.0:
            return value
        raise self._error(line(), f"confidence: expected a number from 0.5 to below 1, got {value!r}")

    def file_confidence(self) -> float:
        return self.confidence(self._data, 0.95, lambda: self._places.key("", "confidence"))

    def choice(
        self, data: dict[str, Any], key: str, choices: Iterable[str], fallback: str, line: Callable[[], int]
    ) -> str:
        value, words = data.get(key, fallback), tuple(choices)
        if isinstance(value, str) and value in words:
            return value
        raise self._error(
            line(), f"{key}: expected one of {', '.join(words)}, got {value!r}{near(value, words)}"
        )

    def duration(self, data: dict[str, Any], key: str, fallback: float, line: Callable[[], int]) -> float:
        if key not in data:
            return fallback
        try:
            return parse_duration(data[key])
        except DurationError:
            raise self._error(
                line(), f'{key}: expected a duration with a unit, as in "30s", got {data[key]!r}'
            ) from None

    def _version(self) -> None:
        version = self._data.get("version")
        if version is None:
            raise self._error(1, f"version is missing: write version = {VERSION}")
        if version != VERSION or isinstance(version, bool):
            raise self._error(
                self._places.key("", "version"), f"version: this harness reads {VERSION}, got {version!r}"
            )

    def _slo(self) -> dict[str, float]:
        table = self._data.get("slo", {})
        if not isinstance(table, dict):
            raise self._error(
                self._places.key("", "slo"), 'slo: expected a table, as in slo = { ttft = "1s" }'
            )
        limits = {}
        for key, value in table.items():
            line = self._places.inside("", "slo", key)
            if key not in TIMES:
                raise self._error(
                    line, f"slo: unknown metric {key!r}{near(key, TIMES)}: use one of {', '.join(TIMES)}"
                )
            try:
                limits[key] = parse_limit(value, "time")
            except QuantityError as error:
                raise self._error(line, f"slo.{key}: {error}") from None
        return limits

    def _known(self, data: dict[str, Any], keys: Iterable[str], line: Callable[[str], int]) -> None:
        words = tuple(keys)
        for key in data:
            if key not in words:
                raise self._error(
                    line(key), f"unknown key {key!r}{near(key, words)}: use one of {', '.join(words)}"
                )

    def _error(self, line: int, words: str) -> GateFileError:
        return GateFileError(f"{self._source}:{line}: {words}")


class _GateReader:
    """Reads one ``[[gate]]``."""

    def __init__(self, file: _Reader, entry: dict[str, Any], index: int) -> None:
        self._file, self._entry, self._index = file, entry, index
        self._places = file._places

    def gate(self, has_slo: bool) -> Gate:
        entry = self._entry
        self._file._known(entry, GATE_KEYS, self._line)
        for key in REQUIRED:
            if key not in entry:
                raise self._error(key, f"{key} is missing")
        metric = self._metric()
        if metric.name == "goodput" and not has_slo:
            raise self._error("metric", 'goodput needs limits: add a table, as in [slo] with ttft = "1s"')
        stat = self._stat(metric)
        baseline = self._baseline()
        decide = self._choice("decide", ("point", "interval"), "point")
        if decide == "interval" and baseline is None and stat not in QUANTILES and metric.kind != "rate":
            raise self._error("decide", f"{metric.name} {stat} has no interval: use a percentile or a rate")
        return Gate(
            id=self._text("id"),
            metric=metric.name,
            stat=stat,
            op=cast(Op, self._choice("op", OPS, "")),
            limit=self._limit(metric, baseline is not None),
            limit_text=str(entry["limit"]),
            why=self._text("why"),
            where=self._where(),
            decide=cast(Any, decide),
            min_samples=self._number("min_samples", MIN_SAMPLES.get(stat, 1)),
            confidence=self._file.confidence(
                entry, self._file.file_confidence(), lambda: self._line("confidence")
            ),
            on_no_data=cast(Any, self._policy("on_no_data", "fail")),
            on_inconclusive=cast(Any, self._policy("on_inconclusive", "warn")),
            severity=cast(Any, self._choice("severity", ("fail", "warn"), "fail")),
            failed=cast(Any, self._choice("failed", *self._failed())),
            view=cast(Any, self._view(metric)),
            abort=self._abort(baseline),
            baseline=baseline,
            method=cast(Any, self._choice("method", ("history", "mann_whitney"), "history")),
            min_runs=self._number("min_runs", MIN_RUNS),
            line=self._places.table("gate", self._index),
        )

    def _metric(self) -> Metric:
        name = self._entry["metric"]
        if not isinstance(name, str) or name not in METRICS:
            raise self._error(
                "metric", f"unknown metric {name!r}{near(name, METRICS)}: use one of {', '.join(METRICS)}"
            )
        return METRICS[name]

    def _stat(self, metric: Metric) -> str:
        stat = self._entry["stat"]
        if stat not in metric.stats:
            words = " ".join(metric.stats)
            raise self._error(
                "stat", f"{metric.name} has no stat {stat!r}{near(stat, metric.stats)}: use one of {words}"
            )
        return str(stat)

    def _limit(self, metric: Metric, relative: bool) -> float:
        value = self._entry["limit"]
        try:
            return parse_ratio(value) if relative else parse_limit(value, metric.kind)
        except QuantityError as error:
            raise self._error("limit", f"limit: {error}") from None

    def _where(self) -> dict[str, str]:
        where = self._entry.get("where", {})
        if not isinstance(where, dict):
            raise self._error("where", 'where: expected a table, as in where = { protocol = "chat" }')
        for key, value in where.items():
            line = self._places.inside("gate", "where", key, self._index)
            if key not in WHERE:
                raise self._file._error(
                    line, f"where: unknown key {key!r}{near(key, WHERE)}: use one of {', '.join(WHERE)}"
                )
            if not isinstance(value, str) or not value:
                raise self._file._error(line, f"where.{key}: expected text, got {value!r}")
        return dict(where)

    def _view(self, metric: Metric) -> str:
        view = self._choice("view", ("attempt", "request"), view_of(metric.name))
        if metric.kind != "time" and view != view_of(metric.name):
            raise self._error("view", f"{metric.name} is always per {view_of(metric.name)}")
        if metric.kind == "time" and view == "request" and metric.name not in REQUEST_TIMES:
            raise self._error(
                "view", f"{metric.name} is always per attempt; {', '.join(REQUEST_TIMES)} have both"
            )
        return view

    def _baseline(self) -> str | None:
        value = self._entry.get("baseline")
        if value is None or (isinstance(value, str) and value):
            for key in ("method", "min_runs"):
                if value is None and key in self._entry:
                    raise self._error(key, f"{key} is for gates with a baseline, and this one has none")
            return value
        raise self._error("baseline", f'baseline: expected a file, or "given" for --baseline, got {value!r}')

    def _abort(self, baseline: str | None) -> Abort | None:
        table = self._entry.get("abort")
        if table is None:
            return None
        if not isinstance(table, dict):
            raise self._error("abort", 'abort: expected a table, as in { after = "30s", sustained = "10s" }')
        if baseline is not None:
            raise self._error("abort", "abort: a gate relative to a baseline cannot end a run")

        def line(key: str) -> int:
            return self._places.inside("gate", "abort", key, self._index)

        self._file._known(table, ABORT_KEYS, line)
        sustained_s = self._file.duration(table, "sustained", 10.0, lambda: line("sustained"))
        return Abort(
            after_s=self._file.duration(table, "after", 30.0, lambda: line("after")),
            sustained_s=sustained_s,
            window_s=self._file.duration(
                table, "window", max(_WINDOW_S, sustained_s), lambda: line("window")
            ),
        )

    def _policy(self, key: str, fallback: str) -> str:
        return self._choice(key, POLICIES, self._file.default(key, POLICIES, fallback))

    def _failed(self) -> tuple[tuple[str, ...], str]:
        words = ("count", "leave_out")
        return words, self._file.default("failed", words, "count")

    def _choice(self, key: str, choices: Iterable[str], fallback: str) -> str:
        return self._file.choice(self._entry, key, choices, fallback, lambda: self._line(key))

    def _text(self, key: str) -> str:
        value = self._entry[key]
        if isinstance(value, str) and value.strip():
            return value
        raise self._error(key, f"{key}: expected text, got {value!r}")

    def _number(self, key: str, fallback: int) -> int:
        value = self._entry.get(key, fallback)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
            return value
        raise self._error(key, f"{key}: expected a whole number of at least 1, got {value!r}")

    def _line(self, key: str) -> int:
        return self._places.key("gate", key, self._index)

    def _error(self, key: str, words: str) -> GateFileError:
        return self._file._error(self._line(key), words)


def near(word: object, words: Iterable[str]) -> str:
    """Return the hint at the nearest of *words*, or nothing."""
    found = difflib.get_close_matches(str(word), list(words), n=3)
    if not found:
        return ""
    # Of equally near words the one that begins alike: "p959" was meant as p95.
    best = max(found, key=lambda one: (SequenceMatcher(None, one, str(word)).ratio(), _alike(one, str(word))))
    return f" (did you mean {best}?)"


def _alike(a: str, b: str) -> int:
    """Return how many characters *a* and *b* begin with in common."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


__all__ = ["GateFileError", "near", "parse_gates", "read_gates"]

"""Reads an access log as a plan: when each request came, and what it asked, as far as the log knows.

JSON lines or CSV with a header. Columns are found by the names that public traces use, or named with
``--replay-columns time=ts,prompt_tokens=in``. A wrong line is an error with its number: a trace that is
replayed in part would be another load than the one that was recorded.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from harness.gateways import PROTOCOLS
from harness.load.arrivals import Order

# What each column may be called in a log, best first.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "time": ("time", "timestamp", "ts", "@timestamp", "TIMESTAMP", "at", "at_s", "arrived_at"),
    "prompt": ("prompt",),
    "messages": ("messages",),
    "prompt_tokens": ("prompt_tokens", "input_tokens", "input_length", "ContextTokens", "num_prefill_tokens"),
    "max_tokens": (
        "max_tokens", "completion_tokens", "output_tokens", "output_length", "GeneratedTokens",
        "num_decode_tokens",
    ),
    "protocol": ("protocol",),
    "model": ("model",),
}  # fmt: skip

_UNITS_S = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}

Row = Mapping[str, Any]


class ReplayError(ValueError):
    """The log cannot be replayed; the message names file and line, and what was expected."""


def parse_columns(text: str) -> tuple[dict[str, str], float]:
    """Return the columns that *text* names, and the unit of numeric times in seconds.

    ``time=ts:ms,prompt_tokens=in`` says that times stand in the column ``ts``, in milliseconds.
    """
    columns: dict[str, str] = {}
    unit_s = 1.0
    for entry in (part.strip() for part in text.split(",")):
        if not entry:
            continue
        name, equals, column = entry.partition("=")
        if not equals or name not in COLUMNS or not column:
            raise ReplayError(f"expected COLUMN=NAME with one of {', '.join(COLUMNS)}, got {entry!r}")
        if name == "time" and ":" in column:
            column, _, unit = column.rpartition(":")
            if unit not in _UNITS_S:
                raise ReplayError(f"expected a unit of {', '.join(_UNITS_S)}, got {unit!r} in {entry!r}")
            unit_s = _UNITS_S[unit]
        columns[name] = column
    return columns, unit_s


def read_orders(path: str, columns: str = "") -> tuple[Order, ...]:
    """Return the requests of the log *path*, in order, the first at 0 s. Raises `ReplayError`."""
    named, unit_s = parse_columns(columns)
    try:
        text = Path(path).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise ReplayError(f"cannot read {path}: {reason}") from None
    is_json = text.lstrip()[:1] == "{"
    rows = _json_rows(path, text) if is_json else _csv_rows(path, text)
    orders = sorted(_orders(path, rows, named, unit_s), key=lambda order: order.at_s)
    if not orders:
        raise ReplayError(f"{path} holds no request")
    first_s = orders[0].at_s
    return tuple(replace(order, at_s=order.at_s - first_s) for order in orders)


def _json_rows(path: str, text: str) -> Iterator[tuple[int, Row]]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise ReplayError(f"{path}, line {number}: not JSON") from None
        if not isinstance(row, dict):
            raise ReplayError(f"{path}, line {number}: expected a JSON object")
        yield number, row


def _csv_rows(path: str, text: str) -> Iterator[tuple[int, Row]]:
    reader = csv.DictReader(io.StringIO(text))
    try:
        for row in reader:
            if None in row or None in row.values():
                raise ReplayError(f"{path}, line {reader.line_num}: not as many fields as the header has")
            yield reader.line_num, row
    except csv.Error as error:
        raise ReplayError(f"{path}, line {reader.line_num}: {error}") from None


def _orders(
    path: str, rows: Iterable[tuple[int, Row]], named: Mapping[str, str], unit_s: float
) -> Iterator[Order]:
    unseen = dict(named)
    columns: Iterable[str] = ()
    for number, row in rows:
        columns = columns or row
        try:
            yield _order(row, _places(row, named), unit_s)
        except ReplayError as error:
            raise ReplayError(f"{path}, line {number}: {error}") from None
        unseen = {name: column for name, column in unseen.items() if column not in row}
    if unseen and columns:
        name, column = next(iter(unseen.items()))
        raise ReplayError(f"{path} has no column {column!r} for {name} (it has: {', '.join(columns)})")


def _places(row: Row, named: Mapping[str, str]) -> dict[str, str]:
    """Return where each column stands; lines of JSON may differ in what they have."""
    places = {
        name: found
        for name, candidates in COLUMNS.items()
        if (found := named.get(name) or next((c for c in candidates if c in row), None))
    }
    if places.get("time") not in row:
        given = f" {places['time']!r}" if "time" in places else ""
        raise ReplayError(
            f"no time column{given} (it has: {', '.join(row)}): name it with --replay-columns time=NAME"
        )
    return places


def _order(row: Row, places: Mapping[str, str], unit_s: float) -> Order:
    def value(name: str) -> Any:
        column = places.get(name)
        found = None if column is None else row.get(column)
        return None if found == "" else found

    protocol, model, messages, prompt = (value(n) for n in ("protocol", "model", "messages", "prompt"))
    if protocol is not None and protocol not in PROTOCOLS:
        raise ReplayError(f"expected a protocol of {', '.join(PROTOCOLS)}, got {protocol!r}")
    if prompt is not None and not isinstance(prompt, str):
        raise ReplayError(f"expected a text as prompt, got {prompt!r}")
    if messages is None and prompt is not None:
        messages = [{"role": "user", "content": prompt}]
    if messages is not None and not _are_messages(messages):
        raise ReplayError('expected messages as in [{"role": "user", "content": "…"}]')
    return Order(
        at_s=_seconds(value("time"), unit_s),
        protocol=protocol,
        model=None if model is None else str(model),
        messages=None if messages is None else tuple(messages),
        prompt_tokens=_count(value("prompt_tokens"), "prompt_tokens", 1),
        max_tokens=_count(value("max_tokens"), "max_tokens", 0) or None,
    )


def _are_messages(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(
            isinstance(m, dict)
            and isinstance(m.get("role"), str)
            and isinstance(m.get("content"), str | list)
            for m in value
        )
    )


def _seconds(value: Any, unit_s: float) -> float:
    """Return a moment in seconds: a number in the log's unit, or a date (UTC if it names no zone)."""
    try:
        seconds = float(value) * unit_s
    except (TypeError, ValueError):
        try:
            moment = datetime.fromisoformat(_six_digits(str(value)))
        except ValueError:
            raise ReplayError(
                f"expected a number or a date as in 2026-01-31T12:00:00Z as time, got {value!r}"
            ) from None
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if not math.isfinite(seconds) or isinstance(value, bool):
        raise ReplayError(f"expected a number as time, got {value!r}")
    return seconds


def _six_digits(text: str) -> str:
    """Cut a fraction of a second to what Python reads: public traces write seven digits."""
    head, dot, tail = text.partition(".")
    digits = len(tail) - len(tail.lstrip("0123456789"))
    return f"{head}.{tail[: min(digits, 6)]}{tail[digits:]}" if dot else text


def _count(value: Any, name: str, least: int) -> int | None:
    if value is None:
        return None
    try:
        count = int(float(value))
    except (TypeError, ValueError, OverflowError):
        raise ReplayError(f"expected a whole number as {name}, got {value!r}") from None
    if count < least:
        raise ReplayError(f"expected {least} or more as {name}, got {value!r}")
    return count

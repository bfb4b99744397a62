"""The report's first paragraph: what happened, for a person who knows neither tokens nor percentiles."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from harness.gateways.durations import format_duration
from harness.judge.estimates import estimate_time
from harness.judge.metrics import METRICS
from harness.judge.quantities import format_value
from harness.judge.report.picture import Picture
from harness.judge.sample import Estimate

_BROKE = {
    "error_event": "ended in the middle with an error message",
    "stalled": "hung: they stopped and nothing more came",
    "truncated": "were cut off before they were finished",
    "cut": "broke off because the connection was lost",
    "http_error": "were refused",
    "unterminated": "came whole but without their end mark",
    "empty": "came back empty",
    "not_a_stream": "were no stream at all",
    "connect_error": "found no connection",
    "no_response": "got no reply",
    "protocol_error": "were garbled",
}
_ONE = {
    "error_event": "ended in the middle with an error message",
    "stalled": "hung: it stopped and nothing more came",
    "truncated": "was cut off before it was finished",
    "cut": "broke off because the connection was lost",
    "http_error": "was refused",
    "unterminated": "came whole but without its end mark",
    "empty": "came back empty",
    "not_a_stream": "was no stream at all",
    "connect_error": "found no connection",
    "no_response": "got no reply",
    "protocol_error": "was garbled",
}
_VERDICTS = {
    "pass": "The verdict: passed.",
    "warn": "The verdict: passed, with warnings.",
    "fail": "The verdict: FAILED.",
    "no_data": "The verdict: not passed, because too little was measured.",
    "inconclusive": "The verdict: not clear, the numbers are too close to the limit.",
    "skipped": "No verdict: every check was skipped.",
    "invalid": "No verdict: the measurement itself cannot be trusted.",
}
# Below so many answers "of 1,000" pretends to a precision that is not there.
_FEW = 200


def lead(picture: Picture) -> str:
    """Return the first paragraph."""
    return " ".join([_who(picture), _how_many(picture.requests), _how_long(picture), *_judged(picture)])


def _who(picture: Picture) -> str:
    gateway = picture.judged.numbers().gateway if picture.facts.gateway == "?" else picture.facts.gateway
    seconds = picture.evidence.seconds
    total = sum(picture.requests.values())
    asked = f"{total:,} questions in {spoken(seconds)}"
    if picture.simulated:
        scale = (
            f", played at {picture.facts.time_scale:g} of real time" if picture.facts.time_scale != 1 else ""
        )
        return f"This was a rehearsal against a simulated gateway ({gateway}{scale}): {asked}."
    return f"The gateway {gateway} was asked {asked}."


def _how_many(requests: Counter[str]) -> str:
    whole = sum(requests.values()) - requests["abandoned"]
    if not whole:
        return "Not one answer was measured."
    broke = {name: n for name, n in requests.most_common() if n and name in _BROKE}
    failed = sum(broke.values())
    if not failed:
        said = "Every answer came complete." if requests["completed"] == whole else "No answer broke."
    else:
        parts = [f"{_of(n, whole)} {_said(name, n, whole)}" for name, n in broke.items()]
        said = f"{_of(failed, whole, total=True)} broke: {_and(parts)}."
        if len(parts) == 1:
            name, n = next(iter(broke.items()))
            said = f"{_of(failed, whole, total=True)} {_said(name, n, whole)}."
    if requests["aborted"]:
        said += f" {_of(requests['aborted'], whole)} were still being written when the test ended."
    if requests["abandoned"]:
        said += f" {requests['abandoned']:,} were left by their users, as planned."
    return said


def _said(name: str, n: int, whole: int) -> str:
    return _ONE[name] if whole < _FEW and n == 1 else _BROKE[name]


def _of(n: int, whole: int, total: bool = False) -> str:
    """Return a number of answers as so many of 1,000, or of all if there were few."""
    if whole < _FEW:
        return f"{n:,} of {whole:,} answers" if total else f"{n:,}"
    share = 1000.0 * n / whole
    number = f"{share:.0f}" if share >= 9.5 else f"{share:.1f}"
    return f"Of 1,000 answers {number}" if total else number


def _how_long(picture: Picture) -> str:
    cells = picture.evidence.select({})
    half = estimate_time(cells, "ttft", 0.5, view="attempt", failed="count")
    most = estimate_time(cells, "ttft", 0.95, view="attempt", failed="count")
    if half is None or most is None:
        return ""
    never = f"{100 * most.lost / most.n:.0f} of 100 never began"
    if math.isinf(half.value):
        return f"{never[:1].upper()}{never[1:]}."
    if math.isinf(most.value):
        rest = f"; {never}"
    elif most.at_least:
        rest = f"; for 95 of 100 it took more than {format_value(most.value, 'time')}"
    else:
        rest = f" and 95 of 100 within {format_value(most.value, 'time')}"
    return f"Half of the answers began within {_time(half)}{rest}."


def _judged(picture: Picture) -> list[str]:
    said = []
    verdict = picture.verdict
    if verdict is None:
        if picture.judged.invalid:
            said.append(f"{_VERDICTS['invalid']} {picture.judged.invalid[0].text[:1].upper()}"
                        f"{picture.judged.invalid[0].text[1:]}.")  # fmt: skip
        else:
            said.append("No limits were set, so there is no verdict.")
    else:
        if limit := _limit(verdict):
            said.append(limit)
        said.append(_VERDICTS.get(str(verdict.get("verdict")), ""))
    if picture.simulated:
        said.append("Nothing here says anything about a real gateway.")
    return said


def _limit(verdict: dict[str, Any]) -> str:
    """Return the limit on the first word in words, if there is one."""
    for gate in verdict.get("gates", []):
        if gate.get("metric") == "ttft" and gate.get("baseline") is None and gate.get("stat") in _STATS:
            kept = {"pass": "kept", "fail": "broken", "warn": "missed"}.get(
                str(gate.get("verdict")), "not judged"
            )
            if isinstance(gate.get("limit"), int | float):
                limit = format_value(float(gate["limit"]), METRICS["ttft"].kind)
                return f"The limit was {_STATS[gate['stat']]} within {limit}: {kept}."
    return ""


_STATS = {"p50": "half", "p90": "90 of 100", "p95": "95 of 100", "p99": "99 of 100", "p99.9": "999 of 1,000",
          "max": "every one", "mean": "on average"}  # fmt: skip


def _time(estimate: Estimate) -> str:
    text = format_value(estimate.value, "time")
    return f"more than {text}" if estimate.at_least else text


def spoken(seconds: float) -> str:
    """Return a length of time as people say it: ``15 seconds``, ``4 minutes``, ``2.5 hours``."""
    for unit, size in (("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0)):
        if seconds >= 1.5 * size:
            number = seconds / size
            return f"{number:.0f} {unit}" if number >= 10 else f"{number:.2g} {unit}"
    return format_duration(seconds)


def _and(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"

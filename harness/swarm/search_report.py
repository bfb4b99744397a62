"""What a capacity search found, for the terminal: the curve as a table, and the answer in words."""

from __future__ import annotations

from typing import Any, TextIO

from rich.console import Console
from rich.table import Table

from harness.gateways.durations import format_duration

_CAUSES = {
    "quota": "refused with 429: a quota, or slots that are all taken",
    "latency": "too slow: saturated",
    "errors": "failing",
}


def show_search(plain: dict[str, Any], file: TextIO) -> None:
    """Print what `capacity.json` says: *plain*."""
    unit = plain["unit"]
    table = Table(title=f"capacity search over {unit}", box=None, title_justify="left", pad_edge=False)
    for heading in (
        "load",
        "verdict",
        "requests",
        "req/s",
        "good/s",
        "tokens/s",
        "TTFT p50",
        "p95",
        "bad",
        "429",
    ):
        table.add_column(heading, justify="left" if heading == "verdict" else "right")
    for row in sorted(plain["curve"], key=lambda row: (row["load"], row["step"])):
        worst = max(row["objectives"], key=lambda o: o["share"] / o["allowed"])
        table.add_row(
            f"{row['load']:g}", str(row["verdict"]).replace("_", " "), str(row["requests"]),
            f"{row['requests_per_s']:.1f}", f"{row['goodput_per_s']:.1f}", f"{row['tokens_per_s']:.0f}",
            _duration(row["ttft_p50_s"]), _duration(row["ttft_p95_s"]), f"{100 * worst['share']:.2f} %",
            str(row["rejected"]),
        )  # fmt: skip
    console = Console(file=file, width=None if file.isatty() else 110, highlight=False)
    console.print(table)
    for line in _answer(plain):
        console.print(line, soft_wrap=True)


def _answer(plain: dict[str, Any]) -> list[str]:
    unit, answer, broken_at = plain["unit"], plain["answer"], plain["broken_at"]
    lines = []
    if answer is None:
        lines.append(f"no load held: {broken_at} {unit} broke {plain['broke_first']}")
    else:
        known = "" if plain["sure"] else " (not sure: too few requests in the time)"
        lines.append(f"highest load that holds: {answer} {unit}{known}")
        lines += [_decision(decided) for decided in plain["decided_on"]]
        lines.append(_room(plain["headroom"]))
    if broken_at is not None:
        why = _CAUSES.get(plain["cause"], "unknown")
        lines.append(f"  {broken_at} {unit} broke {plain['broke_first']} ({why})")
    if plain["status"] == "generator":
        lines.append("the search ended early: the load generator was the bottleneck, use more of it")
    elif plain["status"] == "interrupted":
        lines.append("the search was interrupted")
    elif broken_at is None:
        lines.append("  nothing broke up to the highest load that was allowed (to)")
    return lines


def _decision(decided: dict[str, Any]) -> str:
    low, high, allowed = (100 * decided[key] for key in ("low", "high", "allowed"))
    return (
        f"  {decided['objective']}: {decided['bad']} of {decided['n']} bad, "
        f"95 % interval {low:.2f} % to {high:.2f} %, allowed {allowed:.2f} %"
    )


def _room(room: dict[str, Any]) -> str:
    seen, expected = room["open_streams"] or 0.0, room["littles_law"] or 0.0
    return (
        f"  headroom: {seen:.0f} open streams, {room['requests_per_s']:.1f} requests/s, "
        f"{room['tokens_per_s']:.0f} tokens/s; Little's law: rate times duration is {expected:.1f} streams, "
        f"{seen:.1f} were seen"
    )


def _duration(seconds: float | None) -> str:
    return "–" if seconds is None else format_duration(seconds)

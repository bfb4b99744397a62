"""Findings as a table for people and as JSON for machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.judge.check.observation import Observation
from harness.judge.check.verdict import Finding, Status
from harness.observe.table import safe
from harness.stream.assemble import escape

SCHEMA = "harness.check/1"

# Characters of a line of evidence: a server must not choose how long it gets.
_LINE = 2000

STATUSES: tuple[Status, ...] = ("kept", "broken", "not observed", "not testable here")
_STYLES: dict[Status, str] = {
    "kept": "green",
    "broken": "bold red",
    "not observed": "yellow",
    "not testable here": "dim",
}


def counts(findings: Sequence[Finding]) -> dict[str, int]:
    """Return how many statements have each verdict."""
    found = Counter(finding.verdict.status for finding in findings)
    return {status: found[status] for status in STATUSES}


def as_dict(
    findings: Sequence[Finding], observations: Sequence[Observation], about: Mapping[str, Any]
) -> dict[str, Any]:
    """Return everything as plain data: *about* the check, its findings, and the record of every attempt."""
    return {
        "schema": SCHEMA,
        **about,
        "counts": counts(findings),
        "findings": [
            {
                "id": finding.id,
                "name": finding.name,
                "statement": finding.statement,
                "status": finding.verdict.status,
                "reason": finding.verdict.reason,
                "evidence": list(finding.verdict.evidence),
            }
            for finding in findings
        ],
        "attempts": [
            {"situation": seen.situation, "record": msgspec.to_builtins(seen.record)} for seen in observations
        ],
    }


def render(findings: Sequence[Finding], about: Mapping[str, Any]) -> RenderableType:
    """Return the table of all findings."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("id", "verdict"):
        table.add_column(name, no_wrap=True)
    table.add_column("statement", ratio=2, overflow="fold")
    table.add_column("because", ratio=3, overflow="fold")
    for finding in findings:
        status = finding.verdict.status
        told = Text(finding.statement)
        told.append(f"\n{finding.name}", style="dim")
        shown_id = finding.id if finding.id != finding.name else ""
        table.add_row(shown_id, Text(status, style=_STYLES[status]), told, safe(finding.verdict.reason))
    if not about["simulated"]:
        return table
    words = "SIMULATED: these promises are kept or broken by a simulator"
    if about["time_scale"] != 1.0:
        words += f" (time scale {about['time_scale']:g})"
    return Group(Text(words, style="bold black on yellow"), table)


def tickets(findings: Sequence[Finding]) -> list[str]:
    """Return the evidence of what was broken as lines to copy, each whole however wide the terminal is."""
    lines = []
    for finding in findings:
        if finding.verdict.status == "broken":
            lines += [f"{finding.id} {finding.name}: {finding.statement}", finding.verdict.reason]
            lines += [*finding.verdict.evidence, ""]
    return [escape(line, _LINE) for line in lines]


def total(findings: Sequence[Finding], about: Mapping[str, Any]) -> str:
    """Return the last line: how many statements have which verdict."""
    told = ", ".join(f"{count} {status}" for status, count in counts(findings).items())
    return f"{about['gateway']} at {escape(about['url'], _LINE)}: {told}"

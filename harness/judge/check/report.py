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

SCHEMA = "harness.check/1"

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
    """Return the table, the evidence of what was broken, and the count."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("id", "verdict"):
        table.add_column(name, no_wrap=True)
    table.add_column("statement", ratio=2, overflow="fold")
    table.add_column("because", ratio=3, overflow="fold")
    for finding in findings:
        status = finding.verdict.status
        told = Text(finding.statement)
        told.append(f"\n{finding.name}", style="dim")
        table.add_row(finding.id if finding.id != finding.name else "", Text(status, style=_STYLES[status]),
                      told, safe(finding.verdict.reason))  # fmt: skip
    parts: list[RenderableType] = []
    if about["simulated"]:
        words = "SIMULATED: these promises are kept or broken by a simulator"
        if about["time_scale"] != 1.0:
            words += f" (time scale {about['time_scale']:g})"
        parts.append(Text(words, style="bold black on yellow"))
    parts += [table, *_tickets(findings)]
    total = ", ".join(f"{count} {status}" for status, count in counts(findings).items())
    parts.append(Text(f"{about['gateway']} at {safe(about['url'])}: {total}", style="bold"))
    return Group(*parts)


def _tickets(findings: Sequence[Finding]) -> list[RenderableType]:
    """Return the evidence of broken statements as text that can be copied: nothing in it is cut or folded."""
    parts: list[RenderableType] = []
    for finding in findings:
        if finding.verdict.status == "broken" and finding.verdict.evidence:
            parts.append(Text(f"{finding.id} {finding.name}: {finding.statement}", style="bold red"))
            parts.append(Text("\n".join(finding.verdict.evidence) + "\n", overflow="fold"))
    return parts

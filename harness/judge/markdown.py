"""``summary.md``: the verdict for people, worst first. GitHub shows it as a job's summary."""

from __future__ import annotations

import re

from harness.judge.verdict import Result, Verdict, Word

_SIGNS: dict[Word, str] = {
    "invalid": "⛔", "fail": "❌", "no_data": "❓", "inconclusive": "➖", "warn": "⚠️", "pass": "✅",
    "skipped": "⏭️",
}  # fmt: skip
# What Markdown or HTML would take for a command; a gate's and a server's words are shown as they are.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!&])")


def to_markdown(verdict: Verdict) -> str:
    """Return the verdict as GitHub-flavoured Markdown."""
    lines = [f"## {_SIGNS[verdict.word]} {_md(verdict.sentence)}", ""]
    if verdict.simulated:
        scale = f", time scale {verdict.time_scale:g}" if verdict.time_scale != 1.0 else ""
        lines += [f"> **Simulated gateway{scale}**: these numbers say nothing about a real one.", ""]
    counts = verdict.counts
    lines += [
        f"Run `{_code(verdict.run)}` against `{_code(verdict.gateway)}`: {counts.requests:,} requests in "
        f"{counts.streams:,} attempts measured, {counts.warmup + counts.outside:,} attempts of warm-up and "
        f"cool-down left out. Gates: `{_code(verdict.gates.source)}`.",
        "",
    ]
    lines += [f"* {_SIGNS['invalid']} {_md(reason.text)}" for reason in verdict.invalid]
    if verdict.invalid:
        lines.append("")
    if verdict.results:
        lines += [
            "| | gate | measure | value | interval | limit | n |",
            "| --- | --- | --- | ---: | --- | --- | ---: |",
            *(_row(result) for result in verdict.worst_first),
            "",
        ]
        lines += [_explained(result) for result in verdict.worst_first if result.word != "pass"]
    lines += [f"* note: {_md(note)}" for note in verdict.notes]
    return "\n".join(lines).rstrip() + "\n"


def _row(result: Result) -> str:
    gate, estimate = result.gate, result.estimate
    cells = (
        f"{_SIGNS[result.word]} {result.word.replace('_', ' ')}",
        _md(gate.id),
        f"{_md(str(gate))}, per {gate.view}",
        _md(result.value_text),
        _md(result.interval_text),
        _md(f"{gate.op} {gate.limit_text}"),
        f"{estimate.n:,}" if estimate else "0",
    )
    return "| " + " | ".join(cells) + " |"


def _explained(result: Result) -> str:
    return f"* {_SIGNS[result.word]} **{_md(result.gate.id)}**: {_md(result.reason)}. {_md(result.gate.why)}"


def _md(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _code(text: str) -> str:
    return " ".join(text.replace("`", "'").split())

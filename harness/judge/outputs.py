"""The files of a verdict, and what is said to GitHub where it runs there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from harness.judge.files import write_whole
from harness.judge.junit import to_junit
from harness.judge.markdown import to_markdown
from harness.judge.plain import to_json
from harness.judge.verdict import Verdict
from harness.observe.results import ResultsError

VERDICT, JUNIT, SUMMARY_MD = "verdict.json", "junit.xml", "summary.md"

# GitHub takes 1 MiB per step and drops all of a longer one; another step of the job may have written before.
_SUMMARY_BYTES = 1_000_000
# Beyond about ten annotations of a level GitHub shows none, and nobody reads more than a few.
_ANNOTATIONS = 5


def write_outputs(folder: Path, verdict: Verdict) -> list[Path]:
    """Write the verdict's three files into *folder* and return their paths. Raises `ResultsError`."""
    return [
        write_whole(folder / VERDICT, to_json(verdict)),
        write_whole(folder / JUNIT, to_junit(verdict)),
        write_whole(folder / SUMMARY_MD, to_markdown(verdict)),
    ]


def tell_github(verdict: Verdict, environment: Mapping[str, str] = os.environ) -> list[str]:
    """Append to the step's summary and outputs if GitHub names files for them; return lines for its log.

    The lines are ``::error`` and ``::warning`` commands, none outside GitHub. Raises `ResultsError`.
    """
    if summary := environment.get("GITHUB_STEP_SUMMARY"):
        _append(Path(summary), _shortened(to_markdown(verdict), Path(summary)))
    if output := environment.get("GITHUB_OUTPUT"):
        _append(Path(output), f"verdict={verdict.word}\nexit-code={verdict.exit_code}\n")
    return github_commands(verdict) if environment.get("GITHUB_ACTIONS") == "true" else []


def github_commands(verdict: Verdict) -> list[str]:
    """Return at most five workflow commands, worst first."""
    lines = [_command("error", "run invalid", reason.text) for reason in verdict.invalid]
    if not lines:
        for result in verdict.worst_first:
            if result.word in ("fail", "no_data", "inconclusive", "warn"):
                level = "error" if result.blocking else "warning"
                title = f"gate {result.gate.id}: {result.word.replace('_', ' ')}"
                lines.append(_command(level, title, f"{result.gate}: {result.reason} – {result.gate.why}"))
    if len(lines) > _ANNOTATIONS:
        lines[_ANNOTATIONS - 1 :] = [
            _command("error", "more gates", f"{len(lines) - _ANNOTATIONS + 1} more: see the summary")
        ]
    return lines


def _command(level: str, title: str, message: str) -> str:
    return f"::{level} title={_escaped(title, property_=True)}::{_escaped(message)}"


def _escaped(text: str, property_: bool = False) -> str:
    # A gate's text must not end the command or begin another.
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if property_ else text


def _shortened(text: str, path: Path) -> str:
    try:
        used = path.stat().st_size
    except OSError:
        used = 0
    room, note = _SUMMARY_BYTES - used, "\n\n(cut: the whole is in summary.md)\n"
    data = text.encode("utf-8")
    if len(data) <= room:
        return text
    return data[: max(0, room - len(note))].decode("utf-8", "ignore").rpartition("\n")[0] + note


def _append(path: Path, text: str) -> None:
    # One write in append mode: a step that runs beside this one may write to the same file.
    try:
        with path.open("ab", buffering=0) as file:
            file.write(text.encode("utf-8"))
    except OSError as error:
        raise ResultsError(f"cannot write {path} ({error.strerror or error})") from None

"""Writes the list of all error messages into docs/troubleshooting.md; --check says whether it is fresh.

A message is what an exception that the user can cause is raised with, as the source has it: what changes
from case to case stands in capitals.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "troubleshooting.md"
BEGIN, END = "<!-- messages: written by scripts/messages.py -->\n", "<!-- end of messages -->\n"

# Exceptions that never reach a user: they become an outcome, a violation, or another error's words.
INTERNAL = {
    "AssertionError", "BadRequestError", "DecodeError", "DialError", "HttpError", "KeyError", "OSError",
    "TransportError", "ValueError", "_RefusedError",
}  # fmt: skip

TOPICS = {
    "gateways": "Profiles and durations",
    "transport": "Connections and certificates",
    "observe": "Results and metrics",
    "judge": "Gates, baselines, comparisons, captures",
    "load": "Load",
    "swarm": "Options of a run",
    "sim": "The simulated gateway",
    "commands": "Commands",
}


def messages(root: Path = ROOT / "harness") -> dict[str, list[str]]:
    """Return the messages by the room whose code raises them."""
    found: dict[str, set[str]] = {}
    for path in sorted(root.rglob("*.py")):
        room = path.relative_to(root).parts[0]
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            message = _message(node)
            if message and room in TOPICS:
                found.setdefault(room, set()).add(message)
    return {room: sorted(found[room], key=str.casefold) for room in TOPICS if room in found}


def _message(node: ast.AST) -> str | None:
    if not isinstance(node, ast.Raise) or not isinstance(node.exc, ast.Call) or not node.exc.args:
        return None
    raised = node.exc.func
    name = (
        raised.id
        if isinstance(raised, ast.Name)
        else raised.attr
        if isinstance(raised, ast.Attribute)
        else ""
    )
    if not name.endswith("Error") or name in INTERNAL:
        return None
    text = " ".join(_text(node.exc.args[0]).split())
    return text if any(len(word) > 2 and word.islower() for word in text.split()) else None


def _text(node: ast.expr) -> str:
    """Return *node* as people read it."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_text(part) for part in parts)
        case ast.FormattedValue(value=value):
            return _text(value)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _text(left) + _text(right)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.strip("_").upper()
    return "…"


def section() -> str:
    """Return the generated part of the page."""
    parts = [BEGIN]
    for room, texts in messages().items():
        parts.append(f"\n### {TOPICS[room]}\n\n")
        parts += [f"- `{text.replace('`', chr(39))}`\n" for text in texts]
    return "".join([*parts, END])


def main() -> int:
    page = PAGE.read_text("utf-8")
    before, _, rest = page.partition(BEGIN)
    fresh = before + section() + rest.partition(END)[2]
    if "--check" in sys.argv:
        if page != fresh:
            print(f"{PAGE.relative_to(ROOT)} is stale: run `python scripts/messages.py`", file=sys.stderr)
        return int(page != fresh)
    PAGE.write_text(fresh, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

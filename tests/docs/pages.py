"""What the pages say: blocks of commands with what they need, and links."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md")])

_BLOCK = re.compile(r"^```(?P<language>\w+)?(?P<marks>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_EXITS = re.compile(r"\s+# exits with (\d[\d, or]*)$")


@dataclass(frozen=True)
class Command:
    """A line of a block; `exits` are the exit codes that the page speaks of."""

    line: str
    exits: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class Block:
    page: str
    needs: str
    commands: tuple[Command, ...]


def command_of(line):
    found = _EXITS.search(line)
    codes = tuple(int(code) for code in re.findall(r"\d+", found[1])) if found else (0,)
    return Command(_EXITS.sub("", line), codes)


def blocks(page, text):
    """Return the blocks of commands: lines behind a prompt in `console`, every line in `sh`."""
    found = []
    for match in _BLOCK.finditer(text):
        if match["language"] not in ("console", "sh"):
            continue
        lines = match["text"].replace("\\\n", "").splitlines()
        if match["language"] == "console":
            lines = [line[2:] for line in lines if line.startswith("$ ")]
        commands = tuple(command_of(line) for line in lines if line.strip() and not line.startswith("#"))
        found.append(Block(page, match["marks"].strip(), commands))
    return found


BLOCKS = [block for page in PAGES for block in blocks(page.name, page.read_text("utf-8"))]

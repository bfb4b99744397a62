"""Where in a TOML text a key stands: `tomllib` keeps no lines, and an error without a line is a search.

A scan of the text for table headers and keys, good enough to point; it never decides what the text means.
"""

from __future__ import annotations

import re

_HEADER = re.compile(r"^\s*(\[\[?)\s*([^\]#]+?)\s*\]")
_KEY = re.compile(
    r"""^\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*="""
)
_TRIPLE = re.compile(r'"""|\'\'\'')


class Places:
    """The lines of a TOML text's tables and keys."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        # (table, which of the tables of that name, first line, last line); the top has the empty name.
        self._blocks: list[tuple[str, int, int, int]] = []
        self._keys: list[tuple[int, str]] = []
        self._scan()

    def table(self, name: str, index: int = 0) -> int:
        """Return the line of the *index*-th table (or array entry) called *name*; 1 if unknown."""
        return next(
            (max(1, first) for table, number, first, _ in self._blocks if (table, number) == (name, index)), 1
        )

    def top(self, key: str) -> int:
        """Return the line of *key* at the top of the file, be it a value, a table or an array of tables."""
        line = self.key("", key)
        return line if line > 1 else self.table(key)

    def key(self, table: str, key: str, index: int = 0) -> int:
        """Return the line of *key* in that table, or in one inside it; the table's own line if unknown."""
        for name, number, first, last in self._blocks:
            if name != table or number != index:
                continue
            found = next((line for line, word in self._keys if first <= line <= last and word == key), None)
            return found or self._inline(key, first, last) or max(1, first)
        return 1

    def inside(self, table: str, key: str, inner: str, index: int = 0) -> int:
        """Return the line of *inner* in the value of *key*: an inline table or a table of its own."""
        own = f"{table}.{key}" if table else key
        first = self.table(table, index) if table else 0
        after = next(
            (b for name, number, b, _ in self._blocks if name == table and number == index + 1), None
        )
        for name, _, begins, ends in self._blocks:
            if name == own and begins > first and (after is None or begins < after or not table):
                within = next((n for n, word in self._keys if begins <= n <= ends and word == inner), None)
                return within or begins
        return self.key(table, key, index)

    def _scan(self) -> None:
        name, first, counts, quote = "", 0, {"": 0}, ""
        for number, line in enumerate(self._lines, 1):
            if quote:  # inside a text of several lines nothing is a key
                quote = "" if quote in line else quote
                continue
            if header := _HEADER.match(line):
                self._blocks.append((name, counts[name], first, number - 1))
                name, first = header[2].replace('"', "").replace(" ", ""), number
                counts[name] = counts.get(name, -1) + 1
            elif key := _KEY.match(line):
                self._keys.append((number, key[1].strip("\"'")))
            opened = _TRIPLE.findall(line)
            if len(opened) % 2:
                quote = opened[-1]
        self._blocks.append((name, counts[name], first, len(self._lines)))

    def _inline(self, key: str, first: int, last: int) -> int | None:
        pattern = re.compile(rf"""[{{,]\s*["']?{re.escape(key)}["']?\s*=""")
        for number in range(max(1, first), last + 1):
            if pattern.search(self._lines[number - 1]):
                return number
        return None

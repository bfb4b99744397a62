"""The few pieces of HTML that the report is made of. Text goes in as text and comes out escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


class Html(str):
    """Text that is HTML already and must not be escaped again."""

    __slots__ = ()


def text(value: str) -> Html:
    """Return *value* escaped, unless it is HTML already."""
    return value if isinstance(value, Html) else Html(escape(value))


def join(parts: Iterable[str]) -> Html:
    """Return the escaped *parts* one after the other."""
    return Html("".join(text(part) for part in parts))


def tag(name: str, *parts: str, css: str = "", **attributes: str) -> Html:
    """Return an element with *parts* inside."""
    words = {**({"class": css} if css else {}), **attributes}
    head = "".join(f' {key}="{escape(value)}"' for key, value in words.items())
    return Html(f"<{name}{head}>{join(parts)}</{name}>")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], css: str = "", left: int = 1) -> Html:
    """Return a table; the first *left* columns are words, the others numbers."""
    align = ["left" if i < left else "number" for i in range(len(head))]
    top = tag("tr", *(tag("th", cell, css=align[i], scope="col") for i, cell in enumerate(head)))
    body = [tag("tr", *(tag("td", cell, css=align[i]) for i, cell in enumerate(row))) for row in rows]
    return tag("div", tag("table", tag("thead", top), tag("tbody", *body), css=css), css="scroll")


def section(title: str, *parts: str, about: str = "") -> Html:
    """Return a section with its heading and, small, how to read it."""
    note = [tag("p", about, css="about")] if about else []
    return tag("section", tag("h2", title), *note, *parts)


def legend(entries: Iterable[tuple[str, str]]) -> Html:
    """Return a legend of (CSS class, words)."""
    keys = (tag("span", tag("i", css=f"key {css}"), words, css="entry") for css, words in entries)
    return tag("p", *keys, css="legend")

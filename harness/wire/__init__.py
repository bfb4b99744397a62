"""Bytes to facts: the SSE parser and one grammar per protocol. Knows no clock, socket or Locust."""

from __future__ import annotations

from harness.wire.chat import ChatGrammar
from harness.wire.grammar import Grammar
from harness.wire.messages import MessagesGrammar
from harness.wire.responses import ResponsesGrammar

GRAMMARS: dict[str, type[Grammar]] = {
    "chat": ChatGrammar,
    "responses": ResponsesGrammar,
    "messages": MessagesGrammar,
}


def grammar_for(protocol: str, *, usage_requested: bool = False) -> Grammar:
    """Return a fresh grammar for one stream of *protocol* (``chat``, ``responses``, ``messages``)."""
    return GRAMMARS[protocol](usage_requested=usage_requested)


__all__ = ["GRAMMARS", "Grammar", "grammar_for"]

"""Frames of the three protocols, as short as a table needs them, and a run of them through a grammar."""

from __future__ import annotations

import json
from typing import Any

from harness.wire import grammar_for
from harness.wire.grammar import Grammar
from harness.wire.signals import channel_name
from harness.wire.sse import Comment, EmptyBlock, Event, SseParser

DONE = b"data: [DONE]\n\n"


def data(body: Any, name: str | None = None) -> bytes:
    """An SSE event whose data is *body*: text as it is, anything else as JSON."""
    text = body if isinstance(body, str) else json.dumps(body)
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


def chunk(content: Any = None, *, finish: Any = None, index: int = 0, **delta: Any) -> bytes:
    """A chat chunk with one choice; *delta* are further fields of its delta."""
    if content is not None:
        delta["content"] = content
    choice = {"index": index, "delta": delta, "finish_reason": finish}
    return data({"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]})


def usage(prompt: int = 3, completion: int = 2, **more: Any) -> bytes:
    """The chat chunk that carries only usage."""
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return data({"id": "c1", "choices": [], "usage": {**counts, **more}})


ROLE = chunk("", role="assistant")
HI = chunk("Hi")
STOP = chunk(finish="stop")
GOOD_CHAT = ROLE + HI + STOP + usage() + DONE


def resp(kind: str, **fields: Any) -> bytes:
    """A Responses event."""
    return data({"type": f"response.{kind}", **fields}, f"response.{kind}")


def response(status: str = "completed", **fields: Any) -> dict[str, Any]:
    """A Responses response object."""
    return {"id": "r1", "object": "response", "status": status, "output": [], **fields}


CREATED = resp("created", response=response("in_progress"))
ITEM = resp("output_item.added", output_index=0, item={"type": "message", "id": "i1"})
PART = resp("content_part.added", output_index=0, content_index=0, part={"type": "output_text", "text": ""})
PART_DONE = resp("content_part.done", output_index=0, content_index=0)
ITEM_DONE = resp("output_item.done", output_index=0, item={"type": "message"})
USAGE = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
COMPLETED = resp("completed", response=response(usage=USAGE))


def text(delta: Any, output_index: int = 0, content_index: int = 0) -> bytes:
    """A Responses text delta."""
    return resp("output_text.delta", output_index=output_index, content_index=content_index, delta=delta)


OPENED = CREATED + ITEM + PART
CLOSED = PART_DONE + ITEM_DONE
GOOD_RESPONSES = OPENED + text("Hi") + CLOSED + COMPLETED


def msg(kind: str, **fields: Any) -> bytes:
    """A Messages event."""
    return data({"type": kind, **fields}, kind)


START = msg("message_start", message={"id": "m1", "usage": {"input_tokens": 3, "output_tokens": 1}})
PING = msg("ping")
BLOCK_STOP = msg("content_block_stop", index=0)
MESSAGE_STOP = msg("message_stop")


def block(kind: str = "text", index: int = 0, **fields: Any) -> bytes:
    """A Messages block start."""
    fields = {"text": "", **fields} if kind == "text" else fields
    return msg("content_block_start", index=index, content_block={"type": kind, **fields})


def delta(value: Any = "Hi", kind: str = "text_delta", field: str = "text", index: int = 0) -> bytes:
    """A Messages delta."""
    return msg("content_block_delta", index=index, delta={"type": kind, field: value})


def message_delta(reason: Any = "end_turn", **counts: Any) -> bytes:
    """A Messages message_delta."""
    return msg("message_delta", delta={"stop_reason": reason}, usage={"output_tokens": 2, **counts})


GOOD_MESSAGES = START + block() + PING + delta() + BLOCK_STOP + message_delta() + MESSAGE_STOP


def play(protocol: str, body: bytes, *, usage_requested: bool = False) -> tuple[list[str], Grammar]:
    """Run *body* through its grammar to a clean end; returns each event's channel, and the grammar."""
    grammar = grammar_for(protocol, usage_requested=usage_requested)
    channels = []
    for item in SseParser().feed(body):
        if isinstance(item, Event):
            channels.append(channel_name(grammar.event(item.type, item.raw)))
        elif isinstance(item, EmptyBlock):
            if signal := grammar.block(item):
                channels.append(channel_name(signal))
        elif isinstance(item, Comment):
            channels.append("comment")
    grammar.end_of_body()
    return channels, grammar

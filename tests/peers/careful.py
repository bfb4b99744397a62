"""What a careful reader of the bytes says of an answer: plain rules, a socket, nothing of the harness."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}


@dataclass
class Answer:
    """A whole answer: `how` it ended is ``end`` (as HTTP says), ``cut``, ``silent`` (nothing for long)."""

    status: int
    mime: str
    body: bytes
    how: str


def request(protocol: str, url: str, model: str, prompt: str, key: str) -> Answer | None:
    """Ask and return the answer; None if there was none."""
    asked: dict[str, Any] = {"model": model, "stream": True}
    if protocol == "responses":
        asked["input"] = [{"role": "user", "content": prompt}]
    else:
        asked["messages"] = [{"role": "user", "content": prompt}]
        asked |= {"max_tokens": 256}
    if protocol == "chat":
        asked["stream_options"] = {"include_usage": True}
    body = json.dumps(asked).encode()
    parts = urlsplit(url)
    head = (
        f"POST {PATHS[protocol]} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {key}\r\nx-api-key: {key}\r\nanthropic-version: 2023-06-01\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    with socket.create_connection((parts.hostname or "", parts.port or 80), timeout=10) as sock:
        sock.sendall(head.encode() + body)
        sock.settimeout(4.0)
        raw, how = b"", "end"
        while True:
            try:
                data = sock.recv(65536)
            except TimeoutError:
                how = "silent"
                break
            except ConnectionResetError:
                how = "cut"
                break
            if not data:
                break
            raw += data
    return parse(raw, how)


def parse(raw: bytes, how: str) -> Answer | None:
    """Take an answer's head and framing off."""
    top, separator, rest = raw.partition(b"\r\n\r\n")
    if not separator:
        return None
    status_line, *lines = top.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if headers.get("transfer-encoding") == "chunked":
        body, whole = b"", False
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            length = int(size, 16)
            if length == 0:
                whole = True
                break
            body, rest = body + rest[:length], rest[length + 2 :]
        how = how if whole or how == "silent" else "cut"
    else:
        body = rest
    mime = headers.get("content-type", "").partition(";")[0].strip().lower()
    return Answer(int(status_line.split()[1]), mime, body, how)


def outcome(protocol: str, answer: Answer | None) -> str:
    """Return how the answer ended, in the words of the harness."""
    if answer is None:
        return "no_response"
    if not 200 <= answer.status < 300:
        return "http_error"
    if answer.mime != "text/event-stream":
        return "not_a_stream"
    output = finished = terminal = False
    for data in events(answer.body):
        if data == "[DONE]":
            terminal = terminal or protocol == "chat"
            break
        body = json.loads(data)
        if body.get("error") or body.get("type") in ("error", "response.failed"):
            return "error_event"
        output = output or says_something(protocol, body)
        if protocol == "chat":
            finished = finished or any(c.get("finish_reason") for c in body.get("choices") or [])
        elif body.get("type") in ("response.completed", "response.incomplete", "message_stop"):
            finished = terminal = True
        elif body.get("type") == "message_delta":
            finished = finished or bool(body["delta"].get("stop_reason"))
    if terminal:
        return "empty" if not output else "completed" if finished else "truncated"
    if answer.how != "end":
        return "stalled" if answer.how == "silent" else "cut"
    return "unterminated" if finished else "truncated"


def events(body: bytes) -> list[str]:
    """Return the data of all whole events."""
    found = []
    for block in body.decode("utf-8").replace("\r\n", "\n").split("\n\n")[:-1]:
        data = [line.removeprefix("data:").lstrip() for line in block.split("\n") if line.startswith("data:")]
        if data:
            found.append("\n".join(data))
    return found


def says_something(protocol: str, body: dict[str, Any]) -> bool:
    """Whether the event carries output."""
    if protocol == "chat":
        deltas = [choice.get("delta") or {} for choice in body.get("choices") or []]
        return any(d.get("content") or d.get("reasoning_content") or d.get("tool_calls") for d in deltas)
    if protocol == "responses":
        return str(body.get("type")).endswith(".delta") and bool(body.get("delta"))
    delta = body.get("delta") or {}
    return any(delta.get(field) for field in ("text", "thinking", "partial_json"))

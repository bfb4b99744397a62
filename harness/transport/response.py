"""Bytes of one HTTP/1.1 answer → status, headers, body pieces, and how its end is told."""

from __future__ import annotations

import httptools

# Headers (interim answers and trailers included) beyond this are taken as an attack or a broken server.
# Node refuses 16 KiB, nginx 8 KiB per line, Apache 8 KiB per field; gateways add many, so four times Node's.
MAX_HEAD_BYTES = 65536


class Response:
    """Parses one answer. Call `feed` with what was read, then look at the fields.

    `ready`: the final status and headers are known. `pieces`: body bytes of the last `feed`; the
    caller clears it. `complete`: the answer ended as its framing says. `error`: it is not HTTP.
    """

    __slots__ = (
        "_bodiless", "_head_bytes", "_headers", "_interim", "_parser", "complete",
        "error", "keep_alive", "on_body", "pieces", "raw_headers", "ready", "status", "stray", "until_close",
    )  # fmt: skip

    def __init__(self, method: str) -> None:
        self.status = 0
        self.raw_headers: list[tuple[bytes, bytes]] = []
        self._headers: dict[str, str] = {}
        self.pieces: list[bytes] = []
        self.ready = False
        self.complete = False
        self.keep_alive = False
        self.stray = False  # bytes came after the end
        self.until_close = False  # the body ends where the connection does
        self.error = ""
        self.on_body = self.pieces.append  # called by the parser; no Python frame for a body piece
        self._bodiless = method == "HEAD"
        self._head_bytes = 0
        self._interim = False
        self._parser = httptools.HttpResponseParser(self)

    def feed(self, data: bytes) -> None:
        """Parse *data*. Never raises for what a server sent."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            raise error.__context__ or error from None  # a fault of ours, not of the server
        except httptools.HttpParserUpgrade:
            self._fail("the server switched protocols, unasked")
        except httptools.HttpParserError as error:
            self._fail(_explain(data, str(error)) if not self.ready else f"broken HTTP body: {error}")
        if not self.ready:
            # An unfinished header is not reported by the parser, but it takes memory all the same.
            self._head_bytes += len(data)
            self._check_head()

    def release(self) -> None:
        """Let go of the parser, which refers to us: only the garbage collector could free the two."""
        del self._parser

    def headers(self) -> dict[str, str]:
        """Return the headers by lower-case name, repeated ones joined with a comma."""
        return self._headers

    def _fail(self, error: str) -> None:
        if self.complete:
            self.stray = True
        elif not self.error:
            self.error = error

    def _check_head(self) -> None:
        if self._head_bytes > MAX_HEAD_BYTES:
            self._fail(f"response headers larger than {MAX_HEAD_BYTES // 1024} KiB")

    # What the parser calls:

    def on_message_begin(self) -> None:
        if self.complete:
            self.stray = True

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.ready:  # a trailer, or a header of something that nobody asked for
            self._head_bytes += len(name) + len(value)
            self._check_head()
        else:
            self.raw_headers.append((name, value))

    def on_headers_complete(self) -> None:
        if self.ready:
            return
        status = self._parser.get_status_code()
        if status == 101:
            self._fail("the server switched protocols, unasked")
        elif status < 200:
            self._interim = True
            self.raw_headers.clear()
            return
        self.status = status
        self.ready = True
        found, size = self._headers, 0
        for raw_name, raw_value in self.raw_headers:
            size += len(raw_name) + len(raw_value)
            name, text = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
            found[name] = f"{found[name]}, {text}" if name in found else text
        self._head_bytes = max(self._head_bytes, size)  # what came in earlier reads has been counted
        self._check_head()
        if self._bodiless:
            self._finish()
            return
        self.until_close = "content-length" not in found and "transfer-encoding" not in found

    def on_message_complete(self) -> None:
        if self._interim:
            self._interim = False
        elif not self.complete and not self.error:
            self._finish()

    def _finish(self) -> None:
        self.complete = True
        self.keep_alive = self._parser.should_keep_alive()


def _explain(data: bytes, error: str) -> str:
    """Return one line for an answer whose beginning is not HTTP."""
    if data.startswith((b"\x15\x03", b"\x16\x03")):
        return "the answer is TLS, not plain HTTP: is this an https:// address?"
    if not data.startswith(b"HTTP/1."):
        return "the answer is not HTTP/1.1"
    return f"broken HTTP headers: {error[:1].lower()}{error[1:]}"

"""Reads HTTP/1.1 requests from bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import httptools

# Larger than any prompt in use; what is beyond it would only fill the memory.
MAX_BODY_BYTES = 64 * 1024 * 1024


class HttpError(ValueError):
    """These bytes are no HTTP request, or too many; `status` answers them."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(slots=True)
class HttpRequest:
    """One request, read whole."""

    method: str = ""
    url: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    """Names in lower case; of repeated ones the last."""
    body: bytes = b""
    keep_alive: bool = True
    chunked_allowed: bool = True
    """False for HTTP/1.0, which knows no chunks."""


class RequestReader:
    """Feeds a parser and hands over whole requests."""

    def __init__(self, on_request: Callable[[HttpRequest], None], on_expect: Callable[[], None]) -> None:
        self._on_request = on_request
        self._on_expect = on_expect
        self._parser = httptools.HttpRequestParser(self)
        self._request = HttpRequest()
        self._url: list[bytes] = []
        self._body: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> None:
        """Take *data* in. Raises `HttpError`."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            raise HttpError(400, "No protocol upgrades here.") from None
        except httptools.HttpParserError as error:
            cause = error.__context__
            if isinstance(cause, HttpError):
                raise cause from None
            raise HttpError(400, f"Not an HTTP request: {error}.") from None

    def close(self) -> None:
        """Let go of the parser and of who was told of requests; nothing may be fed any more.

        They refer to each other in circles, and the server's collector comes round too seldom to find them.
        """
        del self._parser, self._on_request, self._on_expect

    def on_message_begin(self) -> None:
        """Called by the parser, as all below."""
        self._request = HttpRequest()
        self._url.clear()
        self._body.clear()
        self._size = 0

    def on_url(self, url: bytes) -> None:
        self._url.append(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._request.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self._request.headers.get("expect", "").lower() == "100-continue":
            self._on_expect()

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._size > MAX_BODY_BYTES:
            raise HttpError(413, "The body is too large.")
        self._body.append(body)

    def on_message_complete(self) -> None:
        request = self._request
        request.method = self._parser.get_method().decode("latin-1")
        request.url = b"".join(self._url).decode("latin-1")
        request.body = b"".join(self._body)
        request.keep_alive = self._parser.should_keep_alive()
        request.chunked_allowed = self._parser.get_http_version() != "1.0"
        self._on_request(request)

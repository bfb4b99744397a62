"""Where a request goes, and its bytes on the wire."""

from __future__ import annotations

import re
from dataclasses import dataclass

import httpx

from harness.transport.options import TransportError

_DEFAULT_PORTS = {"http": 80, "https": 443}
_BODY_METHODS = frozenset({"POST", "PUT", "PATCH"})
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_NOT_IN_VALUE = re.compile(r"[\r\n\0]")


@dataclass(frozen=True, slots=True)
class Origin:
    """The server that a URL means: connections are shared within one and never across."""

    scheme: str
    host: str
    port: int

    @staticmethod
    def of(url: httpx.URL) -> Origin:
        """Return the origin of *url*. Raises `TransportError` if it is not an http or https address."""
        if url.scheme not in _DEFAULT_PORTS or not url.host:
            raise TransportError(f"not an http:// or https:// address: {url}")
        if url.port is not None and not 0 < url.port < 65536:
            raise TransportError(f"not a port: {url.port}, in {url}")
        return Origin(url.scheme, url.raw_host.decode("ascii"), url.port or _DEFAULT_PORTS[url.scheme])

    @property
    def address(self) -> str:
        """The `host:port` that a person would write."""
        return join_address(self.host, self.port)


def join_address(host: str, port: int) -> str:
    """Return `host:port`, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def serialize(method: str, url: httpx.URL, headers: list[tuple[str, str]], body: bytes) -> bytes:
    """Return the request's bytes. Raises `TransportError` for what would not be one request.

    Host and Content-Length are added where missing. So is `Accept-Encoding: identity`: without it a
    server is free to compress, and compression holds tokens back.
    """
    if not _TOKEN.fullmatch(method):
        raise TransportError(f"not an HTTP method: {method!r}")
    lines = [f"{method} {url.raw_path.decode('ascii')} HTTP/1.1"]
    present = set()
    for name, value in headers:
        if not _TOKEN.fullmatch(name):
            raise TransportError(f"cannot send header {name!r}: not a header name")
        if _NOT_IN_VALUE.search(value):
            raise TransportError(f"cannot send header {name!r}: its value contains a line break")
        present.add(name.lower())
        lines.append(f"{name}: {value}")
    if "host" not in present:
        lines.insert(1, f"Host: {url.netloc.decode('ascii')}")
    if "accept-encoding" not in present:
        lines.append("Accept-Encoding: identity")
    framed = "content-length" in present or "transfer-encoding" in present
    if not framed and (body or method in _BODY_METHODS):
        lines.append(f"Content-Length: {len(body)}")
    lines.append("\r\n")
    try:
        return "\r\n".join(lines).encode("latin-1") + body
    except UnicodeEncodeError as error:
        bad = error.object[error.start]
        raise TransportError(
            f"cannot send a header with the character {bad!r}: only Latin-1 can be sent"
        ) from None

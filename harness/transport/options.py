"""How connections are made: what a user may choose, checked before anything is opened."""

from __future__ import annotations

import re
from dataclasses import dataclass


class TransportError(ValueError):
    """A transport option cannot be used; the message is one line for the user."""


@dataclass(frozen=True, slots=True)
class TransportOptions:
    """Choices that hold for all connections of a run.

    `ca_file` replaces the system's certificate authorities. `client_cert` names a PEM file with a
    certificate and its key, or both files as `CERT,KEY`. `insecure` verifies nothing. `connect_to`
    (`HOST:PORT`) is dialled instead of the URL's host, whose name stays in SNI, Host and the
    certificate check. `per_request` opens a new connection for each request.
    """

    ca_file: str | None = None
    client_cert: str | None = None
    insecure: bool = False
    connect_to: str | None = None
    per_request: bool = False

    def __post_init__(self) -> None:
        self.connect_address()

    def connect_address(self) -> tuple[str, int] | None:
        """Return `connect_to` as host and port, or None. Raises `TransportError`."""
        if self.connect_to is None:
            return None
        found = re.fullmatch(r"(?:\[([^\[\]]+)\]|([^\[\]:\s]+)):(\d{1,5})", self.connect_to)
        if found is None or not 0 < int(found[3]) < 65536:
            raise TransportError(
                f"--connect-to: expected HOST:PORT ([ADDRESS]:PORT for IPv6), got {self.connect_to!r}"
            )
        return found[1] or found[2], int(found[3])

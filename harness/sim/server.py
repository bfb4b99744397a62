"""Connections: bytes in, requests to the gateway, bytes out. Everything about sockets is here."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import deque
from typing import cast

from harness.sim.gateway import SimulatedGateway
from harness.sim.http import HttpError, HttpRequest, RequestReader
from harness.sim.playback import Playback

_RST_ON_CLOSE = struct.pack("ii", 1, 0)


class Connection(asyncio.Protocol):
    """One client's connection; exchanges follow one another, pipelined requests wait."""

    def __init__(self, gateway: SimulatedGateway) -> None:
        self._gateway = gateway
        self._reader = RequestReader(self._on_request, self._on_expect)
        self._waiting: deque[HttpRequest] = deque()
        self._current: HttpRequest | None = None
        self._playback: Playback | None = None
        self._pumping = False
        self._closed = False
        self.congested = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        # No method in between: it is called for every token.
        self.write = self._transport.write  # type: ignore[method-assign]

    def data_received(self, data: bytes) -> None:
        try:
            self._reader.feed(data)
        except HttpError as error:
            self._closed = True
            self._transport.write(self._gateway.error_answer(error.status, str(error)))
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed = True
        if self._playback is not None:
            self._playback.left(self._gateway.clockwork.clock())
            self._playback = None
        self._reader.close()

    def pause_writing(self) -> None:
        self.congested = True

    def resume_writing(self) -> None:
        self.congested = False

    # What a playback asks of its link.

    def write(self, data: bytes) -> None:
        """Hand *data* to the socket (replaced by the transport's own method once connected)."""
        self._transport.write(data)

    def gone(self) -> bool:
        """Say whether the connection is lost already, although the loop has not told so yet."""
        return self._transport.is_closing()

    def finish(self) -> None:
        """End the exchange; the connection waits for the next request if both sides agreed to that."""
        request, self._current, self._playback = self._current, None, None
        if request is None or not request.keep_alive or not request.chunked_allowed:
            self.close()
        else:
            self._pump()

    def close(self) -> None:
        """Close after what has been written."""
        self._closed = True
        self._transport.close()

    def reset(self) -> None:
        """Close with a RST, at once."""
        self._closed = True
        tcp = cast(socket.socket, self._transport.get_extra_info("socket"))
        tcp.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RST_ON_CLOSE)
        self._transport.abort()

    def _on_request(self, request: HttpRequest) -> None:
        self._waiting.append(request)
        self._pump()

    def _on_expect(self) -> None:
        self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _pump(self) -> None:
        """Serve waiting requests one after the other, without recursion through `finish`."""
        if self._pumping:
            return
        self._pumping = True
        try:
            while self._waiting and self._current is None and not self._closed:
                self._current = self._waiting.popleft()
                playback = self._gateway.serve(self._current, self)
                if playback is not None and not playback.over:
                    self._playback = playback
        finally:
            self._pumping = False

"""Opens connections: name, address, handshake. Runs in the user's greenlet and waits through the hub."""

from __future__ import annotations

import ipaddress
import os
import socket
import ssl
from dataclasses import dataclass
from errno import EINPROGRESS
from time import monotonic

import gevent
import gevent.socket
from gevent.hub import Hub

from harness.transport import stamps
from harness.transport.connection import READ_SIZE, Connection
from harness.transport.options import TransportOptions
from harness.transport.request import Origin, join_address
from harness.transport.tls import (
    TlsChannel,
    TlsError,
    WrongNameError,
    make_nameless_context,
    make_ssl_context,
)

_READ, _WRITE = 1, 2
# One dead address (a host that says it has IPv6) must not use up the whole connect limit. Long enough for
# the second SYN, which the kernel sends after one second.
_ADDRESS_PATIENCE_S = 2.0

_Address = tuple[int, tuple[str, int] | tuple[str, int, int, int]]


class DialError(Exception):
    """No connection came about; the message is one line for a person."""


@dataclass(frozen=True, slots=True)
class Dialled:
    """A new connection, and what it took: names included in `connect_s`; `tls_s` None without TLS."""

    connection: Connection
    connect_s: float
    tls_s: float | None


def dial(hub: Hub, origin: Origin, options: TransportOptions) -> Dialled:
    """Open a connection to *origin*. Raises `DialError` for what the network or the server did.

    Names are resolved anew each time; addresses are tried in the resolver's order.
    """
    began = monotonic()
    host, port = options.connect_address() or (origin.host, origin.port)
    sock, has_stamps = _connect_any(hub, host, port)
    try:
        peer_host, peer_port = sock.getpeername()[:2]
        connected = monotonic()
        tls = None
        tls_s = None
        if origin.scheme == "https":
            tls = TlsChannel(make_ssl_context(options), origin.host)
            _handshake(hub, sock, tls)
            tls_s = monotonic() - connected
        connection = Connection(hub, sock, tls, join_address(peer_host, peer_port), has_stamps)
    except OSError as error:
        sock.close()
        raise DialError(f"cannot connect to {join_address(host, port)}: {_reason(error)}") from None
    except TlsError as error:
        sock.close()
        names = ""
        if isinstance(error, WrongNameError):
            names = _certificate_names(hub, host, port, make_nameless_context(options), origin.host)
        raise DialError(f"certificate is for {names}, not {origin.host}" if names else str(error)) from None
    except BaseException:
        sock.close()
        raise
    return Dialled(connection, connected - began, tls_s)


def _connect_any(hub: Hub, host: str, port: int) -> tuple[socket.socket, bool]:
    where = join_address(host, port)
    addresses = _resolve(host, port)
    failure = f"cannot connect to {where}: it has no address"
    for family, address in addresses:
        patience = gevent.Timeout(None if (family, address) == addresses[-1] else _ADDRESS_PATIENCE_S)
        try:
            with patience:
                return _connect(hub, family, address)
        except OSError as error:
            failure = f"cannot connect to {where}: {_reason(error)}"
        except gevent.Timeout as timeout:
            if timeout is not patience:
                raise
            failure = f"cannot connect to {where}: no answer from {address[0]}"
    raise DialError(failure)


def _resolve(host: str, port: int) -> list[_Address]:
    try:
        family = socket.AF_INET6 if ipaddress.ip_address(host).version == 6 else socket.AF_INET
    except ValueError:
        pass
    else:
        return [(family, (host, port))]
    try:
        # gevent's resolver: the hub goes on while the name is looked up.
        found = gevent.socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)
    except socket.gaierror as error:
        hint = " (the name server does not answer)" if error.errno == socket.EAI_AGAIN else ""
        raise DialError(f"name not found: {host}{hint}") from None
    except UnicodeError:
        raise DialError(f"name not found: {host} (not a host name)") from None
    # A resolver may name an address twice; one without IPv6 support may return another shape, of no use here.
    return list(dict.fromkeys((int(f), a) for f, _, _, _, a in found if isinstance(a[1], int)))


def _connect(
    hub: Hub, family: int, address: tuple[str, int] | tuple[str, int, int, int]
) -> tuple[socket.socket, bool]:
    sock = stamps.raw_socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        has_stamps = stamps.enable(sock)
        code = sock.connect_ex(address)
        if code == EINPROGRESS:
            _wait(hub, sock, _WRITE)
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))
    except BaseException:
        sock.close()
        raise
    return sock, has_stamps


def _certificate_names(hub: Hub, host: str, port: int, context: ssl.SSLContext, asked_for: str) -> str:
    """Connect once more, only to learn whom the certificate is for; empty if that fails.

    OpenSSL gives nothing of a certificate that it has refused.
    """
    try:
        sock, _ = _connect_any(hub, host, port)
        with sock:
            tls = TlsChannel(context, asked_for)
            _handshake(hub, sock, tls)
            return ", ".join(tls.names()[:3])
    except (DialError, OSError, TlsError):
        return ""


def _handshake(hub: Hub, sock: socket.socket, tls: TlsChannel) -> None:
    try:
        _shake_hands(hub, sock, tls)
    except OSError as error:
        raise TlsError(f"TLS handshake cut off by the server: {_reason(error)}") from None


def _shake_hands(hub: Hub, sock: socket.socket, tls: TlsChannel) -> None:
    received: bytes | None = None
    while True:
        try:
            done = tls.handshake(received)
        finally:
            # After a failure too: the alert tells the server why.
            _send_all(hub, sock, tls.output())
        if done:
            return
        _wait(hub, sock, _READ)
        try:
            received = sock.recv(READ_SIZE)
        except (BlockingIOError, InterruptedError):
            received = None


def _send_all(hub: Hub, sock: socket.socket, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[sock.send(rest) :]
        except (BlockingIOError, InterruptedError):
            _wait(hub, sock, _WRITE)


def _wait(hub: Hub, sock: socket.socket, event: int) -> None:
    watcher = hub.loop.io(sock.fileno(), event)
    try:
        hub.wait(watcher)
    finally:
        watcher.close()


def _reason(error: OSError) -> str:
    match error.errno:
        case 24 | 23:  # EMFILE, ENFILE
            return "too many open files: raise the limit (ulimit -n)"
        case 99:  # EADDRNOTAVAIL
            return "no free local port (or no such address family here)"
    return (error.strerror or str(error)).lower()

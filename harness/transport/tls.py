"""TLS without a socket: certificates, the shared context, and a channel that reads and writes memory.

With the bytes passed through memory, the socket underneath is read like any other, so HTTPS has the
kernel's arrival times too.
"""

from __future__ import annotations

import functools
import logging
import os
import ssl
from pathlib import Path
from typing import cast

import certifi

from harness.transport.options import TransportError, TransportOptions

log = logging.getLogger(__name__)

# A record holds at most 16 KiB of plain bytes, so one call never leaves part of it behind.
_RECORD = 16384

# OpenSSL's numbers (x509_vfy.h) of what people meet most.
_EXPIRED, _NOT_YET_VALID = 10, 9
_NO_ISSUER = frozenset({2, 18, 19, 20, 21})
_WRONG_NAME = frozenset({62, 64})


class TlsError(Exception):
    """TLS failed; the message is one line for a person. *refused*: the server did not want us."""

    def __init__(self, line: str, *, refused: bool = False) -> None:
        super().__init__(line)
        self.refused = refused


class WrongNameError(TlsError):
    """The certificate is good, but for another name."""


def make_ssl_context(options: TransportOptions) -> ssl.SSLContext:
    """Return the context for *options*: made once per process, then shared. Raises `TransportError`.

    Without `ca_file` the authorities are those of SSL_CERT_FILE and SSL_CERT_DIR if set; else the
    system's, and Mozilla's list for systems (slim containers) that have none.
    """
    environment = (os.environ.get("SSL_CERT_FILE", ""), os.environ.get("SSL_CERT_DIR", ""))
    return _make(options.ca_file, options.client_cert, options.insecure, environment)


def make_nameless_context(options: TransportOptions) -> ssl.SSLContext:
    """Return a context that verifies a certificate but not its name.

    It is for finding out that name, never for sending anything.
    """
    context = ssl.create_default_context(cafile=options.ca_file)
    if options.ca_file is None:
        context.load_verify_locations(certifi.where())
    context.check_hostname = False
    return context


@functools.cache
def _make(
    ca_file: str | None, client_cert: str | None, insecure: bool, environment: tuple[str, str]
) -> ssl.SSLContext:
    if ca_file is not None:
        _readable(ca_file, "--ca-file")
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except (ssl.SSLError, OSError):
        raise TransportError(f"--ca-file: {ca_file} holds no certificate in PEM form") from None
    if ca_file is None and not any(environment):
        context.load_verify_locations(certifi.where())
    context.set_alpn_protocols(["http/1.1"])
    if client_cert is not None:
        _load_client_cert(context, client_cert)
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        log.warning("certificates are NOT verified (--insecure): anyone on the way can read keys and prompts")
    return context


def _readable(path: str, option: str) -> None:
    try:
        Path(path).read_bytes()
    except OSError as error:
        raise TransportError(f"{option}: cannot read {path}: {(error.strerror or '').lower()}") from None


def _load_client_cert(context: ssl.SSLContext, client_cert: str) -> None:
    certificate, _, key = (
        client_cert.partition(",") if not Path(client_cert).exists() else (client_cert, "", "")
    )
    for path in filter(None, (certificate, key)):
        _readable(path, "--client-cert")

    def refuse() -> str:
        # Without this OpenSSL would ask for the pass phrase on the terminal.
        raise TransportError(
            f"--client-cert: the key in {key or certificate} is encrypted; give one that is not"
        )

    try:
        context.load_cert_chain(certificate, key or None, password=refuse)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            why = "key and certificate do not belong together"
        else:
            why = f"no certificate and key in PEM form in {client_cert} (two files: CERT,KEY)"
        raise TransportError(f"--client-cert: {why}") from None


class TlsChannel:
    """One TLS session between two memory buffers.

    `ended`: the peer said close_notify. The caller moves bytes: what it received goes into
    `decrypt` or `handshake`, what these leave in `output` goes out.
    """

    __slots__ = ("_host", "_incoming", "_object", "_outgoing", "ended")

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self._host = host
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self.ended = False

    def handshake(self, received: bytes | None) -> bool:
        """Take one step with what was *received* (`b""`: the peer closed; None: nothing yet).

        Return whether the handshake is done. Raises `TlsError`.
        """
        if received:
            self._incoming.write(received)
        elif received is not None:
            self._incoming.write_eof()
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLCertVerificationError as error:
            raise _certificate_error(error, self._host) from None
        except ssl.SSLError as error:
            raise TlsError(_handshake_line(error)) from None
        return True

    @property
    def has_output(self) -> bool:
        """Whether there are bytes for the peer."""
        return self._outgoing.pending > 0

    def output(self) -> bytes:
        """Return the bytes for the peer."""
        return self._outgoing.read()

    def encrypt(self, data: bytes) -> bytes:
        """Return *data* as records, after whatever else was waiting to go out."""
        if data:
            self._object.write(data)
        return self._outgoing.read()

    def decrypt(self, data: bytes) -> bytes:
        """Return the plain bytes of all records that *data* completes. Raises `TlsError`."""
        incoming = self._incoming
        read = self._object.read
        incoming.write(data)
        plain = b""
        parts: list[bytes] | None = None
        try:
            while incoming.pending:
                piece = read(_RECORD)
                if not piece:
                    self.ended = True
                    break
                if plain:
                    if parts is None:
                        parts = [plain]
                    parts.append(piece)
                else:
                    plain = piece
        except ssl.SSLWantReadError:
            pass  # the rest of a record is still under way
        except ssl.SSLError as error:
            raise _broken(error) from None
        return plain if parts is None else b"".join(parts)

    def names(self) -> list[str]:
        """Return the names in the peer's verified certificate."""
        certificate = self._object.getpeercert() or {}
        found = cast(tuple[tuple[str, str], ...], certificate.get("subjectAltName", ()))
        return [value for kind, value in found if kind in ("DNS", "IP Address")]


def _certificate_error(error: ssl.SSLCertVerificationError, host: str) -> TlsError:
    code = error.verify_code
    if code == _EXPIRED:
        return TlsError("certificate has expired")
    if code == _NOT_YET_VALID:
        return TlsError("certificate is not valid yet: is this machine's clock right?")
    if code in _NO_ISSUER:
        return TlsError("certificate not trusted (unknown issuer): pass --ca-file")
    if code in _WRONG_NAME:
        return WrongNameError(f"certificate is not for {host}")
    return TlsError(f"certificate not accepted: {error.verify_message}")


def _handshake_line(error: ssl.SSLError) -> str:
    match error.reason:
        case "WRONG_VERSION_NUMBER" | "HTTP_REQUEST" | "RECORD_LAYER_FAILURE":
            return "no TLS on that port: is this an http:// address?"
        case "UNEXPECTED_EOF_WHILE_READING":
            return "TLS handshake cut off by the server"
        case "SSLV3_ALERT_HANDSHAKE_FAILURE":
            return "TLS handshake refused by the server: does it ask for a certificate (--client-cert)?"
    return f"TLS handshake failed: {_reason(error)}"


def _broken(error: ssl.SSLError) -> TlsError:
    """Return what went wrong after our half of the handshake (with TLS 1.3 a server checks us after it)."""
    match error.reason:
        case "TLSV13_ALERT_CERTIFICATE_REQUIRED":
            return TlsError("the server asks for a certificate: pass --client-cert", refused=True)
        case "TLSV1_ALERT_UNKNOWN_CA" | "SSLV3_ALERT_BAD_CERTIFICATE" | "SSLV3_ALERT_CERTIFICATE_EXPIRED":
            return TlsError(f"the server refuses our --client-cert: {_reason(error)}", refused=True)
    return TlsError(f"TLS broke: {_reason(error)}")


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or str(error)).lower().replace("_", " ")

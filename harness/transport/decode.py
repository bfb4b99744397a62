"""Undoes a body compression that nobody asked for, piece by piece."""

from __future__ import annotations

import zlib
from typing import Protocol


class DecodeError(ValueError):
    """The body is not what its Content-Encoding says; the message is one line."""


class Decoder(Protocol):
    """Turns pieces of an encoded body into pieces of the plain one."""

    def decode(self, data: bytes) -> bytes:
        """Return what *data* adds to the plain body. Raises `DecodeError`."""


class _Gzip:
    """gzip, of any number of members."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(16 + zlib.MAX_WBITS)

    def decode(self, data: bytes) -> bytes:
        out = []
        while data:
            if self._inflate.eof:
                self._inflate = zlib.decompressobj(16 + zlib.MAX_WBITS)
            out.append(_inflated(self._inflate, data, "gzip"))
            data = self._inflate.unused_data
        return b"".join(out)


class _Deflate:
    """deflate: by the standard inside a zlib wrapper, by some servers without one."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj()
        self._begun = b""

    def decode(self, data: bytes) -> bytes:
        # The wrapper is two bytes, and what is not one fails only when both are there.
        if len(self._begun) < 2:
            self._begun += data
            if len(self._begun) < 2:
                return b""
            head = self._begun[0] << 8 | self._begun[1]
            if self._begun[0] & 0x0F != 8 or head % 31:
                self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
            data = self._begun
        return _inflated(self._inflate, data, "deflate")


class _Chain:
    """Several encodings, undone from the last that was applied to the first."""

    def __init__(self, decoders: list[Decoder]) -> None:
        self._decoders = decoders

    def decode(self, data: bytes) -> bytes:
        for decoder in self._decoders:
            data = decoder.decode(data)
        return data


def decoder_for(content_encoding: str) -> Decoder | None:
    """Return what undoes *content_encoding*, or None if the body is plain. Raises `DecodeError`."""
    decoders: list[Decoder] = []
    for name in content_encoding.lower().split(","):
        match name.strip():
            case "" | "identity":
                pass
            case "gzip" | "x-gzip":
                decoders.insert(0, _Gzip())
            case "deflate":
                decoders.insert(0, _Deflate())
            case other:
                raise DecodeError(f"body encoded with {other[:40]!r}, which was not asked for")
    if not decoders:
        return None
    return decoders[0] if len(decoders) == 1 else _Chain(decoders)


class _Inflate(Protocol):
    def decompress(self, data: bytes, /) -> bytes: ...


def _inflated(inflate: _Inflate, data: bytes, name: str) -> bytes:
    try:
        return inflate.decompress(data)
    except zlib.error as error:
        raise DecodeError(f"body is not {name}: {error}") from None

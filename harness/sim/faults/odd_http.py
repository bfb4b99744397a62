"""HTTP/1.1 as some servers speak it, and as every client must understand it."""

import zlib

from harness.sim.faults.registry import fault
from harness.sim.heads import STREAM_TYPE, head
from harness.sim.plan import EVENT, HEAD, LAST_BODY, MUTE, RAW, Plan
from harness.sim.script import Script


@fault("odd-chunks", "a healthy answer in chunks with extensions, several per event, and a trailer")
def odd_chunks(script: Script) -> Plan:
    headers = {"Content-Type": STREAM_TYPE, "Transfer-Encoding": "chunked", "Trailer": "X-Took"}
    yield 0.0, RAW, head(200, {**headers, **script.circumstances.own_headers})
    for due, kind, data in script.whole():
        if kind <= LAST_BODY:
            middle = len(data) // 2
            yield due, kind, _chunk(data[:middle]) + _chunk(data[middle:])
    yield 0.0, RAW, b"0;last=yes\r\nX-Took: 1\r\n\r\n"


def _chunk(data: bytes) -> bytes:
    return b'%04X;note="a; b"\r\n%b\r\n' % (len(data), data)


@fault("early-hints", "two interim answers (100 and 103) before a healthy one")
def early_hints(script: Script) -> Plan:
    yield (
        0.0,
        RAW,
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n",
    )
    yield from script.whole()


@fault("gzip", "a healthy answer compressed although nobody asked for it")
def gzip(script: Script) -> Plan:
    packer = zlib.compressobj(wbits=31)
    last_s = 0.0
    for due, kind, data in script.whole():
        if kind == HEAD:
            yield due, kind, b"Content-Encoding: gzip\r\n"
            yield due, MUTE, b""  # the player's comments would not be compressed
        elif kind <= LAST_BODY:
            last_s = due
            yield due, kind, packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH)
    # The end of the compressed stream belongs to no event.
    yield last_s, EVENT, packer.flush()

"""Bodies that end in ways HTTP forbids."""

from harness.sim.faults.registry import fault
from harness.sim.heads import STREAM_TYPE, head
from harness.sim.plan import CLOSE, RAW, Plan
from harness.sim.script import Script


@fault("incomplete-chunk", "half of the answer, then half a chunk and the connection closes", outcome="cut")
def incomplete_chunk(script: Script) -> Plan:
    yield from script.opening()
    yield from script.tokens(script.half)
    yield script.next_s, RAW, b"100\r\ndata: {"
    yield 0.0, CLOSE, b""


@fault(
    "no-last-chunk", "half of the answer, then the connection closes without the last chunk", outcome="cut"
)
def no_last_chunk(script: Script) -> Plan:
    yield from script.opening()
    yield from script.tokens(script.half)
    yield script.next_s, CLOSE, b""


@fault("bad-chunk-size", "half of the answer, then a chunk size that is no number", outcome="protocol_error")
def bad_chunk_size(script: Script) -> Plan:
    yield from script.opening()
    yield from script.tokens(script.half)
    yield script.next_s, RAW, b"many\r\ndata: {}\n\n\r\n"
    yield 0.0, CLOSE, b""


@fault("wrong-length", "a Content-Length that the body never reaches", outcome="cut")
def wrong_length(script: Script) -> Plan:
    headers = {"Content-Type": STREAM_TYPE, "Content-Length": "1000000", **script.circumstances.own_headers}
    yield 0.0, RAW, head(200, headers)
    yield from script.lifecycle()
    yield from script.tokens(script.half)
    yield script.next_s, CLOSE, b""

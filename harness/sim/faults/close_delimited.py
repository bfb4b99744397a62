"""Bodies without length and chunks: only the end of the connection ends them."""

from harness.sim.faults.registry import fault
from harness.sim.heads import STREAM_TYPE, head
from harness.sim.plan import CLOSE, RAW, Plan
from harness.sim.script import Script


def _head(script: Script) -> Plan:
    headers = {"Content-Type": STREAM_TYPE, "Connection": "close", **script.circumstances.own_headers}
    yield 0.0, RAW, head(200, headers)
    yield from script.lifecycle()


@fault("close-delimited", "a healthy answer whose body ends with the connection")
def close_delimited(script: Script) -> Plan:
    yield from _head(script)
    yield from script.tokens()
    yield from script.closing()
    yield 0.0, CLOSE, b""


@fault(
    "close-delimited-cut", "half of the answer, and the connection closes as if that were all", "truncated"
)
def close_delimited_cut(script: Script) -> Plan:
    yield from _head(script)
    yield from script.tokens(script.half)
    yield script.next_s, CLOSE, b""

"""Connections that end before the answer begins."""

from harness.sim.faults.registry import fault
from harness.sim.plan import CLOSE, RAW, RESET, Plan
from harness.sim.script import Script


@fault("no-response", "the connection closes before any header", outcome="no_response", before_stream=True)
def no_response(script: Script) -> Plan:
    yield 0.0, CLOSE, b""


@fault("reset-pre", "the connection is reset before any header", outcome="no_response", before_stream=True)
def reset_pre(script: Script) -> Plan:
    yield 0.0, RESET, b""


@fault("half-headers", "the connection closes in the middle of the headers", outcome="no_response",
       before_stream=True)  # fmt: skip
def half_headers(script: Script) -> Plan:
    yield 0.0, RAW, b"HTTP/1.1 200 OK\r\nContent-Type: text/eve"
    yield 0.0, CLOSE, b""


@fault("not-http", "bytes that are no HTTP", outcome="protocol_error", before_stream=True)
def not_http(script: Script) -> Plan:
    yield 0.0, RAW, b"220 ready\r\nsend mail, please\r\n\r\n"
    yield 0.0, CLOSE, b""

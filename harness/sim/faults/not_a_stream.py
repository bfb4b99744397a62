"""200 with something else: both official SDKs see an empty stream that ends well."""

from harness.sim.faults.registry import fault
from harness.sim.heads import answer
from harness.sim.plan import RAW, Plan
from harness.sim.script import Script
from harness.sim.vendor import http_error

_PAGE = b"<!doctype html><html><body><h1>Sign in</h1></body></html>"


@fault("not-a-stream", "200 with an error as application/json", outcome="not_a_stream", before_stream=True)
def not_a_stream(script: Script) -> Plan:
    at = script.circumstances
    body = http_error(at.profile.name, at.protocol, 500, at.request_id)
    yield 0.0, RAW, answer(200, at.own_headers, body)


@fault("html-200", "200 with a page of HTML", outcome="not_a_stream", before_stream=True)
def html_200(script: Script) -> Plan:
    yield 0.0, RAW, answer(200, script.circumstances.own_headers, _PAGE, "text/html; charset=utf-8")


@fault("wrong-type", "a healthy stream that says it is text/plain", outcome="not_a_stream")
def wrong_type(script: Script) -> Plan:
    answered = b"".join(data for _, _, data in script.whole())
    yield 0.0, RAW, answer(200, script.circumstances.own_headers, answered, "text/plain; charset=utf-8")

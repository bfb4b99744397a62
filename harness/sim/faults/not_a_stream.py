"""200 with a JSON error body: both official SDKs see an empty stream that ends well."""

from harness.sim.faults.registry import fault
from harness.sim.heads import answer
from harness.sim.plan import RAW, Plan
from harness.sim.script import Script
from harness.sim.vendor import http_error


@fault("not-a-stream", "200 with an error as application/json", outcome="not_a_stream", before_stream=True)
def not_a_stream(script: Script) -> Plan:
    at = script.circumstances
    body = http_error(at.profile.name, at.protocol, 500, at.request_id)
    yield 0.0, RAW, answer(200, at.own_headers, body)

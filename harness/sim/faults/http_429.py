"""The rate limit, with the wait that the gateway asks for in whole seconds."""

from harness.sim.faults.registry import fault
from harness.sim.plan import Plan
from harness.sim.script import Script


@fault("http-429", "429 with Retry-After: 1", outcome="http_error", before_stream=True)
def http_429(script: Script) -> Plan:
    yield from script.refuses(429, Retry_After="1")

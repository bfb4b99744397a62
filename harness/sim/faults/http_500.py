"""A server error before any stream."""

from harness.sim.faults.registry import fault
from harness.sim.plan import Plan
from harness.sim.script import Script


@fault("http-500", "500 in the gateway's error shape", outcome="http_error", before_stream=True)
def http_500(script: Script) -> Plan:
    yield from script.refuses(500)

"""The rate limit, with every form in which gateways say how long to wait."""

from email.utils import formatdate

from harness.sim.faults.registry import fault
from harness.sim.plan import Plan
from harness.sim.script import Script


@fault("http-429", "429 with Retry-After: 1", outcome="http_error", before_stream=True)
def http_429(script: Script) -> Plan:
    yield from script.refuses(429, Retry_After="1")


@fault("http-429-ms", "429 with Retry-After-Ms: 250, which beats its Retry-After: 5", outcome="http_error",
       before_stream=True)  # fmt: skip
def http_429_ms(script: Script) -> Plan:
    yield from script.refuses(429, Retry_After="5", Retry_After_Ms="250")


@fault("http-429-date", "429 with Retry-After as a date, two seconds ahead", outcome="http_error",
       before_stream=True)  # fmt: skip
def http_429_date(script: Script) -> Plan:
    yield from script.refuses(429, Retry_After=formatdate(script.circumstances.wall_s + 2.0, usegmt=True))


@fault("http-429-long", "429 with Retry-After: 121, longer than the OpenAI SDK waits", outcome="http_error",
       before_stream=True)  # fmt: skip
def http_429_long(script: Script) -> Plan:
    yield from script.refuses(429, Retry_After="121")


@fault("http-429-bare", "429 that does not say how long to wait", outcome="http_error", before_stream=True)
def http_429_bare(script: Script) -> Plan:
    yield from script.refuses(429)


@fault(
    "http-429-quota", "429 for a spent quota: no retry will help", outcome="http_error", before_stream=True
)
def http_429_quota(script: Script) -> Plan:
    kind = "billing_error" if script.circumstances.protocol == "messages" else "insufficient_quota"
    message = "You exceeded your current quota, please check your plan and billing details."
    yield from script.refuses(429, message, code="insufficient_quota", kind=kind, X_Should_Retry="false")

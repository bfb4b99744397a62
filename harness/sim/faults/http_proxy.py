"""What proxies in front of a gateway answer: HTML, nothing, another address."""

from harness.sim.faults.registry import fault
from harness.sim.heads import answer
from harness.sim.plan import RAW, Plan
from harness.sim.script import Script

_PAGE = b"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n</body>\r\n</html>\r\n"  # noqa: E501


@fault("http-502-html", "502 with a proxy's HTML page", outcome="http_error", before_stream=True)
def http_502_html(script: Script) -> Plan:
    yield 0.0, RAW, answer(502, script.circumstances.own_headers, _PAGE, "text/html")


@fault("http-524-empty", "524 with an empty body", outcome="http_error", before_stream=True)
def http_524_empty(script: Script) -> Plan:
    yield 0.0, RAW, answer(524, script.circumstances.own_headers, b"", "text/plain")


@fault("http-302", "a redirect", outcome="http_error", before_stream=True)
def http_302(script: Script) -> Plan:
    headers = {"Location": "/elsewhere", **script.circumstances.own_headers}
    yield 0.0, RAW, answer(302, headers, b"", "text/plain")

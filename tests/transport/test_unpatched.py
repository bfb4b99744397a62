"""The transport needs no monkey patching: commands other than a load test run without Locust."""

import subprocess
import sys

PROGRAM = """
import json, sys
import gevent
from harness.transport import HarnessTransport, TransportOptions

class Session:
    urgency, clock, reason, status, body, ticks = 0, "user", None, None, b"", 0
    ended = property(lambda self: self.reason is not None)
    def connected(self, t, **how): pass
    def sent(self, t): pass
    def headers(self, status, headers, t): self.status = status
    def feed(self, data, t, earliest=None): self.body += data
    def end(self, reason, t, detail=""): self.reason = reason
    def deadline(self): return None
    def violation(self, rule): pass
    def lag(self, lag_s): pass

def tick():
    while True:
        gevent.sleep(0.01)
        session.ticks += 1

session = Session()
gevent.spawn(tick)
transport = HarnessTransport(TransportOptions(ca_file=sys.argv[2]))
transport.stream("POST", sys.argv[1], [], b"{}", session)
print(json.dumps([session.reason, session.status, session.clock, session.body.decode(), session.ticks > 5]))
print(json.dumps(["locust" in sys.modules, gevent.monkey.is_module_patched("socket")]))
"""
CHUNKED = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def test_https_by_name_in_an_unpatched_process(serve, authority):
    """Other greenlets go on meanwhile, through name, connection, handshake and answer."""
    tls = {"cert": str(authority / "good.pem"), "key": str(authority / "good.key")}
    script = ["read", ["send", CHUNKED + "2\r\nok\r\n"], ["sleep", 0.2], ["send", "0\r\n\r\n"], "linger"]
    served = serve(script, tls=tls, name="localhost")

    done = subprocess.run([sys.executable, "-c", PROGRAM, served.url, authority / "ca.pem"],
                          capture_output=True, text=True, timeout=20, check=False)  # fmt: skip

    assert done.stdout.splitlines() == ['["eof", 200, "kernel", "ok", true]', "[false, false]"], done.stderr

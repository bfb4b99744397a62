"""A scripted server, a session that only records, and a test certificate authority."""

import itertools
import json
import subprocess
import sys
from pathlib import Path
from time import monotonic

import gevent
import pytest
from gevent.event import Event

from harness.transport import HarnessTransport, TransportOptions


class Recorder:
    """A session that writes down every call.

    Its only limit is `limit_s`, from any progress unless *from_start*; it closes unless *only_warn*.
    *on_feed* is called with the recorder after each feed, *on_connected* after that.
    """

    def __init__(self, limit_s=None, *, from_start=False, only_warn=False, on_feed=None, on_connected=None):
        self.from_start, self.only_warn = from_start, only_warn
        self.on_feed, self.on_connected = on_feed, on_connected
        self.clock = "user"
        self.urgency = 0
        self.waiting = False
        self.limit_s = limit_s
        self.due = None if limit_s is None else monotonic() + limit_s
        self.expired = []
        self.calls = []
        self.connection = None
        self.t0 = None
        self.status = None
        self.response_headers = {}
        self.headers_at = None
        self.feeds = []
        self.reason = self.detail = None
        self.ended_at = None
        self.violations = []
        self.lags = []

    @property
    def ended(self):
        return self.reason is not None

    @property
    def body(self):
        return b"".join(data for data, _, _ in self.feeds)

    def _moved(self, t):
        if self.limit_s is not None and not self.from_start:
            self.due = t + self.limit_s

    def connected(self, t, *, connect_s, tls_s, peer, reused):
        self.calls.append("connected")
        self.connection = {"connect_s": connect_s, "tls_s": tls_s, "peer": peer, "reused": reused}
        if self.on_connected is not None:
            self.on_connected(self)

    def sent(self, t):
        self.calls.append("sent")
        self.t0 = t
        self._moved(t)

    def headers(self, status, headers, t):
        self.calls.append("headers")
        self.status, self.response_headers, self.headers_at = status, headers, t
        self._moved(t)

    def feed(self, data, t, earliest=None):
        assert self.reason is None
        self.calls.append("feed")
        self.feeds.append((data, t, earliest))
        self._moved(t)
        if self.on_feed is not None:
            self.on_feed(self)

    def end(self, reason, t, detail=""):
        assert self.reason is None, "end was called twice"
        self.calls.append("end")
        self.reason, self.ended_at, self.detail = reason, t, detail

    def deadline(self):
        return self.due

    def expire(self, now):
        self.expired.append(now)
        if self.only_warn:
            self.due = None
        return not self.only_warn

    def violation(self, rule):
        self.violations.append(rule)

    def lag(self, lag_s):
        self.lags.append(lag_s)


class Served:
    """One listening port of the scripted server and what it has reported."""

    def __init__(self, number, host, scheme):
        self.number, self.host, self.scheme = number, host, scheme
        self.port = None
        self.events = []
        self.changed = Event()

    @property
    def url(self):
        return f"{self.scheme}://{self.host}:{self.port}/v1/x"

    def wait_for(self, event, count=1):
        """Return the first *count* reports of *event*."""
        with gevent.Timeout(10):
            while len(found := [e for e in self.events if e.get("event") == event]) < count:
                self.changed.clear()
                self.changed.wait()
        return found[:count]


@pytest.fixture(scope="session")
def _peer():
    program = Path(__file__).with_name("peer.py")
    process = subprocess.Popen[str](
        [sys.executable, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert process.stdin is not None
    assert process.stdout is not None
    orders, reports = process.stdin, process.stdout
    served: dict[int, Served] = {}

    def listen_to_it():
        for line in reports:
            event = json.loads(line)
            one = served[event["id"]]
            one.port = event.get("port", one.port)
            one.events.append(event)
            one.changed.set()

    reader = gevent.spawn(listen_to_it)
    yield orders, served
    process.kill()
    process.wait()
    reader.join()
    orders.close()
    reports.close()


@pytest.fixture
def serve(_peer):
    """Return a function that opens a port where the n-th connection plays the n-th script."""
    orders, served = _peer
    numbers = itertools.count(len(served))

    def open_port(*scripts, family="inet", tls=None, name=None):
        host = name or {"inet": "127.0.0.1", "inet6": "[::1]"}[family]
        number = next(numbers)
        one = served[number] = Served(number, host, "https" if tls else "http")
        order = {"id": number, "scripts": scripts, "family": family, "tls": tls}
        orders.write(json.dumps(order) + "\n")
        orders.flush()
        with gevent.Timeout(10):
            while one.port is None:
                one.changed.clear()
                one.changed.wait()
        return one

    return open_port


@pytest.fixture
def transport():
    transport = HarnessTransport()
    yield transport
    transport.close()


@pytest.fixture
def attempt(transport):
    """Return a function that makes one attempt and returns its recorder; nothing may hang."""

    def run(url, *, over=None, recorder=None, method="POST", headers=(), body=b"{}", limit_s=None):
        recorder = recorder or Recorder(limit_s)
        with gevent.Timeout(15):
            (over or transport).stream(method, url, list(headers), body, recorder)
        return recorder

    return run


@pytest.fixture
def recorder():
    """Return the class of the recording session."""
    return Recorder


@pytest.fixture
def over():
    """Return a function that makes a transport with options."""
    made = []

    def make(**options):
        made.append(HarnessTransport(TransportOptions(**options)))
        return made[-1]

    yield make
    for transport in made:
        transport.close()


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    """A folder with a test CA (`ca.pem`), certificates it issued, and one that it did not."""
    folder = tmp_path_factory.mktemp("authority")

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    def issue(name, names, days=30):
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")  # fmt: skip
        (folder / f"{name}.ext").write_text(f"subjectAltName={names}\n")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                "-days", str(days), "-extfile", f"{name}.ext", "-out", f"{name}.pem")  # fmt: skip

    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
            "ca.key", "-out", "ca.pem", "-days", "30", "-subj", "/CN=Test authority")  # fmt: skip
    issue("good", "DNS:localhost,IP:127.0.0.1")
    issue("other", "DNS:other.example")
    issue("expired", "DNS:localhost,IP:127.0.0.1", days=-1)
    issue("client", "DNS:client.example")
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
            "stranger.key", "-out", "stranger.pem", "-days", "30", "-subj", "/CN=localhost",
            "-addext", "subjectAltName=DNS:localhost")  # fmt: skip
    return folder

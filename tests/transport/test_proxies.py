"""Which requests a proxy takes, and that they are measured, limited and ended like the others."""

import gevent
import httpx
import pytest

from harness.transport import HarnessTransport
from harness.transport.proxies import ProxyRules

HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
CHUNKED = HEAD + "Transfer-Encoding: chunked\r\n\r\n"
OK = HEAD + "Content-Length: 2\r\n\r\nok"
VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")

ENVIRONMENTS = [
    {},
    {"http_proxy": "http://p:1"},
    {"http_proxy": "p:1", "https_proxy": "https://q:2"},
    {"all_proxy": "http://p:1"},
    {"all_proxy": "http://p:1", "https_proxy": "http://q:2", "no_proxy": "*"},
    *({"all_proxy": "http://p:1", "no_proxy": no} for no in (
        "example.com", ".example.com", "example.com:8080", "localhost", "127.0.0.1, ::1", "10.0.0.0/8",
        "http://example.com", "https://example.com:443", "other.org,example.com", "com", "EXAMPLE.com", "",
    )),
]  # fmt: skip
URLS = [
    "http://example.com/", "https://example.com/", "http://www.example.com/", "http://example.com:8080/",
    "http://wwwexample.com/", "http://localhost/", "http://a.localhost:1/", "http://127.0.0.1:9/", "http://[::1]/",
    "http://10.0.0.0/", "http://10.1.2.3/",
]  # fmt: skip


@pytest.fixture
def environment(monkeypatch):
    """Return a function that sets the proxy variables, and nothing else of the kind."""

    def put(values):
        for name in VARIABLES:
            monkeypatch.delenv(name, raising=False)
            monkeypatch.delenv(name.upper(), raising=False)
        for name, value in values.items():
            monkeypatch.setenv(name, value)

    return put


@pytest.mark.parametrize("values", ENVIRONMENTS, ids=str)
def test_the_rules_are_those_of_httpx(values, environment):
    environment(values)
    rules = ProxyRules()

    with httpx.Client() as client:
        for url in map(httpx.URL, URLS):
            pool = client._transport_for_url(url)._pool  # type: ignore[attr-defined]
            proxy = rules.proxy_for(url)

            assert hasattr(pool, "_proxy_url") == (proxy is not None), url
            if proxy is not None:
                expected = httpx.URL(proxy)
                assert (pool._proxy_url.host.decode(), pool._proxy_url.port) == (expected.host, expected.port)


@pytest.fixture
def proxied(environment, serve):
    """Return a function that starts a scripted proxy and returns it with a transport that goes through it."""
    made = []

    def make(*scripts, credentials=""):
        proxy = serve(*scripts)
        address = f"http://{credentials}127.0.0.1:{proxy.port}"
        environment({"http_proxy": address, "https_proxy": address})
        made.append(HarnessTransport())
        return proxy, made[-1]

    yield make
    for transport in made:
        transport.close()


def test_a_request_goes_through_the_proxy_with_the_users_clock(proxied, attempt):
    proxy, transport = proxied(["read", ["send", CHUNKED], ["drip", "data: %d\n\n", 3, 0.05],
                                ["send", "0\r\n\r\n"], "read", ["send", OK], "linger"])  # fmt: skip

    record = attempt("http://api.example/v1", over=transport, headers=[("X-A", "b")])
    again = attempt("http://api.example/v1", over=transport)

    assert (record.reason, record.body, record.clock) == ("eof", b"data: 0\n\ndata: 1\n\ndata: 2\n\n", "user")
    assert record.calls == ["connected", "sent", "headers", "feed", "feed", "feed", "end"]
    assert record.connection["peer"] == f"127.0.0.1:{proxy.port}"
    assert record.connection["connect_s"] > 0
    assert record.t0 < record.headers_at < record.feeds[0][1]
    assert again.connection["reused"] is True
    head = proxy.wait_for("request")[0]["head"]
    assert head.startswith("POST http://api.example/v1 HTTP/1.1\r\n")
    assert "accept-encoding: identity" in head.lower()


def test_https_goes_through_a_tunnel_and_the_certificate_is_verified(proxied, attempt):
    proxy, transport = proxied(["read", ["send", "HTTP/1.1 200 Connected\r\n\r\n"], "close"])

    record = attempt("https://api.example/v1", over=transport)

    assert proxy.wait_for("request")[0]["head"].startswith("CONNECT api.example:443 HTTP/1.1\r\n")
    assert record.reason == "connect_error"


def test_a_proxy_that_refuses_is_one_line_without_its_password(proxied, attempt):
    proxy, transport = proxied(
        ["read", ["send", "HTTP/1.1 407 Who Are You\r\n\r\n"], "close"], credentials="me:secret@"
    )

    record = attempt("https://api.example/v1", over=transport)

    assert (record.reason, record.detail) == (
        "connect_error", f"through proxy http://127.0.0.1:{proxy.port}: 407 Who Are You",
    )  # fmt: skip


def test_a_proxy_that_is_not_there_is_one_line(environment, attempt, over):
    environment({"http_proxy": "http://127.0.0.1:9"})

    record = attempt("http://api.example/v1", over=over())

    assert record.reason == "connect_error"
    assert record.detail == "through proxy http://127.0.0.1:9: [Errno 111] Connection refused"


@pytest.mark.parametrize(("script", "reason"), [
    (["read", "close"], "no_response"),
    (["read", ["send", "rubbish\r\n\r\n"], "close"], "bad_http"),
    (["read", ["send", CHUNKED + "5\r\nhello\r\n"], "close"], "cut"),
    (["read", ["send", CHUNKED + "5\r\nhello\r\n"], ["sleep", 0.05], "reset"], "cut"),
    (["read", ["send", CHUNKED + "5\r\nhello\r\nxyz\r\n"], "linger"], "bad_http"),
])  # fmt: skip
def test_endings(script, reason, proxied, attempt):
    assert attempt("http://api.example/", over=proxied(script)[1]).reason == reason


@pytest.mark.parametrize(
    "script", [["read", "linger"], ["read", ["send", CHUNKED + "5\r\nhello\r\n"], "linger"]]
)
def test_limits_are_enforced(script, proxied, attempt):
    proxy, transport = proxied(script)

    record = attempt("http://api.example/", over=transport, limit_s=0.2)

    assert (record.reason, len(record.expired)) == ("closed", 1)
    proxy.wait_for("gone")


def test_abort_closes_at_once(proxied, attempt):
    proxy, transport = proxied(["read", ["send", CHUNKED + "5\r\nhello\r\n"], "linger"])
    gevent.spawn_later(0.1, transport.abort)

    assert attempt("http://api.example/", over=transport).reason == "abandoned"
    proxy.wait_for("gone")


def test_a_killed_greenlet_closes_its_connection_and_dies(proxied, attempt, recorder):
    proxy, transport = proxied(["read", "linger"])
    record = recorder()
    user = gevent.spawn(attempt, "http://api.example/", over=transport, recorder=record)
    proxy.wait_for("request")

    user.kill()

    assert (type(user.value), record.reason) == (gevent.GreenletExit, "aborted")
    proxy.wait_for("gone")


def test_an_unusable_proxy_is_one_line(environment, attempt, over):
    environment({"http_proxy": "ftp://me:secret@p:1"})

    record = attempt("http://api.example/v1", over=over())

    assert record.reason == "connect_error"
    assert record.detail == "cannot use the proxy ftp://p:1: http://, https:// or socks5:// expected"


def test_connect_to_goes_without_a_proxy(environment, serve, attempt, over):
    environment({"http_proxy": "http://127.0.0.1:9"})
    served = serve(["read", ["send", OK], "linger"])

    record = attempt("http://api.example/", over=over(connect_to=f"127.0.0.1:{served.port}"))

    assert record.reason == "eof"


def test_a_login_goes_through_the_proxy_too(proxied):
    proxy, transport = proxied(["read", ["send", OK], "linger"])

    with httpx.Client(transport=transport) as client:
        assert client.get("http://api.example/login").content == b"ok"

    assert proxy.wait_for("request")[0]["head"].startswith("GET http://api.example/login HTTP/1.1\r\n")

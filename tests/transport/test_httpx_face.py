"""`httpx.Client(transport=…)`: measured with a session, an ordinary client without."""

import gzip

import gevent
import httpx
import pytest

from harness.transport import HarnessTransport

HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
CHUNKED = HEAD + "Transfer-Encoding: chunked\r\n\r\n"
OK = HEAD + "Content-Length: 2\r\n\r\nok"


@pytest.fixture
def client():
    with gevent.Timeout(15), httpx.Client(transport=HarnessTransport(), timeout=5) as client:
        yield client


def test_with_a_session_everything_goes_there(serve, client, recorder):
    served, session = (
        serve(["read", ["send", HEAD + "X-Id: 7\r\nContent-Length: 2\r\n\r\nok"], "linger"]),
        recorder(),
    )

    response = client.post(served.url, json={"a": 1}, extensions={"session": session})

    assert (response.status_code, response.headers["x-id"], response.content) == (200, "7", b"")
    assert session.calls == ["connected", "sent", "headers", "feed", "end"]
    assert (session.body, session.reason) == (b"ok", "eof")


def test_with_a_session_a_compressed_body_is_decoded_once(serve, client, recorder):
    body = gzip.compress(b"ok").decode("latin-1")
    served = serve(
        [
            "read",
            ["send", HEAD + f"Content-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n{body}"],
            "linger",
        ]
    )
    session = recorder()

    response = client.post(served.url, extensions={"session": session})

    assert (response.content, session.body) == (b"", b"ok")


def test_with_a_session_no_answer_is_an_exception_of_httpx(client, recorder):
    session = recorder()

    with pytest.raises(httpx.TransportError, match="connection refused"):
        client.get("http://127.0.0.1:9/", extensions={"session": session})

    assert session.reason == "connect_error"


def test_without_a_session_it_is_an_ordinary_answer(serve, client):
    served = serve(["read", ["send", "HTTP/1.1 201 x\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n"],
                    ["send", "Content-Length: 8\r\n\r\n"],
                    ["send", '{"k": 1}'], "read", ["send", OK], "linger"])  # fmt: skip

    response = client.post(served.url, json={"user": "u"})
    client.get(served.url)

    assert (response.status_code, response.json()) == (201, {"k": 1})
    first, second = served.wait_for("request", 2)
    assert first["length"] == len('{"user":"u"}')
    assert "Cookie: a=1; b=2" in second["head"], "both cookies, and the same connection"


def test_a_compressed_answer_is_decoded_by_httpx(serve, client):
    body = gzip.compress(b"plain").decode("latin-1")
    served = serve(
        [
            "read",
            ["send", HEAD + f"Content-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n{body}"],
            "linger",
        ]
    )

    assert client.get(served.url).content == b"plain"


def test_the_body_streams(serve, client):
    served = serve(
        ["read", ["send", CHUNKED + "1\r\na\r\n"], ["sleep", 0.1], ["send", "1\r\nb\r\n0\r\n\r\n"], "linger"]
    )

    with client.stream("GET", served.url) as response:
        assert list(response.iter_raw()) == [b"a", b"b"]


def test_leaving_a_streamed_answer_closes_its_connection(serve, client):
    served = serve(["read", ["send", CHUNKED + "1\r\na\r\n"], "linger"])

    with client.stream("GET", served.url) as response:
        next(response.iter_raw())

    served.wait_for("gone")


@pytest.mark.parametrize(("script", "error"), [
    (["read", "close"], httpx.RemoteProtocolError),
    (["read", ["send", "rubbish\r\n"], "linger"], httpx.RemoteProtocolError),
    (["read", ["send", HEAD + "Content-Length: 9\r\n\r\nok"], "close"], httpx.RemoteProtocolError),
    (["read", "linger"], httpx.ReadTimeout),
    (["read", ["send", CHUNKED + "1\r\na\r\n"], "linger"], httpx.ReadTimeout),
])  # fmt: skip
def test_failures_are_the_exceptions_of_httpx(script, error, serve, client):
    with pytest.raises(error):
        client.get(serve(script).url, timeout=0.2)


def test_a_refused_connection_is_a_connect_error(client):
    with pytest.raises(httpx.ConnectError, match=r"cannot connect to 127\.0\.0\.1:9: connection refused"):
        client.get("http://127.0.0.1:9/")


def test_a_connection_that_takes_too_long_is_a_connect_timeout(client, monkeypatch):
    monkeypatch.setattr("gevent.socket.getaddrinfo", lambda *_: gevent.sleep(5))

    with pytest.raises(httpx.ConnectTimeout):
        client.get("http://slow.example/", timeout=0.1)


def test_a_killed_caller_closes_its_connection(serve, client):
    served = serve(["read", "linger"])
    user = gevent.spawn(client.get, served.url, timeout=None)
    served.wait_for("request")

    user.kill()

    served.wait_for("gone")

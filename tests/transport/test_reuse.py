"""Which connections serve a second request, and what is told of those that do."""

import gevent
import pytest

HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
CHUNKED = HEAD + "Transfer-Encoding: chunked\r\n\r\n"
OK = HEAD + "Content-Length: 2\r\n\r\nok"


def test_a_cleanly_ended_exchange_leaves_its_connection_for_the_next(serve, attempt):
    served = serve(["read", ["send", CHUNKED + "2\r\nok\r\n0\r\n\r\n"], "read", ["send", OK], "linger"])

    first, second = attempt(served.url), attempt(served.url)

    assert first.connection["reused"] is False
    assert first.connection["connect_s"] > 0
    assert first.connection["tls_s"] is None
    assert second.connection == {
        "connect_s": None, "tls_s": None, "peer": f"127.0.0.1:{served.port}", "reused": True,
    }  # fmt: skip
    assert second.body == b"ok"


# An answer after which the connection cannot be used again.
NOT_KEPT = {
    "Connection: close": HEAD + "Connection: close\r\nContent-Length: 2\r\n\r\nok",
    "HTTP/1.0": "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "bytes after the end": OK + "stray",
    "a second answer": OK + OK,
    "bad HTTP": CHUNKED + "xyz\r\n",
}


@pytest.mark.parametrize("name", NOT_KEPT)
def test_a_connection_is_not_used_again_after(name, serve, attempt):
    served = serve(["read", ["send", NOT_KEPT[name]], "linger"], ["read", ["send", OK], "linger"])

    attempt(served.url)
    second = attempt(served.url)

    assert (second.connection["reused"], second.body) == (False, b"ok")
    assert served.wait_for("gone"), "the old connection is closed, not leaked"


def test_one_request_per_connection_if_asked_for(serve, attempt, over):
    served = serve(["read", ["send", OK], "linger"])
    per_request = over(per_request=True)

    attempt(served.url, over=per_request)
    second = attempt(served.url, over=per_request)

    assert second.connection["reused"] is False
    served.wait_for("gone", 2)


@pytest.mark.parametrize("after", [["close"], ["reset"], [["send", "HTTP/1.1 408 Timeout\r\n\r\n"], "close"]])
def test_an_idle_connection_that_has_ended_is_replaced_silently(after, serve, attempt):
    served = serve(["read", ["send", OK], ["sleep", 0.02], *after], ["read", ["send", OK], "linger"])

    attempt(served.url)
    gevent.sleep(0.1)
    second = attempt(served.url)

    assert (second.reason, second.connection["reused"]) == ("eof", False)


def test_a_reused_connection_that_closes_after_the_request_is_no_response(serve, attempt):
    """The server may have worked, and billed: it is not tried again behind the user's back."""
    served = serve(["read", ["send", OK], "read", "close"], ["read", ["send", OK], "linger"])

    attempt(served.url)
    second = attempt(served.url)

    assert (second.reason, second.connection["reused"]) == ("no_response", True)
    assert len(served.wait_for("accepted")) == 1


def test_two_requests_at_once_have_a_connection_each(serve, attempt, recorder):
    served = serve(["read", ["sleep", 0.05], ["send", OK], "linger"])
    records = [recorder(), recorder()]

    gevent.joinall([gevent.spawn(attempt, served.url, recorder=r) for r in records], raise_error=True)

    assert [r.connection["reused"] for r in records] == [False, False]
    served.wait_for("accepted", 2)


def test_connections_are_not_shared_between_origins(serve, attempt):
    one, other = (serve(["read", ["send", OK], "linger"]) for _ in range(2))

    attempt(one.url)
    record = attempt(other.url)

    assert record.connection["reused"] is False


def test_connect_to_dials_elsewhere_and_keeps_the_name(serve, attempt, over):
    served = serve(["read", ["send", OK], "linger"])

    record = attempt("http://api.example/v1/x", over=over(connect_to=f"127.0.0.1:{served.port}"))

    assert (record.reason, record.connection["peer"]) == ("eof", f"127.0.0.1:{served.port}")
    assert "\r\nHost: api.example\r\n" in served.wait_for("request")[0]["head"]


def test_closing_the_transport_closes_its_idle_connections(serve, attempt, over):
    served = serve(["read", ["send", OK], "linger"])
    transport = over()
    attempt(served.url, over=transport)

    transport.close()

    served.wait_for("gone")


def test_names_are_resolved_for_each_new_connection(serve, attempt, over, monkeypatch):
    served = serve(["read", ["send", OK], "linger"])
    asked = []

    def resolve(host, port, *_):
        asked.append(host)
        return [(2, 1, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr("gevent.socket.getaddrinfo", resolve)
    fresh = over(per_request=True)
    for _ in range(2):
        attempt(f"http://pod.example:{served.port}/", over=fresh)

    assert asked == ["pod.example", "pod.example"]

"""HTTP/1.1 as servers really speak it: every answer ends in the right reason, never in a hang."""

import gzip
import zlib

import pytest

HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
CHUNKED = HEAD + "Transfer-Encoding: chunked\r\n\r\n"


def latin(data: bytes) -> str:
    return data.decode("latin-1")


def chunk(data: bytes) -> str:
    return f"{len(data):x}\r\n{latin(data)}\r\n"


# What the server sends (then it closes); the reason, the body, and a word of the detail.
ANSWERS = {
    "chunked": (CHUNKED + chunk(b"data: 1\n\n") + chunk(b"data: 2\n\n") + "0\r\n\r\n",
                "eof", b"data: 1\n\ndata: 2\n\n", ""),
    "chunk extensions": (CHUNKED + '5;a=b;c="d;e"\r\nhello\r\n0;last\r\n\r\n', "eof", b"hello", ""),
    "trailers": (CHUNKED + "5\r\nhello\r\n0\r\nX-Cost: 3\r\nX-Time: 4\r\n\r\n", "eof", b"hello", ""),
    "content-length": (HEAD + "Content-Length: 5\r\n\r\nhello", "eof", b"hello", ""),
    "content-length zero": (HEAD + "Content-Length: 0\r\n\r\n", "eof", b"", ""),
    "until close": (HEAD + "\r\nhello", "eof", b"hello", ""),
    "HTTP/1.0 until close": ("HTTP/1.0 200 OK\r\n\r\nhello", "eof", b"hello", ""),
    "no content": ("HTTP/1.1 204 No Content\r\n\r\n", "eof", b"", ""),
    "early hints first": ("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + CHUNKED + "1\r\na\r\n0\r\n\r\n",
                          "eof", b"a", ""),
    "continue twice": ("HTTP/1.1 100 Continue\r\n\r\n" * 2 + HEAD + "Content-Length: 2\r\n\r\nok",
                       "eof", b"ok", ""),
    "short body": (HEAD + "Content-Length: 9\r\n\r\nhello", "cut", b"hello", "closed inside the body"),
    "chunk broken off": (CHUNKED + "9\r\nhello", "cut", b"hello", "closed inside the body"),
    "no last chunk": (CHUNKED + chunk(b"hello"), "cut", b"hello", "closed inside the body"),
    "trailers broken off": (CHUNKED + "5\r\nhello\r\n0\r\nX-Co", "cut", b"hello", "closed inside the body"),
    "nothing": ("", "no_response", b"", "closed before an answer"),
    "half a status line": ("HTTP/1.1 20", "no_response", b"", "closed before an answer"),
    "half the headers": (HEAD + "X-More", "no_response", b"", "closed before an answer"),
    "only an interim answer": ("HTTP/1.1 100 Continue\r\n\r\n", "no_response", b"", "before an answer"),
    "garbage": ("SSH-2.0-OpenSSH_9.6\r\n", "bad_http", b"", "not HTTP/1.1"),
    "HTTP/2": ("\0\0\x12\x04\0\0\0\0\0\0\x03\0\0\0\x80", "bad_http", b"", "not HTTP/1.1"),
    "a TLS alert": ("\x15\x03\x01\0\x02\x02\x16", "bad_http", b"", "https://"),
    "a bad header": ("HTTP/1.1 200 OK\r\nBad Header\r\n\r\n", "bad_http", b"", "broken HTTP headers"),
    "a bad chunk size": (CHUNKED + "5\r\nhello\r\nxyz\r\n", "bad_http", b"hello", "broken HTTP body"),
    "length and chunks": (HEAD + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                          "bad_http", b"", "broken HTTP headers"),
    "another protocol": ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nhi",
                         "bad_http", b"", "switched protocols"),
}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_ends_in_the_right_reason(name, serve, attempt):
    sent, reason, body, word = ANSWERS[name]

    record = attempt(serve(["read", ["send", sent], "close"]).url)

    assert (reason, body) == (record.reason, record.body)
    assert word in record.detail


@pytest.mark.parametrize(
    "name", ["chunked", "trailers", "early hints first", "short body", "a bad chunk size"]
)
def test_an_answer_byte_by_byte_ends_the_same(name, serve, attempt):
    sent, reason, body, _ = ANSWERS[name]
    steps = [step for byte in sent for step in (["send", byte], ["sleep", 0.0002])]

    record = attempt(serve(["read", *steps, "close"]).url)

    assert (reason, body) == (record.reason, record.body)


@pytest.mark.parametrize(("sent", "reason"), [
    (CHUNKED + chunk(b"hello"), "cut"),
    (HEAD + "\r\nhello", "cut"),  # a reset is no end, even where the end of the connection would be one
    ("", "no_response"),
])  # fmt: skip
def test_a_reset_is_told_from_an_end(sent, reason, serve, attempt):
    steps = [["send", sent], ["sleep", 0.05]] if sent else []

    record = attempt(serve(["read", *steps, "reset"]).url)

    assert (reason, "connection reset by peer") == (record.reason, record.detail)


def test_the_request_is_what_was_asked_for(serve, attempt):
    served = serve(["read", ["send", HEAD + "Content-Length: 0\r\n\r\n"], "linger"])

    attempt(served.url + "?a=b%20c", headers=[("X-One", "1"), ("Authorization", "Bearer k")], body=b"12345")

    head = served.wait_for("request")[0]["head"].split("\r\n")
    assert head == [
        "POST /v1/x?a=b%20c HTTP/1.1", f"Host: 127.0.0.1:{served.port}", "X-One: 1",
        "Authorization: Bearer k", "Accept-Encoding: identity", "Content-Length: 5",
    ]  # fmt: skip


def test_headers_come_first_with_the_time_of_their_read(serve, attempt):
    served = serve(["read", ["send", HEAD + "X-Two: a\r\nX-two: b\r\nContent-Length: 2\r\n\r\nok"], "linger"])

    record = attempt(served.url)

    assert record.calls == ["connected", "sent", "headers", "feed", "end"]
    assert (record.headers_at, record.ended_at) == (record.feeds[0][1], record.feeds[0][1])
    assert record.response_headers == {
        "content-type": "text/event-stream", "x-two": "a, b", "content-length": "2",
    }  # fmt: skip


def test_all_chunks_of_one_read_are_one_feed(serve, attempt):
    sent = CHUNKED + "".join(chunk(b"data: %d\n\n" % n) for n in range(50)) + "0\r\n\r\n"

    record = attempt(serve(["read", ["send", sent], "linger"]).url)

    assert len(record.feeds) == 1


def test_redirects_are_not_followed(serve, attempt):
    served = serve(
        ["read", ["send", "HTTP/1.1 307 x\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n"], "linger"]
    )

    record = attempt(served.url)

    assert (record.status, record.reason) == (307, "eof")


def test_headers_without_end_are_refused_at_64_kib(serve, attempt):
    served = serve(
        ["read", ["send", "HTTP/1.1 200 OK\r\n"], ["blob", "X-Filler: " + "x" * 990 + "\r\n", 100], "linger"]
    )

    record = attempt(served.url)

    assert (record.reason, record.detail) == ("bad_http", "response headers larger than 64 KiB")


def test_one_header_line_without_end_is_refused_too(serve, attempt):
    served = serve(["read", ["send", "HTTP/1.1 200 OK\r\nX-Filler: "], ["blob", "x" * 1000, 100], "linger"])

    record = attempt(served.url)

    assert (record.reason, record.detail) == ("bad_http", "response headers larger than 64 KiB")


def test_trailers_without_end_are_refused(serve, attempt):
    served = serve(
        ["read", ["send", CHUNKED + "1\r\na\r\n0\r\n"], ["blob", "X-F: " + "x" * 990 + "\r\n", 100], "linger"]
    )

    record = attempt(served.url)

    assert (record.reason, record.detail) == ("bad_http", "response headers larger than 64 KiB")


@pytest.mark.parametrize("pause_s", [0, 0.05])
def test_headers_below_the_limit_are_taken(pause_s, serve, attempt):
    filler = "".join(f"X-{n}: " + "x" * 990 + "\r\n" for n in range(60))

    steps = [["send", HEAD + filler], ["sleep", pause_s], ["send", "Content-Length: 2\r\n\r\nok"]]

    record = attempt(serve(["read", *steps, "linger"]).url)

    assert (record.reason, record.body) == ("eof", b"ok")


RAW = zlib.compressobj(wbits=-15)
RAW_DEFLATE = RAW.compress(b"data: 1\n\n") + RAW.flush()


@pytest.mark.parametrize(("encoding", "body"), [
    ("gzip", gzip.compress(b"data: 1\n\n")),
    ("x-gzip", gzip.compress(b"data: ") + gzip.compress(b"1\n\n")),  # members
    ("deflate", zlib.compress(b"data: 1\n\n")),
    ("deflate", RAW_DEFLATE),
    ("deflate, GZIP", gzip.compress(zlib.compress(b"data: 1\n\n"))),
])  # fmt: skip
@pytest.mark.parametrize("size", [1, 1000])
def test_compression_that_nobody_asked_for_is_undone_and_flagged(encoding, body, size, serve, attempt):
    pieces = "".join(chunk(body[n : n + size]) for n in range(0, len(body), size))
    sent = HEAD + f"Content-Encoding: {encoding}\r\nTransfer-Encoding: chunked\r\n\r\n" + pieces + "0\r\n\r\n"

    record = attempt(serve(["read", ["send", sent], "linger"]).url)

    assert (record.body, record.reason, record.violations) == (
        b"data: 1\n\n",
        "eof",
        ["http.content_encoding"],
    )


def test_compressed_pieces_are_handed_on_as_they_come(serve, attempt):
    packer = zlib.compressobj(wbits=31)
    pieces = [packer.compress(b"data: %d\n\n" % n) + packer.flush(zlib.Z_SYNC_FLUSH) for n in range(3)]
    steps = [step for piece in pieces for step in (["send", chunk(piece)], ["sleep", 0.1])]
    head = HEAD + "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"

    record = attempt(
        serve(["read", ["send", head], ["sleep", 0.03], *steps, ["send", "0\r\n\r\n"], "linger"]).url
    )

    assert [data for data, _, _ in record.feeds] == [b"data: 0\n\n", b"data: 1\n\n", b"data: 2\n\n"]


@pytest.mark.parametrize(("encoding", "line"), [
    ("gzip", "body is not gzip"), ("deflate", "body is not deflate"), ("br", "body encoded with 'br'"),
])  # fmt: skip
def test_a_body_that_cannot_be_decoded_is_bad_http(encoding, line, serve, attempt):
    sent = HEAD + f"Content-Encoding: {encoding}\r\nContent-Length: 8\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff"

    record = attempt(serve(["read", ["send", sent], "linger"]).url)

    assert (record.reason, record.violations) == ("bad_http", ["http.content_encoding"])
    assert record.detail.startswith(line)


def test_identity_is_no_compression(serve, attempt):
    sent = HEAD + "Content-Encoding: identity\r\nContent-Length: 2\r\n\r\nok"

    record = attempt(serve(["read", ["send", sent], "linger"]).url)

    assert (record.body, record.violations) == (b"ok", [])


def test_a_large_body_goes_out_while_the_hub_goes_on(serve, attempt):
    """The peer reads only after a while, so the kernel's buffers fill and the rest has to wait."""
    served = serve([["sleep", 0.2], "read", ["send", HEAD + "Content-Length: 2\r\n\r\nok"], "linger"])

    record = attempt(served.url, body=b"x" * 20_000_000)

    assert (record.reason, served.wait_for("request")[0]["length"]) == ("eof", 20_000_000)


def test_an_answer_before_the_body_is_sent_counts_and_the_connection_is_not_kept(serve, attempt):
    early = "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno"
    served = serve(
        [["send", early], "linger"], ["read", ["send", HEAD + "Content-Length: 0\r\n\r\n"], "linger"]
    )

    first = attempt(served.url, body=b"x" * 20_000_000)
    second = attempt(served.url)

    assert (first.status, first.reason) == (413, "eof")
    assert second.connection["reused"] is False


def test_head_has_no_body_whatever_its_length_says(serve, attempt):
    served = serve(["read", ["send", HEAD + "Content-Length: 9\r\n\r\n"], "linger"])

    record = attempt(served.url, method="HEAD", body=b"")

    assert (record.reason, record.body) == ("eof", b"")


def test_ipv6(serve, attempt):
    served = serve(["read", ["send", HEAD + "Content-Length: 2\r\n\r\nok"], "linger"], family="inet6")

    record = attempt(served.url)

    assert (record.reason, record.connection["peer"]) == ("eof", f"[::1]:{served.port}")
    assert f"Host: [::1]:{served.port}" in served.wait_for("request")[0]["head"]


def test_the_next_address_is_tried_when_one_refuses(serve, attempt):
    """`localhost` is ::1 first where IPv6 is on; the server listens on 127.0.0.1 alone."""
    served = serve(["read", ["send", HEAD + "Content-Length: 2\r\n\r\nok"], "linger"], name="localhost")

    record = attempt(served.url)

    assert (record.reason, record.connection["peer"]) == ("eof", f"127.0.0.1:{served.port}")


@pytest.mark.parametrize(("url", "detail"), [
    ("http://127.0.0.1:9/", "cannot connect to 127.0.0.1:9: connection refused"),
    ("http://[::1]:9/", "cannot connect to [::1]:9: connection refused"),
    ("http://foo.invalid/", "name not found: foo.invalid"),
    ("http://a..b/", "name not found: a..b"),
    ("ftp://127.0.0.1/", "not an http:// or https:// address: ftp://127.0.0.1/"),
    ("http://127.0.0.1:99999/", "not a port: 99999, in http://127.0.0.1:99999/"),
])  # fmt: skip
def test_no_connection_is_one_line(url, detail, attempt):
    record = attempt(url)

    assert (record.reason, record.calls) == ("connect_error", ["end"])
    assert record.detail.lower().startswith(detail.lower())
    assert "\n" not in record.detail


@pytest.mark.parametrize(("headers", "detail"), [
    ([("X-A", "b\r\nX-Evil: 1")], "cannot send header 'X-A': its value contains a line break"),
    ([("X A", "b")], "cannot send header 'X A': not a header name"),
    ([("X-A", "\N{SNOWMAN}")], "cannot send a header with the character '\N{SNOWMAN}'"),
])  # fmt: skip
def test_headers_that_would_break_the_request_are_not_sent(headers, detail, attempt):
    record = attempt("http://127.0.0.1:9/", headers=headers)

    assert record.reason == "connect_error"
    assert record.detail.startswith(detail)


def test_a_fault_of_the_session_ends_the_attempt_and_is_raised(serve, attempt, recorder):
    def break_down(_):
        raise RuntimeError("ours")

    broken = recorder(on_feed=break_down)
    with pytest.raises(RuntimeError, match="ours"):
        attempt(
            serve(["read", ["send", HEAD + "Content-Length: 2\r\n\r\nok"], "linger"]).url, recorder=broken
        )

    assert broken.reason == "aborted"

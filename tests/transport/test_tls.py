"""HTTPS against a real TLS server: who is trusted, what is said when not, and the same times as without."""

import subprocess

import gevent
import pytest

from harness.transport import TransportError, TransportOptions, make_ssl_context, tls

HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
CHUNKED = HEAD + "Transfer-Encoding: chunked\r\n\r\n"
OK = HEAD + "Content-Length: 2\r\n\r\nok"


@pytest.fixture
def secure(serve, authority):
    """Return a function that opens a TLS port with one of the authority's certificates."""

    def open_port(*scripts, cert="good", name="localhost", **more):
        files = {"cert": str(authority / f"{cert}.pem"), "key": str(authority / f"{cert}.key")}
        return serve(*scripts, tls={**files, **more}, name=name)

    return open_port


@pytest.fixture
def trusting(over, authority):
    """Return a function that makes a transport which trusts the test authority."""
    return lambda **options: over(ca_file=str(authority / "ca.pem"), **options)


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_good_certificate(version, secure, attempt, trusting):
    served = secure(["read", ["send", CHUNKED + "2\r\nok\r\n0\r\n\r\n"], "linger"], max=version)

    record = attempt(served.url, over=trusting())

    assert (record.reason, record.body, record.clock) == ("eof", b"ok", "kernel")
    assert record.connection["connect_s"] > 0
    assert record.connection["tls_s"] > 0
    assert served.wait_for("sni")[0]["name"] == "localhost"
    assert served.wait_for("shaken")[0]["alpn"] == "http/1.1"


# Which certificate, and the one line for it.
REFUSED = {
    "other": "certificate is for other.example, not localhost",
    "expired": "certificate has expired",
    "stranger": "certificate not trusted (unknown issuer): pass --ca-file",
}


@pytest.mark.parametrize("cert", REFUSED)
def test_a_bad_certificate_is_one_line(cert, secure, attempt, trusting):
    record = attempt(secure(["read"], cert=cert).url, over=trusting())

    assert (record.reason, record.detail, record.calls) == ("connect_error", REFUSED[cert], ["end"])


def test_certificates_are_verified_by_default(secure, attempt):
    record = attempt(secure(["read"]).url)

    assert (record.reason, record.detail) == ("connect_error", REFUSED["stranger"])


def test_an_address_must_be_in_the_certificate_too(secure, attempt, trusting):
    good = secure(["read", ["send", OK], "linger"], name="127.0.0.1")
    other = secure(["read"], cert="other", name="127.0.0.1")

    assert attempt(good.url, over=trusting()).reason == "eof"
    assert attempt(other.url, over=trusting()).detail == "certificate is for other.example, not 127.0.0.1"


def test_ssl_cert_file_is_honoured(secure, attempt, over, authority, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(authority / "ca.pem"))

    assert attempt(secure(["read", ["send", OK], "linger"]).url, over=over()).reason == "eof"


@pytest.mark.parametrize("cert", REFUSED)
def test_insecure_takes_any_certificate_and_says_so(cert, secure, attempt, over, caplog):
    transport = over(insecure=True)
    tls._make.cache_clear()

    record = attempt(secure(["read", ["send", OK], "linger"], cert=cert).url, over=transport)

    assert record.reason == "eof"
    assert [r.levelname for r in caplog.records if "NOT verified" in r.message] == ["WARNING"]


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_client_certificate(version, secure, attempt, trusting, authority):
    served = secure(["read", ["send", OK], "linger"], client_ca=str(authority / "ca.pem"), max=version)
    pair = f"{authority / 'client.pem'},{authority / 'client.key'}"
    (authority / "both.pem").write_text(
        (authority / "client.pem").read_text() + (authority / "client.key").read_text()
    )

    assert attempt(served.url, over=trusting(client_cert=pair)).reason == "eof"
    assert attempt(served.url, over=trusting(client_cert=str(authority / "both.pem"))).reason == "eof"


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_missing_client_certificate_is_one_line(version, secure, attempt, trusting, authority):
    """With TLS 1.3 the server refuses only after the request may have been written."""
    served = secure(["read"], client_ca=str(authority / "ca.pem"), max=version)

    record = attempt(served.url, over=trusting())

    assert record.reason == "connect_error"
    assert "--client-cert" in record.detail


def test_connect_to_keeps_sni_and_host(secure, attempt, trusting):
    served = secure(["read", ["send", OK], "linger"], cert="other")

    record = attempt("https://other.example/v1", over=trusting(connect_to=f"127.0.0.1:{served.port}"))

    assert (record.reason, record.connection["peer"]) == ("eof", f"127.0.0.1:{served.port}")
    assert served.wait_for("sni")[0]["name"] == "other.example"
    assert "\r\nHost: other.example\r\n" in served.wait_for("request")[0]["head"]


@pytest.mark.parametrize(("sent", "ending", "reason"), [
    (HEAD + "\r\nhello", ["unwrap"], "eof"),
    (HEAD + "\r\nhello", ["unwrap", "linger"], "eof"),  # close_notify is the end, whatever the socket does
    (HEAD + "\r\nhello", ["close"], "cut"),  # anyone on the way could have cut it here
    (HEAD + "Content-Length: 9\r\n\r\nhello", ["unwrap"], "cut"),
    (CHUNKED + "5\r\nhello\r\n", ["close"], "cut"),
    (CHUNKED + "5\r\nhello\r\n0\r\n\r\n", ["close"], "eof"),  # the body said itself that it is whole
])  # fmt: skip
@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_how_tls_ends(sent, ending, reason, version, secure, attempt, trusting):
    record = attempt(secure(["read", ["send", sent], *ending], max=version).url, over=trusting())

    assert (record.reason, record.body) == (reason, b"hello")
    if ending == ["close"] and reason == "cut":
        assert record.detail == "TLS connection closed without close_notify"


def test_a_close_notify_in_the_same_read_as_the_last_bytes_ends_the_body(secure, attempt, trusting):
    served = secure(["read", "cork", ["send", HEAD + "\r\nhello"], "unwrap", "linger"])

    record = attempt(served.url, over=trusting())

    assert (record.reason, record.body) == ("eof", b"hello")
    assert record.feeds[-1][1] == record.ended_at, "one read"


def test_connections_are_reused(secure, attempt, trusting):
    """Session tickets that come late are no stray bytes."""
    served = secure(["read", ["send", OK], "read", ["send", OK], "linger"])
    transport = trusting()

    attempt(served.url, over=transport)
    second = attempt(served.url, over=transport)

    assert second.connection == {
        "connect_s": None, "tls_s": None, "peer": f"127.0.0.1:{served.port}", "reused": True,
    }  # fmt: skip


@pytest.mark.parametrize("ending", [["unwrap"], ["close"], ["unwrap", "linger"]])
def test_an_idle_connection_that_has_ended_is_replaced_silently(ending, secure, attempt, trusting):
    served = secure(["read", ["send", OK], *ending], ["read", ["send", OK], "linger"])
    transport = trusting()

    attempt(served.url, over=transport)
    gevent.sleep(0.3)
    second = attempt(served.url, over=transport)

    assert (second.reason, second.connection["reused"]) == ("eof", False)


def test_a_large_answer_and_a_large_body(secure, attempt, trusting):
    served = secure([["sleep", 0.1], "read", ["send", HEAD + "Content-Length: 3000000\r\n\r\n"],
                     ["blob", "0123456789", 300_000], "linger"])  # fmt: skip

    record = attempt(served.url, over=trusting(), body=b"x" * 5_000_000)

    assert (record.reason, record.body) == ("eof", b"0123456789" * 300_000)
    assert served.wait_for("request")[0]["length"] == 5_000_000


def test_https_has_the_kernels_times_too(secure, attempt, trusting):
    served = secure(["read", ["send", CHUNKED], ["drip", "data: %d\n\n", 20, 0.01],
                     ["send", "0\r\n\r\n"], "linger"])  # fmt: skip

    record = attempt(served.url, over=trusting())

    times, seen = served.wait_for("dripped")[0]["times"], 0
    for data, t, _ in record.feeds:
        seen += data.count(b"\n\n")
        before, after = times[seen - 1]
        assert before - 1e-4 <= t <= after + 0.005
    assert (record.clock, seen) == ("kernel", 20)


def test_a_limit_fires_during_the_handshake(serve, attempt):
    served = serve(["linger"], name="localhost")

    record = attempt(served.url.replace("http:", "https:"), limit_s=0.1)

    assert (record.reason, record.calls) == ("closed", ["end"])


@pytest.mark.parametrize(("script", "detail"), [
    ([["send", OK], "close"], "no TLS on that port: is this an http:// address?"),
    (["more", "close"], "TLS handshake cut off by the server"),
    (["more", "reset"], "TLS handshake cut off by the server: connection reset by peer"),
])  # fmt: skip
def test_a_handshake_that_fails_is_one_line(script, detail, serve, attempt):
    served = serve(script, name="localhost")

    record = attempt(served.url.replace("http:", "https:"))

    assert record.reason == "connect_error"
    assert record.detail == detail


def test_the_context_is_made_once(authority):
    options = TransportOptions(ca_file=str(authority / "ca.pem"))

    assert make_ssl_context(options) is make_ssl_context(options)


@pytest.fixture
def files(tmp_path):
    (tmp_path / "empty.pem").write_text("nothing\n")
    return tmp_path


@pytest.mark.parametrize(("options", "line"), [
    ({"ca_file": "{tmp}/none.pem"}, "--ca-file: cannot read {tmp}/none.pem: no such file or directory"),
    ({"ca_file": "{tmp}/empty.pem"}, "--ca-file: {tmp}/empty.pem holds no certificate in PEM form"),
    ({"client_cert": "{tmp}/none.pem"},
     "--client-cert: cannot read {tmp}/none.pem: no such file or directory"),
    ({"client_cert": "{tmp}/empty.pem"},
     "--client-cert: no certificate and key in PEM form in {tmp}/empty.pem (two files: CERT,KEY)"),
    ({"client_cert": "{ca}/client.pem,{ca}/good.key"},
     "--client-cert: key and certificate do not belong together"),
])  # fmt: skip
def test_wrong_files_are_one_line(options, line, files, authority):
    places = {"tmp": files, "ca": authority}
    made = TransportOptions(**{name: value.format(**places) for name, value in options.items()})

    with pytest.raises(TransportError) as caught:
        make_ssl_context(made)

    assert str(caught.value) == line.format(**places)


def test_an_encrypted_key_is_one_line_and_no_prompt(authority, tmp_path):
    locked = tmp_path / "locked.key"
    subprocess.run(["openssl", "pkcs8", "-topk8", "-in", authority / "client.key", "-out", locked,
                    "-passout", "pass:secret"], check=True, capture_output=True)  # fmt: skip

    with pytest.raises(TransportError, match=f"the key in {locked} is encrypted"):
        make_ssl_context(TransportOptions(client_cert=f"{authority / 'client.pem'},{locked}"))


def test_a_wrong_file_found_late_ends_the_attempt(secure, attempt, over):
    record = attempt(secure(["read"]).url, over=over(ca_file="/none.pem"))

    assert (record.reason, record.detail) == (
        "connect_error",
        "--ca-file: cannot read /none.pem: no such file or directory",
    )


@pytest.mark.parametrize(
    "value", ["host", "host:0", "host:70000", ":80", "::1:80", "[::1]", "http://host:80", ""]
)
def test_connect_to_that_is_no_address_is_one_line(value):
    with pytest.raises(TransportError, match="--connect-to: expected HOST:PORT"):
        TransportOptions(connect_to=value)

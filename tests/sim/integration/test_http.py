"""Addresses, methods, errors, connections."""

import json

import pytest


@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/api/v1/chat/completions", "/fault/ok/v1/chat/completions"]
)
def test_the_paths_of_all_gateways_work_whichever_is_played(hopbase, path):
    answer = hopbase.ask(path=path)

    assert (200, "text/event-stream") == (answer.status, answer.headers["content-type"])
    assert answer.text.endswith("data: [DONE]\n\n")


def test_every_answer_names_the_simulator_and_itself(hopbase, request_bytes, read):
    seen = []
    for path, method in (
        ("/v1/models", "GET"),
        ("/nowhere", "GET"),
        ("/v1/messages", "GET"),
        ("/v1/messages", "POST"),
    ):
        with hopbase.connect() as sock:
            sock.sendall(request_bytes(path, b"", method=method))
            seen.append(read(sock))

    assert [200, 404, 405, 400] == [answer.status for answer in seen]
    assert {"hopbase"} == {answer.headers["x-harness-sim"] for answer in seen}
    assert 4 == len({answer.headers["x-request-id"] for answer in seen})


def test_errors_have_the_vendors_shape(hopbase):
    chat = json.loads(hopbase.ask("chat", headers={"X-Harness-Fault": "http-429"}).body)
    messages = json.loads(hopbase.ask("messages", headers={"X-Harness-Fault": "http-429"}).body)

    assert {"message", "type", "code"} == set(chat["error"])
    assert ("rate_limit_error", "rate_limit_exceeded") == (chat["error"]["type"], chat["error"]["code"])
    assert ("error", "rate_limit_error") == (messages["type"], messages["error"]["type"])


def test_an_unknown_fault_is_a_400_that_names_near_ones(hopbase):
    answer = hopbase.ask(headers={"X-Harness-Fault": "stal-mid"})

    assert 400 == answer.status
    assert "unknown fault 'stal-mid': did you mean stall-mid" in json.loads(answer.body)["error"]["message"]


def test_bytes_that_are_no_http_get_a_400_and_the_connection_closes(hopbase, read):
    with hopbase.connect() as sock:
        sock.sendall(b"hello there\r\n\r\n")
        answer = read(sock)

        assert 400 == answer.status
        assert b"" == sock.recv(1)


def test_a_connection_serves_one_request_after_the_other_pipelined_ones_too(hopbase, request_bytes, read):
    one = request_bytes("/v1/chat/completions", b'{"stream":true}', {"X-Harness-Tokens": "2"})
    with hopbase.connect() as sock:
        for _ in range(2):
            sock.sendall(one)
            assert "end" == read(sock).how
        sock.sendall(one + request_bytes("/v1/models", b"", method="GET") + one)
        raw = b""
        while raw.count(b"data: [DONE]") < 2 or not raw.endswith(b"0\r\n\r\n"):
            raw += sock.recv(65536)

    assert 1 == raw.count(b'"object":"list"')


def test_a_client_of_http_1_0_gets_no_chunks_and_the_end_of_the_connection(hopbase):
    with hopbase.connect() as sock:
        sock.sendall(
            b"POST /v1/chat/completions HTTP/1.0\r\nConnection: keep-alive\r\n"
            b'Content-Length: 15\r\n\r\n{"stream":true}'
        )
        raw = b""
        while data := sock.recv(65536):
            raw += data

    assert b"chunked" not in raw
    assert raw.endswith(b"data: [DONE]\n\n")


def test_who_expects_100_continue_gets_it_before_the_body_is_sent(hopbase, read):
    with hopbase.connect() as sock:
        sock.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: s\r\n"
            b"Expect: 100-continue\r\nContent-Length: 15\r\n\r\n"
        )
        interim = sock.recv(1000)
        sock.sendall(b'{"stream":true}')

        assert b"HTTP/1.1 100 Continue\r\n\r\n" == interim
        assert 200 == read(sock).status


def test_an_answer_without_stream_comes_whole(hopbase):
    answer = hopbase.ask("chat", stream=False)
    data = json.loads(answer.body)

    assert ("chat.completion", 6) == (data["object"], data["usage"]["completion_tokens"])
    assert 429 == hopbase.ask("chat", stream=False, headers={"X-Harness-Fault": "http-429"}).status


def test_slots_reject_what_is_beyond_them(launch):
    sim = launch("--slots", "1", "--tokens", "500")
    with sim.connect() as first:
        first.sendall(b'POST /v1/responses HTTP/1.1\r\nHost: s\r\nContent-Length: 15\r\n\r\n{"stream":true}')
        assert b"200 OK" in first.recv(65536)
        second = sim.ask()

    assert (429, "1") == (second.status, second.headers["retry-after"])


def test_slots_queue_what_is_beyond_them_under_keepalives(launch):
    sim = launch("--slots", "1", "--queue", "--gateway", "hopbase", "--time-scale", "0.005", "--tokens", "10",
                 "--gap", "30ms")  # fmt: skip
    with sim.connect() as first:
        first.sendall(b'POST /v1/responses HTTP/1.1\r\nHost: s\r\nContent-Length: 15\r\n\r\n{"stream":true}')
        assert b"200 OK" in first.recv(65536)
        second = sim.ask(headers={"X-Client-Request-Id": "second-1"})

    assert second.text.startswith(": hopbase-keepalive\n\n")
    line = next(line for line in sim.truth() if line["request"] == "second")
    assert "completed" == line["outcome"]
    assert 0.6 < line["first_content_s"]  # its own 0.2 s, after 0.5 s of the first one's

"""Faults on real sockets: how they are chosen, what they look like as bytes, what the log says."""

import threading
import time
from itertools import pairwise

import pytest

from harness.sim.faults import FAULTS


@pytest.mark.parametrize(
    ("protocol", "request_"),
    [
        ("chat", {"headers": {"X-Harness-Fault": "truncate"}}),
        ("chat", {"path": "/fault/truncate/v1/chat/completions"}),
        ("chat", {"model": "sim-truncate"}),
        ("chat", {"headers": {"Authorization": "Bearer sim-truncate"}}),
        ("messages", {"headers": {"X-Api-Key": "sim-truncate"}}),
    ],
)
def test_a_request_chooses_its_fault(hopbase, protocol, request_):
    answer = hopbase.ask(protocol, **request_)

    assert "end" == answer.how
    assert 3 == answer.text.count('"content":"' if protocol == "chat" else '"text_delta"') - (
        protocol == "chat"
    )
    assert "[DONE]" not in answer.text
    assert "message_stop" not in answer.text


def test_the_mix_chooses_for_who_asks_for_nothing_the_same_with_each_start(launch):
    def outcomes():
        sim = launch("--mix", "ok=50,http-500=50", "--seed", "3", "--tokens", "1", "--first-token", "1ms")
        return [sim.ask().status for _ in range(20)]

    first = outcomes()
    assert {200, 500} == set(first)
    assert first == outcomes()


def test_a_sequence_recovers_with_the_next_attempt(hopbase):
    answers = [
        hopbase.ask(
            path="/fault/error-mid,ok/v1/chat/completions", headers={"X-Client-Request-Id": f"seq-{n}"}
        )
        for n in (1, 2, 3)
    ]

    assert [False, True, True] == ["[DONE]" in answer.text for answer in answers]


def test_a_reset_is_a_rst_in_the_middle_of_the_answer(hopbase):
    answer = hopbase.ask(headers={"X-Harness-Fault": "reset"})

    assert "reset" == answer.how
    assert 4 == answer.raw.count(b'"content":"')


def test_a_truncation_ends_the_body_as_properly_as_an_end(hopbase):
    answer = hopbase.ask(headers={"X-Harness-Fault": "truncate"})

    assert answer.raw.endswith(b"\r\n0\r\n\r\n")
    assert "end" == answer.how


def test_a_stall_sends_its_comments_and_nothing_else(hopbase):
    comment = b"15\r\n: hopbase-keepalive\n\n\r\n"
    answer = hopbase.ask(headers={"X-Harness-Fault": "stall-mid"}, until=comment * 3)

    assert 1 + 3 == answer.text.count("data:")
    assert answer.raw.endswith(comment)


def test_the_periodic_keepalive_keeps_its_interval_through_the_stream(launch):
    sim = launch("--gateway", "hopbase", "--time-scale", "0.01", "--tokens", "50", "--gap", "20ms")
    times, buffer = [], b""
    with sim.connect() as sock:
        sock.sendall(b'POST /v1/messages HTTP/1.1\r\nHost: s\r\nContent-Length: 15\r\n\r\n{"stream":true}')
        while not buffer.endswith(b"0\r\n\r\n"):
            data = sock.recv(65536)
            buffer += data
            times += [time.monotonic()] * data.count(b": hopbase-keepalive\n\n")

    (line,) = sim.truth()
    assert 8 <= line["comments"] == len(times) <= 14  # 1.2 s, one each 0.1 s
    gaps = sorted(b - a for a, b in pairwise(times))
    assert 0.06 < gaps[len(gaps) // 2] < 0.16
    assert all(block.startswith((b"event:", b": hopbase")) for block in unwrapped(buffer))


def unwrapped(raw):
    """Return the blocks between blank lines, without head and chunk sizes."""
    lines = raw.partition(b"\r\n\r\n")[2].split(b"\r\n")
    return [block for line in lines for block in line.split(b"\n\n") if b":" in block]


def test_the_idle_keepalive_comes_when_nothing_else_does(launch):
    sim = launch("--gateway", "sabiuco", "--time-scale", "0.01", "--first-token", "1s", "--tokens", "50")
    answer = sim.ask()
    (line,) = sim.truth()

    assert 5 <= line["comments"] == answer.text.count(": ok\n\n") <= 7  # each 0.15 s of the first second
    assert ": ok" not in answer.text[answer.text.index("The ") :]


def test_a_client_that_leaves_stops_the_generation(launch):
    sim = launch("--tokens", "1000", "--gap", "10ms")
    sim.ask(headers={"X-Client-Request-Id": "walker-1"}, until=b"keeps ")
    time.sleep(0.3)
    (line,) = sim.truth()

    assert ("abandoned", True) == (line["outcome"], line["client_left"])
    assert 3 <= line["tokens"] < 200  # of 1000
    assert 0.2 < line["end_s"] < 3.0


def test_preflights_are_healthy_and_in_no_log(launch):
    sim = launch("--mix", "http-500=1", "--tokens", "2", "--first-token", "1ms")
    statuses = [
        sim.ask(headers={"X-Client-Request-Id": i}).status for i in ("preflight-a-1", "preflight-1", "a-1")
    ]

    assert [200, 200, 500] == statuses
    assert ["a"] == [line["request"] for line in sim.truth()]


def test_the_log_tells_what_was_written_and_when(launch):
    sim = launch("--tokens", "10", "--gap", "10ms", "--first-token", "100ms")
    before = time.time()
    sim.ask("responses", headers={"X-Client-Request-Id": "r-7-2"})
    sim.ask("messages", messages=[{"role": "user", "content": "[[req:m-1]] hello"}], model="sim-error-mid")
    good, bad = sim.truth()

    assert ("r-7", 2, "responses", "ok", "completed") == tuple(
        good[k] for k in ("request", "attempt", "protocol", "fault", "outcome")
    )
    assert before - 0.01 < good["sent_at"] < before + 2.0
    assert 0.0 <= good["first_byte_s"] < 0.1 <= good["first_content_s"] < 1.0
    assert 0.2 <= good["end_s"] < 1.5
    assert (10, 0, False) == (good["tokens"], good["comments"], good["client_left"])
    assert ("m", 1, "messages", "error-mid", "error_event", 5) == tuple(
        bad[k] for k in ("request", "attempt", "protocol", "fault", "outcome", "tokens")
    )


def test_every_fault_runs_in_every_protocol_without_an_error_in_the_server(launch, request_bytes, paths):
    sim = launch(
        "--gateway",
        "hopbase",
        "--time-scale",
        "0.001",
        "--tokens",
        "4",
        "--gap",
        "2ms",
        "--first-token",
        "5ms",
    )
    asked = [(fault, protocol) for fault in FAULTS for protocol in ("chat", "responses", "messages")]
    todo = list(asked)

    def work():
        while todo:
            fault, protocol = todo.pop()
            headers = {"X-Harness-Fault": fault, "X-Client-Request-Id": f"{fault}+{protocol}-1"}
            with sim.connect() as sock:
                sock.settimeout(0.3)
                sock.sendall(
                    request_bytes(paths[protocol], b'{"stream":true}', {**headers, "Connection": "close"})
                )
                end = time.monotonic() + 0.3  # keepalives come for ever
                try:
                    while sock.recv(1 << 20) and time.monotonic() < end:
                        pass
                except (TimeoutError, ConnectionResetError):
                    pass

    workers = [threading.Thread(target=work) for _ in range(16)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    truth = {line["request"]: line for line in sim.truth()}

    assert "" == sim.errors()
    assert {f"{fault}+{protocol}" for fault, protocol in asked} == set(truth)
    sequences = {name for name, fault in FAULTS.items() if fault.sequence}
    assert all(truth[f"{fault}+{p}"]["fault"] == fault for fault, p in asked if fault not in sequences)

"""Captured files judged offline, and the same files played by the simulator and judged live."""

import json
import re
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from harness.gateways import load
from harness.judge.captures import CaptureError, judge_capture, read_capture

CHUNK = 'data: {"choices":[{"index":0,"delta":%s,"finish_reason":%s}]}'
FIRST = CHUNK % ('{"role":"assistant","content":"Hi"}', "null")
LAST = CHUNK % ("{}", '"stop"')
# Seconds after the first line, and the line.
LINES = [
    (0.0, ": hopbase-keepalive"), (0.0, ""),
    (1.5, FIRST), (1.5, ""),
    (11.5, ": hopbase-keepalive"), (11.5, ""),
    (21.5, ": hopbase-keepalive"), (21.5, ""),
    (22.0, LAST), (22.0, ""),
    (22.0, "data: [DONE]"), (22.0, ""),
]  # fmt: skip
BEGAN = datetime(2026, 3, 1, 23, 59, 50, tzinfo=UTC)
RAW = "".join(f"{line}\n" for _, line in LINES)


def stamped(stamp, lines=LINES):
    """Return the lines as `ts` writes them."""
    return "".join(f"{stamp(at_s)} {line}\n" for at_s, line in lines).encode()


def unix(at_s):
    return f"{BEGAN.timestamp() + at_s:.6f}"


def iso(at_s):
    return datetime.fromtimestamp(BEGAN.timestamp() + at_s, UTC).isoformat().replace("+00:00", "Z")


def clock(at_s):  # it passes midnight
    return datetime.fromtimestamp(BEGAN.timestamp() + at_s, UTC).strftime("%H:%M:%S.%f")


def judge(data, protocol="chat", gateway="hopbase", **options):
    (capture,) = read_capture(data)
    return judge_capture(capture, load(gateway), protocol, **options)[0]


@pytest.mark.parametrize("stamp", [unix, iso, clock, lambda at_s: f"{at_s:.6f}"])
def test_lines_with_times_of_any_kind_have_the_clocks_of_the_stream(stamp):
    record = judge(stamped(stamp))

    assert ("completed", "stop") == (record.outcome, record.finish)
    assert (1.5, 22.0, 22.0) == (record.first_token_s, record.terminal_s, record.end_s)
    assert (3, "hopbase-keepalive") == (record.keepalive.comments, record.keepalive.text)
    assert 10.0 == record.silence_max_s
    assert {} == record.violations


def test_times_that_are_dates_date_the_record():
    assert BEGAN.timestamp() == judge(stamped(iso)).sent_at
    assert BEGAN.timestamp() == pytest.approx(judge(stamped(unix)).sent_at, abs=1e-5)


def test_trailing_spaces_that_an_editor_took_away_are_not_missed():
    data = b"\n".join(line.rstrip() for line in stamped(unix).split(b"\n"))

    assert "completed" == judge(data).outcome


def test_a_clock_that_was_set_back_does_not_turn_time_around():
    lines = [(0.0, FIRST), (0.0, ""), (-3.0, LAST), (-3.0, ""), (5.0, "data: [DONE]"), (5.0, "")]

    record = judge(stamped(unix, lines))

    assert "completed" == record.outcome
    assert 5.0 == record.end_s


def test_raw_bytes_have_an_outcome_and_no_limits():
    record = judge(RAW.encode())

    assert ("completed", 3, 0.0) == (record.outcome, record.keepalive.comments, record.end_s)
    assert [] == record.soft_stalls


def test_a_head_that_curl_wrote_is_read_too():
    head = (
        b"HTTP/1.1 100 Continue\r\n\r\n"
        b"HTTP/2 200 \r\ncontent-type: text/event-stream\r\nx-request-id: r1\r\n\r\n"
    )
    refused = (
        b'HTTP/1.1 429 No\r\ncontent-type: application/json\r\n\r\n{"error":{"type":"rate_limit_error"}}'
    )

    record = judge(head + RAW.encode())
    assert ("completed", "r1") == (record.outcome, record.server_request_id)
    record = judge(refused)
    assert ("http_error", 429) == (record.outcome, record.status)
    assert record.error is not None
    assert "rate_limit_error" == record.error.type


def test_a_head_among_lines_with_times_is_read_too():
    head = [(-0.2, "HTTP/1.1 200 OK"), (-0.2, "content-type: text/event-stream"), (-0.2, "")]
    record = judge(stamped(unix, [*head, *LINES]))

    assert ("completed", 1.7) == (record.outcome, record.first_token_s)


CUT = LINES[:8]  # keepalives after one token


@pytest.mark.parametrize(
    ("options", "outcome", "stall"),
    [
        ({}, "truncated", None),
        ({"end": "cut"}, "cut", None),
        ({"end": "open", "waited_s": 20.0}, "abandoned", None),  # nothing was due yet
        ({"end": "open", "waited_s": 40.0}, "stalled", "dead_silence_mid"),  # HopBase: 30 s without a byte
        ({"end": "eof", "waited_s": 40.0}, "stalled", "dead_silence_mid"),
    ],
)
def test_the_end_is_what_the_user_says_it_was(options, outcome, stall):
    record = judge(stamped(unix, CUT), **options)

    assert outcome == record.outcome
    assert stall == (record.stall.class_ if record.stall else None)


def test_keepalives_without_a_token_are_a_stall_where_the_limit_says():
    alive = [(1.5 + 10.0 * n, line) for n in range(1, 20) for line in (": hopbase-keepalive", "")]

    record = judge(stamped(unix, [*LINES[:4], *alive]))

    assert ("stalled", "keepalive_only_mid") == (record.outcome, record.stall and record.stall.class_)
    assert 166.5 == record.end_s  # 165 s after the token


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"  \n", "the file is empty"),
        (b"1.0 : a\nnothing\n", "line 2 does not begin with a time"),
        (b'{"t": [1]}\n', "line 1 is no timeline of ours"),
        (b'{"t": [1], "kind": ["odd"], "protocol": "chat"}\n', "unknown kind 'odd'"),
    ],
)
def test_what_is_no_capture_is_said_in_one_line(data, complaint):
    with pytest.raises(CaptureError, match=re.escape(complaint)):
        read_capture(data)


@pytest.mark.parametrize("protocol", ["chat", "responses", "messages"])
@pytest.mark.parametrize(
    ("kinds", "outcome"),
    [
        (["lifecycle", "comment", "content", "content", "terminal"], "completed"),
        (["lifecycle", "reasoning", "tool", "terminal"], "completed"),
        (["lifecycle", "content", "error"], "error_event"),
        (["lifecycle", "content", "broken"], "protocol_error"),
        (["lifecycle", "content"], "truncated"),
    ],
)
def test_a_timeline_is_judged_by_its_kinds(protocol, kinds, outcome):
    line = {"request": "r", "attempt": 2, "protocol": protocol, "outcome": outcome,
            "t": [0.1 * n for n in range(len(kinds))], "kind": kinds, "dropped": 0}  # fmt: skip
    (capture,) = read_capture(json.dumps(line).encode())

    record, _ = judge_capture(capture, load("generic"), protocol)

    assert (outcome, "r", 2) == (record.outcome, record.request, record.attempt)
    assert len([k for k in kinds if k in ("content", "reasoning", "tool")]) == record.progress.count


def test_a_stalled_timeline_is_stalled_again():
    line = {"request": "r", "attempt": 1, "protocol": "chat", "outcome": "stalled", "t": [0.1, 0.2],
            "kind": ["content", "comment"], "dropped": 0}  # fmt: skip
    (capture,) = read_capture(json.dumps(line).encode())

    record, _ = judge_capture(capture, load("generic"), "chat")

    assert ("stalled", 60.2) == (record.outcome, record.end_s)


def harness(*arguments):
    command = [sys.executable, "-m", "harness", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)


def test_the_command_prints_a_line_or_a_record_and_returns_what_probe_would(tmp_path):
    file = tmp_path / "capture.txt"
    file.write_bytes(stamped(unix, CUT))

    brief = harness("read", str(file), "--protocol", "chat", "--brief")
    record = harness("read", str(file), "--protocol", "chat", "--json", "--limit", "silence=9s")
    unnamed = harness("read", str(file))

    assert (10, "truncated: cut off cleanly after 1 token event: the body ended before the answer did\n") == (
        brief.returncode, brief.stdout)  # fmt: skip
    assert "stalled" == json.loads(record.stdout)["outcome"]
    assert (2, "") == (unnamed.returncode, unnamed.stdout)
    assert "--protocol is needed" in unnamed.stderr


@pytest.fixture
def play():
    """Return a starter of simulators that replay a file; they stop after the test."""
    started = []

    def play(file, *options):
        command = [sys.executable, "-m", "harness.sim", "--port", "0", "--replay", str(file), *options]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        ready = re.search(r"http://\S+", process.stdout.readline())
        assert ready is not None
        return ready[0]

    yield play
    for process in started:
        process.terminate()
        process.communicate(timeout=10)


def probe(url, *options):
    return json.loads(harness("probe", url, "--json", *options).stdout)


def test_a_capture_that_is_played_is_seen_as_it_was(play, tmp_path):
    file = tmp_path / "capture.txt"
    file.write_bytes(stamped(unix))

    seen = probe(play(file, "--gateway", "hopbase", "--time-scale", "0.05"), "--gateway", "hopbase",
                 "--protocol", "chat", "--time-scale", "0.05")  # fmt: skip

    assert ("completed", "stop", 3) == (seen["outcome"], seen["finish"], seen["keepalive"]["comments"])
    assert len(RAW) == seen["bytes"]
    assert 0.075 <= seen["first_token_s"] < 0.5
    assert 1.1 <= seen["end_s"] < 1.6


@pytest.mark.parametrize(("end", "outcome"), [("eof", "truncated"), ("reset", "cut"), ("hang", "stalled")])
def test_the_end_of_what_is_played_can_be_chosen(end, outcome, play, tmp_path):
    file = tmp_path / "capture.sse"
    file.write_text("".join(f"{line}\n" for _, line in CUT))

    seen = probe(play(file, "--replay-end", end), "--limit", "silence=300ms")

    assert outcome == seen["outcome"]


def test_a_timeline_is_played_in_any_protocol(play, tmp_path):
    file = tmp_path / "timelines.jsonl"
    kinds = ["lifecycle", "comment", "content", "content", "terminal"]
    file.write_text(json.dumps({"protocol": "chat", "t": [0, 0.1, 0.2, 0.3, 0.4], "kind": kinds}) + "\n")
    url = play(file)

    for protocol in ("chat", "responses", "messages"):
        seen = probe(url, "--protocol", protocol)
        assert ("completed", 2, 1) == (
            seen["outcome"],
            seen["progress"]["count"],
            seen["keepalive"]["comments"],
        )
        assert 0.2 <= seen["first_token_s"] < 0.5


def test_what_cannot_be_played_is_one_line():
    done = subprocess.run([sys.executable, "-m", "harness.sim", "--replay", "/nowhere"], check=False,
                          capture_output=True, text=True, timeout=60)  # fmt: skip

    assert (2, "harness sim: --replay: cannot read /nowhere: No such file or directory\n") == (
        done.returncode, done.stderr)  # fmt: skip

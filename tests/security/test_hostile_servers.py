"""What a server says is bounded and harmless: it steers no terminal and fills no memory."""

import json
import re
import sys

HARNESS = (sys.executable, "-m", "harness")

# Everything that a terminal obeys, C1 included, and what turns the direction of text.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def test_a_probe_and_a_refusal_before_the_run_show_escapes_as_text(launch, hostile):
    probes = [
        launch("probe", hostile.url(how), "--protocol", "chat", "--model", "m", TERM="xterm")
        for how in ("steer", "steer-stream")
    ]
    run = launch("run", "--headless", "--host", hostile.url("steer"), "--model", "m", "-t", "1s")

    for process in probes:
        assert 10 == process.wait()
        assert not CONTROL.search(process.out + process.err)
        assert "\\x1b[2J" in process.out
    assert 2 == run.wait()
    assert not CONTROL.search(run.out + run.err)
    (line,) = [line for line in run.complaints if line.startswith("harness:")]
    assert "\\x1b[2J" in line
    assert len(line) < 500


def test_the_table_and_the_files_of_a_run_hold_escapes_as_text(launch, hostile, tmp_path):
    process = launch(
        "run", "--headless", "--host", hostile.url("steer-stream"), "--model", "m", "-u", "2", "-t", "2s",
        "--no-preflight", "--metrics-port", "0", "--results", "results",
    )  # fmt: skip

    assert 1 == process.wait()
    assert not CONTROL.search(process.out + process.err)
    for path in (tmp_path / "results" / "latest").iterdir():
        assert not CONTROL.search(path.read_text()), path.name
    show = launch("show", "results")
    show.wait()
    assert not CONTROL.search(show.out + show.err)
    assert "\\x1b[2J" in show.out


def test_an_answer_without_end_is_cut_and_takes_no_memory(launch, hostile):
    limited = ("sh", "-c", 'ulimit -v 2000000; exec "$@"', "-", *HARNESS)  # of address space, in kB
    probes = {
        how: launch(
            "probe", hostile.url(how), "--protocol", "chat", "--model", "m", "--json", "--limit", "total=4s",
            command=limited,
        )
        for how in ("huge-headers", "huge-body", "huge-comment")
    }  # fmt: skip
    outcomes = {}
    for how, process in probes.items():
        assert 10 == process.wait(), how
        record = json.loads(process.out)
        outcomes[how] = record["outcome"]
        assert record["bytes"] < 64 * 1024 * 1024, how
        assert len(process.out) < 4000, how

    expected = {"huge-headers": "protocol_error", "huge-body": "http_error", "huge-comment": "protocol_error"}
    assert expected == outcomes

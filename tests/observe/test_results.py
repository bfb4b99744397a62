from __future__ import annotations

import errno
import json
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.observe.results import (
    AttemptLog,
    ResultsError,
    ResultsFolder,
    find_results,
    read_records,
)
from harness.stream.record import to_json


def test_each_start_gets_a_folder_of_its_own_and_latest_is_the_newest(tmp_path):
    names = []
    for _ in range(3):
        folder = ResultsFolder(tmp_path / "results", "night")
        names.append(folder.run)
        assert (tmp_path / "results" / "latest").resolve() == folder.path.resolve()

    assert names == ["night", "night-2", "night-3"]
    assert sorted(os.listdir(tmp_path / "results")) == ["latest", "night", "night-2", "night-3"]


@pytest.mark.parametrize("name", ["", "..", "a/b", "latest", "a\0b"])
def test_a_run_name_that_is_no_folder_is_refused(tmp_path, name):
    with pytest.raises(ResultsError, match="choose another with --run-name"):
        ResultsFolder(tmp_path, name)


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        ResultsError, match=r"^cannot write results to .*file/x \(.+\): choose a writable folder"
    ):
        ResultsFolder(tmp_path / "file" / "x", "r")


@dataclass
class Data:
    name: str
    values: list[float]


def test_json_appears_whole_or_not_at_all(tmp_path, record):
    folder = ResultsFolder(tmp_path, "r")
    path = folder.write_json("run.json", {"data": Data("x", [1.5]), "record": record()})
    written = json.loads(path.read_text())

    assert written["data"] == {"name": "x", "values": [1.5]}
    assert written["record"]["schema"] == "harness.attempt/1"
    assert path.read_text().startswith('{\n  "data": {\n')
    assert os.listdir(folder.path) == ["run.json"]

    path.unlink()
    folder.path.rmdir()
    with pytest.raises(ResultsError, match=r"^cannot write .*run.json \(No such file or directory\)$"):
        folder.write_json("run.json", {})


def test_records_are_lines_and_come_back_equal(tmp_path, record, stalled):
    records = [record(), stalled(request="q2"), record(request="q3", final=False)]
    log = AttemptLog(tmp_path / "attempts.jsonl")
    for one in records:
        log.add(one)
    assert (tmp_path / "attempts.jsonl").read_bytes() == b""  # not yet handed over
    log.flush()

    assert (log.lines, log.lost) == (3, 0)
    assert list(read_records(tmp_path / "attempts.jsonl")) == records
    log.close()


def test_a_full_buffer_is_written_without_waiting(tmp_path, record):
    log = AttemptLog(tmp_path / "attempts.jsonl")
    size = len(to_json(record())) + 1
    for _ in range(64 * 1024 // size + 1):
        log.add(record())

    assert log.lines * size >= 64 * 1024
    log.close()


def test_a_full_disk_loses_records_counts_them_and_leaves_whole_lines(tmp_path, record):
    room = [10_000]

    def disk(fd, data):
        """Take what there is room for, then say that the disk is full."""
        if not room[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = os.write(fd, data[: room[0]])
        room[0] -= taken
        return taken

    path = tmp_path / "attempts.jsonl"
    log = AttemptLog(path, write=disk)
    for name in "abc":
        log.add(record(request=name))
    log.flush()
    room[0] = 700  # less than one line and a half
    for name in "de":
        log.add(record(request=name))
    log.flush()
    assert (log.lines, log.lost, log.error) == (3, 2, "No space left on device")

    room[0] = 10_000  # somebody made room
    log.add(record(request="f"))
    log.close()
    assert [one.request for one in read_records(path)] == ["a", "b", "c", "f"]
    assert (log.lines, log.lost) == (4, 2)


def test_a_device_that_is_full_from_the_start_never_raises(record):
    log = AttemptLog(Path("/dev/full"))
    log.add(record())
    log.flush()
    log.close()

    assert (log.lines, log.lost) == (0, 1)


def test_records_that_come_after_the_end_are_lost_and_counted(tmp_path, record):
    log = AttemptLog(tmp_path / "attempts.jsonl")
    log.close()
    log.add(record())
    log.close()

    assert log.lost == 1


def test_a_cut_last_line_is_left_out_and_said(tmp_path, record):
    path = tmp_path / "attempts.jsonl"
    path.write_bytes(to_json(record()) + b"\n" + to_json(record())[:-40])
    notes: list[str] = []

    assert len(list(read_records(path, notes))) == 1
    assert notes == ["attempts.jsonl: the last line is cut off and was left out (the run was killed?)"]


def test_a_whole_last_line_without_its_line_end_counts(tmp_path, record):
    path = tmp_path / "attempts.jsonl"
    path.write_bytes(to_json(record()))
    notes: list[str] = []

    assert len(list(read_records(path, notes))) == 1
    assert notes == []


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"{not json}\n", "line 2: not a record of harness.attempt/1"),
        (b'{"schema": "harness.attempt/1"}\n', "line 2: not a record of harness.attempt/1"),
    ],
)
def test_a_broken_line_is_named_by_file_and_number(tmp_path, record, line, says):
    path = tmp_path / "attempts.jsonl"
    path.write_bytes(to_json(record()) + b"\n" + line)

    with pytest.raises(ResultsError) as caught:
        list(read_records(path))
    assert str(caught.value).startswith(f"{path}, {says}")


def test_another_schema_version_is_named(tmp_path, record):
    path = tmp_path / "attempts.jsonl"
    path.write_bytes(to_json(record(schema="harness.attempt/9")) + b"\n")

    with pytest.raises(ResultsError, match=r"schema 'harness.attempt/9', expected 'harness.attempt/1'"):
        list(read_records(path))


def test_results_are_found_by_run_by_base_and_by_file(tmp_path, record):
    folder = ResultsFolder(tmp_path, "r1")
    AttemptLog(folder.path / "attempts.jsonl").close()

    for path in (folder.path, tmp_path, folder.path / "attempts.jsonl", tmp_path / "latest"):
        assert find_results(path) == folder.path


def test_no_results_are_one_line_that_says_what_is_missing(tmp_path):
    with pytest.raises(ResultsError, match=r"holds no results: there is no attempts\.jsonl in it"):
        find_results(tmp_path)
    with pytest.raises(ResultsError, match="does not exist"):
        find_results(tmp_path / "nowhere")
    with pytest.raises(ResultsError, match="cannot read"):
        list(read_records(tmp_path))

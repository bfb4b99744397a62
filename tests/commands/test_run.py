"""`harness run` outside a clone: what the wheel holds, and that it is enough."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--wheel-dir", folder, REPOSITORY], check=True)
    (path,) = folder.glob("harness-*.whl")
    return path


def test_the_wheel_holds_everything_that_is_no_module_too(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    tracked = subprocess.run(
        ["git", "ls-files", "harness"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout.split()

    assert [] == [name for name in tracked if name not in names]
    assert "harness/locustfile.py" in names
    (entry_points,) = (name for name in names if name.endswith("/entry_points.txt"))
    text = zipfile.ZipFile(wheel).read(entry_points).decode()
    assert "harness = harness.cli:main" in text
    assert "[harness.load]\nswarm = harness.swarm" in text


def test_it_runs_from_the_wheel_alone(wheel, launch, tmp_path, records):
    """The unpacked wheel comes before the clone on the path, and the work is done elsewhere."""
    unpacked = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(unpacked)
    code = "import harness, sys; from harness.cli import main; print(harness.__file__); sys.exit(main())"
    process = launch(
        "run", "--headless", "--host", "sim", "-u", "2", "-r", "10", "-t", "2s", "--only-summary",
        "--metrics-port", "0", command=(sys.executable, "-c", code), PYTHONPATH=str(unpacked),
    )  # fmt: skip

    assert 0 == process.wait(), process.err
    assert str(unpacked) in process.out
    assert {"completed"} == {record["outcome"] for record in records(tmp_path / "results")}


def test_another_locustfile_takes_the_place_of_the_packaged_one(launch, tmp_path):
    (tmp_path / "mine.py").write_text(
        "from harness.load import ChatUser\nclass Mine(ChatUser): pass\ndel ChatUser\n"
    )
    by_option = launch("run", "-f", "mine.py", "--list")
    by_variable = launch("run", "--list", LOCUST_LOCUSTFILE="mine.py")
    packaged = launch("run", "--list")

    assert (0, ["Available Users:", "    Mine"]) == (by_option.wait(), by_option.out.splitlines())
    assert (0, ["Available Users:", "    Mine"]) == (by_variable.wait(), by_variable.out.splitlines())
    assert 0 == packaged.wait()
    assert "    MessagesUser" in packaged.out.splitlines()

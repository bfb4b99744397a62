"""The commands in the pages do what the pages say; where that needs a key or a cluster, their options exist.

A page is run as one script, in a folder of its own. Only times and ports are changed: a run lasts seconds
here, and nothing listens on the usual ports, because tests of other checkouts may run beside this one.
"""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from functools import cache
from itertools import groupby
from pathlib import Path

import pytest

from tests.docs.pages import BLOCKS, ROOT, Command, blocks
from tests.ports import find_free_ports

NEEDS = {"", "needs-key", "needs-docker", "needs-kubernetes", "needs-time"}
RUNNABLE = {
    page: [command for block in of_page for command in block.commands if not block.needs]
    for page, of_page in groupby(BLOCKS, lambda block: block.page)
}
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))

# A simulator that the page starts in the background is waited for, and ends with the script.
HEAD = """
trap 'kill $(jobs -p) 2>/dev/null' EXIT
expect() {
    command=$1; shift; eval "$command"; code=$?
    for wanted in "$@"; do [ "$code" = "$wanted" ] && return; done
    echo "EXIT CODE $code, not $*: $command"; exit 1
}
"""


def shortened(line, ports):
    """Return *line* with a short run and free ports."""
    line = re.sub(r"--run-time \S+", "--run-time 2s", line)
    line = re.sub(r"--step-time \S+", "--step-time 2s", line)
    line = re.sub(r"--stop-timeout \S+", "--stop-timeout 4", line)
    for usual, free in ports.items():
        line = line.replace(usual, str(free))
    return line


def script(commands, ports):
    lines = [HEAD]
    for command in commands:
        line = shortened(command.line, ports)
        if line.startswith("export PATH="):
            continue  # the test's own is set already
        if line.startswith("make "):
            assert line.split()[1] in TARGETS
        elif line.endswith("&"):
            lines.append(f"coproc {{ {line[:-1]}; }}; read -r ready <&${{COPROC[0]}}; echo $ready")
        else:
            codes = " ".join(map(str, command.exits))
            lines.append(f"expect {shlex.quote(line)} {codes}")
    return "\n".join(lines)


def start(page, folder, ports):
    (folder / "gates").symlink_to(ROOT / "gates")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = os.environ | {"PATH": path, "PYTHONPATH": str(ROOT), "LOCUST_METRICS_PORT": "0", "COLUMNS": "100"}
    with (folder / "said").open("w") as said:
        return subprocess.Popen(
            ["bash", "-c", script(RUNNABLE[page], ports)],
            cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True,
        )  # fmt: skip


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """All pages at once: most of the time they wait."""
    pages = {page: tmp_path_factory.mktemp(page.replace(".", "-")) for page in RUNNABLE if RUNNABLE[page]}
    free = iter(find_free_ports(2 * len(pages)))
    running = {
        page: (start(page, folder, {"8000": next(free), "15557": next(free)}), folder)
        for page, folder in pages.items()
    }
    yield running
    for process, _ in running.values():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # a simulator in the background too
        process.wait()


@pytest.mark.parametrize("page", [page for page, commands in RUNNABLE.items() if commands])
def test_the_commands_of_a_page_work(page, started):
    process, folder = started[page]
    code = process.wait(90)
    words = (folder / "said").read_text("utf-8")

    assert 0 == code, words[-3000:]
    assert "Traceback" not in words


@cache
def help_of(command):
    """Return what `harness COMMAND --help` prints."""
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "harness", command, "--help"]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout


ALONE = [
    (block.page, command.line)
    for block in BLOCKS
    for command in block.commands
    if block.needs and re.match(r"(\S+/)?harness \w", command.line)
]


@pytest.mark.parametrize(("page", "line"), ALONE)
def test_options_of_commands_that_are_not_run_exist(page, line):
    name = line.split()[1]
    # Options of the load behind `capacity` and others are those of a run.
    known = help_of(name) + (help_of("run") if name != "run" else "")
    for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", line):
        assert re.search(rf"{option}\b(?!-)", known), (page, option)


def test_every_block_says_what_it_needs_in_known_words():
    assert set() == {block.needs for block in BLOCKS} - NEEDS


def test_blocks_are_read_as_they_stand():
    text = (
        "```console\n$ one\nout\n$ two   # exits with 1 or 22\n```\n"
        "```sh needs-docker\nthree \\\n--x\n```\n```toml\na\n```\n"
    )
    first, second = blocks("page", text)

    assert (Command("one"), Command("two", (1, 22))) == first.commands
    assert ("needs-docker", (Command("three --x"),)) == (second.needs, second.commands)

"""The example of the docs, and one user alone in a debugger."""

import re
import sys
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs" / "own-locustfile.md"
QUIET = ("--metrics-port", "0", "--results", "results")


def test_the_example_of_the_docs_runs(launch, gateway, records, tmp_path):
    (example,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    (tmp_path / "agent.py").write_text(example)
    host = gateway.url("").rstrip("/")
    process = launch(
        "-f", "agent.py", "--headless", "--host", host, "--model", "my-model", "-u", "2", "-r", "10",
        "-t", "3s", "--only-summary", *QUIET, command=(sys.executable, "-m", "locust"),
    )  # fmt: skip

    assert 0 == process.wait(), process.err
    assert {("agent", "my-model", "completed")} == {
        (r["scenario"], r["model"], r["outcome"])
        for r in records(tmp_path / "results")
        if r["outcome"] != "aborted"  # the end of the run may cut one
    }
    asked = [r for r in gateway.asked() if r["path"] != "/login"]
    assert {"Bearer t-1"} == {r["headers"]["authorization"] for r in asked}
    assert {256, 200} == {r["body"]["max_tokens"] for r in asked}
    assert {"plan", "answer"} <= set(re.findall(r"^chat +(\w+)", process.err, re.MULTILINE))


SINGLE = """
from harness.load import ChatUser
from locust import run_single_user
from locust.exception import StopUser

class Once(ChatUser):
    def on_start(self):
        print("OUTCOME", self.stream("Hello").outcome)
        raise StopUser

if __name__ == "__main__":
    run_single_user(Once)
"""


def test_a_single_user_runs_without_a_runner(launch, gateway, records, tmp_path):
    (tmp_path / "single.py").write_text(SINGLE)
    process = launch("--host", gateway.url(), "--model", "m", *QUIET, command=(sys.executable, "single.py"))

    assert 0 == process.wait(), process.err
    assert "OUTCOME completed" in process.out
    assert "1 attempts started = 1 recorded + 0 open" in process.out
    assert ["completed"] == [r["outcome"] for r in records(tmp_path / "results")]


def test_a_single_user_against_the_simulator_leaves_none_behind(launch, tmp_path, until, alive):
    (tmp_path / "single.py").write_text(SINGLE)
    process = launch("--host", "sim", *QUIET, command=(sys.executable, "single.py"))
    children = set()
    while process.popen.poll() is None:
        children.update(process.children)

    assert 0 == process.wait(), process.err
    assert "SIMULATED" in process.out
    until(lambda: not any(alive(pid) for pid in children))


def test_a_single_user_with_a_wrong_option_gets_one_line(launch, tmp_path):
    (tmp_path / "single.py").write_text(SINGLE)
    process = launch("--host", "sim", "--gateway", "hopbas", *QUIET, command=(sys.executable, "single.py"))

    assert 2 == process.wait()
    assert "did you mean hopbase?" in process.err
    assert 1 == len(process.complaints)


def test_classes_that_name_different_hosts_need_a_choice(launch, tmp_path):
    (tmp_path / "two.py").write_text(
        "from harness.load import ChatUser, MessagesUser\n"
        'class A(ChatUser): host = "http://127.0.0.1:1"\n'
        'class B(MessagesUser): host = "http://127.0.0.1:2"\n'
        "del ChatUser, MessagesUser\n"
    )
    process = launch("run", "-f", "two.py", "--headless", *QUIET)

    assert 2 == process.wait()
    (line,) = process.complaints
    assert "name different hosts (http://127.0.0.1:1, http://127.0.0.1:2)" in line

"""Locust's web UI with our options: starts, edits and stops through its own requests."""

import json
import signal

import gevent
import httpx
import pytest


class Page:
    """The page of a running process, driven as its script drives it."""

    def __init__(self, process, port, results):
        self.process, self.results = process, results
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False)

    def swarm(self, **fields):
        answer = self.client.post("/swarm", data={"user_count": "2", "spawn_rate": "10", **fields})
        assert 200 == answer.status_code, answer.text
        return answer.json()

    def stop(self):
        return self.client.post("/stop", timeout=60).json()

    @property
    def state(self):
        return self.client.get("/stats/requests").json()["state"]

    def about(self, run="latest"):
        return json.loads((self.results / run / "run.json").read_text())


SMALL = ("--gateway", "hopbase", "--time-scale", "0.02", "--metrics-port", "0", "--metrics-linger", "0s")


def open_page(start, port, results, *arguments, **env):
    process = start("run", "--web-host", "127.0.0.1", "--web-port", port, "--results", results, *SMALL,
                    *arguments, **env)  # fmt: skip
    process.wait_for("Starting web interface")
    page = Page(process, port, results)
    for _ in range(200):
        try:
            page.client.get("/assets/nothing")
        except httpx.ConnectError:
            gevent.sleep(0.05)
        else:
            return page
    raise AssertionError("the page does not answer")


@pytest.fixture
def browse(launch, free_port, tmp_path):
    """Open the page of a process of this test's own."""
    opened = []

    def start(*arguments):
        opened.append(open_page(launch, free_port, tmp_path, "--host", "sim", *arguments))
        return opened[0]

    yield start
    for page in opened:
        page.client.close()


@pytest.fixture(scope="module")
def page(launch_once, shared_port, tmp_path_factory):
    page = open_page(
        launch_once, shared_port, tmp_path_factory.mktemp("results"), "--host", "sim", "--users", "7",
        "--spawn-rate", "3", "--header", "X-Secret=sk-header", "--api-key-env", "HARNESS_UI_KEY",
        HARNESS_UI_KEY="sk-key", HOPBASE_API_KEY="sk-own",
    )  # fmt: skip
    yield page
    page.client.close()


@pytest.fixture(autouse=True)
def stopped(request):
    yield
    if "page" in request.fixturenames:
        request.getfixturevalue("page").stop()


def test_the_page_explains_our_options_and_shows_no_secret(page):
    html = page.client.get("/").text

    assert "Whose promises and limits hold" in html
    assert "With host sim: which faults it plays" in html
    assert '"num_users": 7' in html or '"num_users":7' in html.replace(" ", "")
    assert "sk-" not in html
    assert "metrics_port" not in html


WRONG = [
    ({"gateway": "hopbas"}, "did you mean hopbase?"),
    ({"protocols": "chatt"}, "did you mean chat?"),
    ({"time_scale": "fast"}, "--time-scale: expected a number, got 'fast'"),
    ({"seed": "1.5"}, "--seed: expected a whole number, got '1.5'"),
    ({"seed": ""}, "--seed: expected a whole number, got ''"),
    ({"think": "5"}, "is not a duration"),
    ({"cache": "sometimes"}, "--cache: expected bust or allow"),
    ({"sim_mix": "stal-mid=1"}, "--sim-mix: unknown fault"),
    ({"run_name": "../x"}, "--run-name"),
    ({"host": "10.0.0.1"}, "expected a URL"),
    ({"host": "http://10.0.0.1"}, "--time-scale is only for gateways on this machine"),
    ({"host": "http://127.0.0.1:1"}, "connection refused"),
]


@pytest.mark.parametrize(("fields", "words"), WRONG)
def test_a_wrong_value_is_a_message_and_nothing_starts(fields, words, page):
    answer = page.swarm(**fields)

    assert answer["success"] is False
    assert words in answer["message"]
    assert "\n" not in answer["message"]
    assert page.state in ("ready", "stopped")


def test_what_was_wrong_once_does_not_stay(page):
    page.swarm(gateway="hopbas")

    assert page.swarm()["success"] is True


def test_options_that_the_page_does_not_show_cannot_be_set(page, tmp_path):
    hidden = {"save_content": "true", "no_preflight": "true", "stop_timeout": "9", "headless": "true"}
    files = {"results": str(tmp_path), "prompts": "/etc/passwd", "api_key_env": "HOME"}
    assert page.swarm(run_name="hidden", **hidden, **files)["success"] is True

    options = page.about()["options"]
    assert "hidden" == options["run_name"]
    assert str(page.results) == options["results"]
    assert "" == options["prompts"]
    assert not any(options[name] for name in hidden)
    assert not list(tmp_path.iterdir())
    assert "sk-" not in json.dumps(page.about())


def test_runs_of_one_process_have_folders_protocols_and_simulators_of_their_own(page, until, records):
    seen, simulators = [], []
    for protocols, mix in (("chat", "ok=1"), ("", "ok=1"), ("messages=1", "error-mid=1")):
        assert page.swarm(run_name="again", protocols=protocols, sim_mix=mix, user_count="6")["success"]
        until(lambda: page.state == "running")
        simulators.append(tuple(page.process.children))
        until(lambda: len(page.client.get("/stats/requests").json()["stats"]) > 1, 20)
        page.stop()
        seen.append({r["protocol"] for r in records(page.results)})
        assert "sim:hopbase" == page.about()["gateway"]

    assert [{"chat"}, {"chat", "messages", "responses"}, {"messages"}] == seen
    assert {"again", "again-2", "again-3"} <= {path.name for path in page.results.iterdir()}
    assert "again-3" == (page.results / "latest").readlink().name
    assert simulators[0] == simulators[1] != simulators[2]
    assert {"error_event"} == {r["outcome"] for r in records(page.results)} - {"aborted"}


def test_an_edit_of_a_running_test_is_checked_and_keeps_the_run(page, until):
    page.swarm(run_name="edited")
    until(lambda: page.state == "running")

    assert page.swarm(user_count="4")["success"] is True
    assert "is not a duration" in page.swarm(warmup="soon")["message"]
    until(lambda: page.client.get("/stats/requests").json()["user_count"] == 4)
    assert "edited" == page.about()["run"]


def test_a_second_stop_cuts_and_no_start_comes_in_between(page, until, records):
    page.swarm(sim_mix="stall-mid=1", time_scale="0.5", run_name="cut")
    until(lambda: page.state == "running")
    gevent.sleep(0.5)
    first = gevent.spawn(page.stop)
    until(lambda: page.state == "cleanup")
    assert "still draining" in page.swarm()["message"]
    page.stop()

    first.join(10)
    assert {"aborted"} == {r["outcome"] for r in records(page.results)}
    page.swarm(sim_mix="ok=1", time_scale="0.02")


def test_ctrl_c_ends_the_page_and_everything_with_it(browse, tmp_path, until, alive):
    page = browse()
    page.swarm(run_name="last")
    until(lambda: page.state == "running")
    children = page.process.children
    page.process.signal(signal.SIGINT)

    assert 0 == page.process.wait()
    until(lambda: not any(alive(pid) for pid in children))
    assert "Traceback" not in page.process.out + page.process.err
    assert (tmp_path / "last" / "summary.json").exists()
    assert 1 == page.process.out.count("run last")


def test_the_class_picker_and_the_protocols_have_to_agree(browse, tmp_path, until, records):
    page = browse("--class-picker")

    refused = page.swarm(user_classes="ChatUser", protocols="messages")
    assert (False, True) == (refused["success"], "no user class speaks messages" in refused["message"])
    assert "no such user class: Nobody" in page.swarm(user_classes="Nobody")["message"]
    assert page.swarm(user_classes="MessagesUser")["success"] is True
    until(lambda: page.client.get("/stats/requests").json()["stats"][:-1])
    page.stop()
    assert {"messages"} == {r["protocol"] for r in records(tmp_path)}
    assert page.swarm(user_classes="ChatUser")["success"] is True
    until(lambda: page.client.get("/stats/requests").json()["stats"][:-1])
    page.stop()
    assert {"chat"} == {r["protocol"] for r in records(tmp_path)}


def test_autostart_and_autoquit(browse, tmp_path, records):
    page = browse("--autostart", "--autoquit", "1", "-t", "2s", "-u", "3", "-r", "10")

    assert 0 == page.process.wait(30)
    assert {"completed"} == {r["outcome"] for r in records(tmp_path)}
    assert "SIMULATED" in page.process.out

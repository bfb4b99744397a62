"""What the tab serves, and to whom: origins, login, base path, downloads, reset; asked as the page asks."""

import json
import signal

import gevent
import httpx
import pytest

LOGIN_FILE = """
import os
from locust import events
from flask_login import UserMixin, login_user
from flask import Blueprint, redirect
from harness.locustfile import *


class Somebody(UserMixin):
    def get_id(self):
        return "somebody"


@events.init.add_listener
def _login(environment, web_ui=None, **_):
    if web_ui is None or not environment.parsed_options.web_login:
        return
    web_ui.app.config["SECRET_KEY"] = "of this test"
    web_ui.login_manager.user_loader(lambda _: Somebody())
    web_ui.auth_args = {"username_password_callback": "/load/enter"}
    routes = Blueprint("enter", __name__)

    @routes.route("/load/enter", methods=["POST"])
    def enter():
        login_user(Somebody())
        return redirect("/load/")

    web_ui.app.register_blueprint(routes)
"""

SMALL = (
    "--host", "sim", "--gateway", "hopbase", "--time-scale", "0.02", "--sim-mix", "ok=2,error-mid=1",
    "--web-host", "127.0.0.1", "--metrics-linger", "0s", "--loglevel", "WARNING",
)  # fmt: skip


def client_of(start, port, results, *arguments, base="", path="/harness/tab.js", **env):
    """Start a process with a page, and return it with a client of that page."""
    process = start("run", *SMALL, "--web-port", port, "--results", results, *arguments, **env)
    client = httpx.Client(base_url=f"http://127.0.0.1:{port}{base}", trust_env=False, timeout=30)
    for _ in range(400):
        try:
            client.get(path)
        except httpx.ConnectError:
            gevent.sleep(0.05)
        else:
            return process, client
    raise AssertionError(process.err)


@pytest.fixture(scope="module")
def client(launch_once, shared_port, tmp_path_factory):
    results = tmp_path_factory.mktemp("results")
    # One above is as free as any: the ports of a test come from the system, and it deals them out at random.
    _, client = client_of(launch_once, shared_port, results, "--metrics-port", shared_port + 1)
    yield client
    client.close()


@pytest.fixture
def serve(launch, free_port):
    """Start a process of the test's own."""
    opened = []

    def start(*arguments, **more):
        opened.append(client_of(launch, free_port, *arguments, **more))
        return opened[0]

    yield start
    for _, client in opened:
        client.close()


@pytest.fixture
def begin(client):
    """Start a run of the shared page; it is stopped after the test."""

    def start(**fields):
        answer = client.post("/swarm", data={"user_count": "6", "spawn_rate": "6", **fields})
        assert answer.json()["success"], answer.text

    yield start
    client.post("/stop")


def rows(client):
    [table] = client.get("/stats/requests").json()["extended_stats"]
    return table["data"]


def streams(client):
    return sum(row["streams"] for row in rows(client))


POSTS = ("/swarm", "/stop", "/stats/reset", "/user")


@pytest.mark.parametrize("route", POSTS)
@pytest.mark.parametrize("origin", ["https://evil.example", "http://127.0.0.1:1", "null", "http://[", ""])
def test_a_foreign_page_is_refused(route, origin, client):
    answer = client.post(route, data={"user_count": "1", "spawn_rate": "1"}, headers={"Origin": origin})

    assert 403 == answer.status_code
    assert "not from this page" in answer.text
    assert client.get("/stats/requests").json()["state"] in ("ready", "stopped")


def test_no_header_makes_a_foreign_page_ours_and_none_reads_our_numbers(client):
    host = str(client.base_url.netloc.decode())
    forged = {"Origin": "https://evil.example", "X-Forwarded-Host": "evil.example"}
    assert 403 == client.post("/stop", headers=forged).status_code
    assert 403 == client.get("/harness/live.json", headers={"Origin": "https://evil.example"}).status_code

    assert 200 == client.post("/stop", headers={"Origin": f"http://{host}"}).status_code
    assert 200 == client.post("/stop").status_code  # as curl sends it


def test_reset_clears_the_tab_and_no_counter_goes_back(client, begin, until):
    def counted():
        text = httpx.get(f"http://127.0.0.1:{client.base_url.port + 1}/metrics", trust_env=False).text
        lines = [line for line in text.splitlines() if line.startswith("harness_attempts_total{")]
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines)

    begin()
    until(lambda: streams(client) >= 20, 20)
    until(lambda: client.get("/harness/live.json").json()["samples"], 10)
    before = counted()
    client.post("/stats/reset")
    assert streams(client) < 10
    assert [] == client.get("/harness/live.json").json()["samples"]
    assert counted() >= before >= 20
    until(lambda: streams(client) >= 5, 20)


def test_the_page_gets_numbers_that_json_knows_and_its_runs_files(client, begin, until):
    assert 404 == client.get("/harness/download/run.json").status_code
    begin(run_name="taken")
    until(lambda: streams(client) >= 6, 20)
    text = client.get("/stats/requests").text
    json.loads(text, parse_constant=pytest.fail)
    live = client.get("/harness/live.json").json()
    assert ("taken", "sim:hopbase", True, []) == tuple(
        live[key] for key in ("run", "gateway", "simulated", "workers")
    )
    early = client.get("/harness/download/summary.json")
    assert (404, "summary.json is written when the run has ended\n") == (early.status_code, early.text)
    client.post("/stop")

    attempts = client.get("/harness/download/attempts.jsonl")
    assert "filename=taken-attempts.jsonl" in attempts.headers["content-disposition"]
    summary = client.get("/harness/download/summary.json").json()
    assert summary["attempts"] == len(attempts.text.splitlines()) >= 6
    assert 404 == client.get("/harness/download/..%2Frun.json").status_code
    assert 404 == client.get("/harness/download/run.json").status_code


def test_login_and_base_path_hold_for_our_routes(serve, free_port, tmp_path):
    (tmp_path / "own.py").write_text(LOGIN_FILE)
    process, client = serve(
        tmp_path / "results", "-f", tmp_path / "own.py", "--web-login",
        "--web-base-path", "/load", "--metrics-port", "0", base="/load",
    )  # fmt: skip
    for route in ("/", "/stats/requests", "/harness/live.json", "/harness/download/attempts.jsonl"):
        answer = client.get(route)
        assert (302, True) == (answer.status_code, "/load/login" in answer.headers["location"]), route
    assert 302 == client.post("/swarm", data={"user_count": "1", "spawn_rate": "1"}).status_code
    client.post("/enter")

    page = client.get("/").text
    assert 'src="/load/harness/tab.js" data-base="/load"' in page
    assert "/load/harness/download/attempts.jsonl" in page
    assert [] == client.get("/harness/live.json").json()["samples"]
    assert client.post("/swarm", data={"user_count": "2", "spawn_rate": "2"}).json()["success"]
    assert 404 == httpx.get(f"http://127.0.0.1:{free_port}/harness/tab.js", trust_env=False).status_code
    process.signal(signal.SIGINT)
    process.wait(20)


def test_autostart_and_class_picker(serve, tmp_path, until, records):
    process, client = serve(tmp_path, "--autostart", "--autoquit", "0", "-u", "3", "-r", "3", "-t", "3s",
        "--class-picker", "--metrics-port", "0", "--exit-code-on-error", "0",
    )  # fmt: skip
    until(lambda: streams(client) >= 1, 20)
    assert "ChatUser" in client.get("/").text
    assert 0 == process.wait(20)

    assert len(records(tmp_path)) >= 3

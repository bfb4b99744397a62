"""`make run`: one command, nothing to configure, and nothing left when it ends."""

import signal
import socket
import sys

import gevent
import httpx
import pytest

DEMO = (sys.executable, "-m", "harness.demo")


def is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@pytest.fixture
def demo(launch, free_port, shared_port, until):
    """Start the demo on ports of its own, with a run on, its streams short."""
    process = launch(
        "--web-port", free_port, "--metrics-port", shared_port, "--sim-mix", "ok=1", command=DEMO
    )
    process.ports = free_port, shared_port
    process.wait_for("scrape")
    with httpx.Client(base_url=f"http://127.0.0.1:{free_port}", trust_env=False) as page:
        until(lambda: not is_free(free_port) and answers(page))
        html = page.get("/").text
        assert all(words in html for words in ('"num_users": 30', '"spawn_rate": 5'))
        assert page.post("/swarm", data={"user_count": "5", "spawn_rate": "50"}).json()["success"]
        until(lambda: page.get("/stats/requests").json()["user_count"] == 5)
    (process.simulator,) = process.children
    return process


def answers(page):
    try:
        return page.get("/stats/requests").status_code == 200
    except httpx.HTTPError:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda s: s.name)
def test_however_it_ends_no_process_and_no_port_is_left(number, demo, alive, until):
    gevent.sleep(1)
    demo.signal(number)
    code = demo.wait(30)

    assert (-signal.SIGKILL if number == signal.SIGKILL else 0) == code
    until(lambda: not alive(demo.simulator))
    assert all(is_free(port) for port in demo.ports)
    assert "Traceback" not in demo.out + demo.err
    if number != signal.SIGKILL:
        assert "recorded + 0 open" in demo.out


def test_it_says_what_to_open_and_what_to_press(demo):
    ui, metrics = demo.ports
    first, second, third = demo.out.splitlines()[:3]

    assert f"http://127.0.0.1:{ui} " in first
    assert "START" in second
    assert "Ctrl-C" in second
    assert f"http://127.0.0.1:{metrics}/metrics " in third

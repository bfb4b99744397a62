"""`make run`: one command, nothing to configure, and nothing left when it ends."""

import signal
import socket
import sys

import gevent
import httpx

DEMO = (sys.executable, "-m", "harness.demo")


def is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def answers(page):
    try:
        return page.get("/stats/requests").status_code == 200
    except httpx.HTTPError:
        return False


class Demo:
    def __init__(self, launch, ports):
        self.ports = ports
        web, metrics = ports
        self.process = launch("--web-port", web, "--metrics-port", metrics, "--sim-mix", "ok=1", command=DEMO)

    def begin(self, until):
        """Press Start, and wait until its users are there."""
        with httpx.Client(base_url=f"http://127.0.0.1:{self.ports[0]}", trust_env=False) as page:
            until(lambda: answers(page), 30)
            html = page.get("/").text
            assert all(words in html for words in ('"num_users": 30', '"spawn_rate": 5'))
            assert page.post("/swarm", data={"user_count": "5", "spawn_rate": "50"}).json()["success"]
            until(lambda: page.get("/stats/requests").json()["user_count"] == 5)
        (self.simulator,) = self.process.children


def test_it_says_what_to_do_and_however_it_ends_no_process_and_no_port_is_left(
    launch, free_ports, alive, until
):
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
    ports = iter(free_ports(2 * len(signals)))
    demos = {number: Demo(launch, (next(ports), next(ports))) for number in signals}
    for number, demo in demos.items():
        demo.begin(until)
        gevent.sleep(0.5)
        demo.process.signal(number)

    for number, demo in demos.items():
        first, second, third = demo.process.out.splitlines()[:3]
        assert f"http://127.0.0.1:{demo.ports[0]} " in first
        assert "START" in second
        assert f"http://127.0.0.1:{demo.ports[1]}/metrics " in third
        assert (-signal.SIGKILL if number == signal.SIGKILL else 0) == demo.process.wait(30)
        until(lambda pid=demo.simulator: not alive(pid))
        assert all(is_free(port) for port in demo.ports)
        assert "Traceback" not in demo.process.out + demo.process.err
        assert (number != signal.SIGKILL) == ("recorded + 0 open" in demo.process.out)

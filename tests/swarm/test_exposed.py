"""Everything listens on this machine alone; who wants otherwise gets a line that says what it means."""

import re
import urllib.request

import pytest

from harness.swarm.exposed import exposures


def is_served(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as answer:
            return answer.status == 200
    except OSError:
        return False


def lines(options, *, has_page=True, is_master=False):
    return list(exposures(options, has_page=has_page, is_master=is_master))


def test_by_default_nobody_else_can_reach_anything(options):
    assert "127.0.0.1" == options().web_host
    assert [] == lines(options())


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "*", "192.0.2.7", "", "gateway.example"])
def test_a_page_for_others_is_told_with_what_they_can_do(host, options):
    (line,) = lines(options("--web-host", host))

    assert "start load with your keys" in line
    assert "--web-host 127.0.0.1" in line


def test_a_page_with_a_login_is_told_without_that(options):
    (line,) = lines(options("--web-host", "*", "--web-login"))

    assert line.startswith("warning: the web UI listens on 0.0.0.0:8089")
    assert "your keys" not in line


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_loopback_by_any_name_needs_no_warning(host, options):
    assert [] == lines(options("--web-host", host, "--metrics-host", host))


def test_metrics_and_the_masters_port_are_told_when_they_are_open(options):
    chosen = options("--metrics-host", "0.0.0.0", "--metrics-port", "9999")

    (line,) = lines(chosen, has_page=False)

    assert line.startswith("warning: metrics listen on 0.0.0.0:9999 for other machines")
    assert [] == lines(options("--metrics-host", "0.0.0.0", "--metrics-port", "0"), has_page=False)
    assert 1 == len(lines(options(), is_master=True))  # Locust's own default is every interface
    assert [] == lines(options("--master-bind-host", "127.0.0.1"), is_master=True)


def test_a_process_warns_once_and_serves(launch, free_ports, until):
    page, metrics = free_ports(2)
    process = launch(
        "run", "--host", "sim", "--web-host", "0.0.0.0", "--web-port", page, "--metrics-port", metrics
    )
    process.wait_for("start load with your keys")
    until(lambda: is_served(page))

    assert 1 == process.err.count("warning: the web UI listens")
    assert 0 == process.err.count("warning: metrics")


def test_the_simulator_warns_when_others_can_reach_it(launch):
    near, far = launch("sim", "--port", "0"), launch("sim", "--port", "0", "--host", "0.0.0.0")
    near.wait_for("ready on")
    far.wait_for("ready on")
    far.wait_for("listening on 0.0.0.0 for other machines too")

    assert "" == near.err
    assert re.search(r"ready on http://127\.0\.0\.1:\d+", near.out)

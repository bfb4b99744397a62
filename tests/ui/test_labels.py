"""The form of a start says what its numbers mean: users, or requests per second."""

import socket

from selenium.webdriver.support.ui import Select

USERS = {"Number of users (peak concurrency)", "Ramp up (users started/second)"}
REQUESTS = {"Requests per second (peak)", "Ramp up (requests per second, each second)"}


def labels(page):
    return {label.text.rstrip(" *\u2009") for label in page.find("label")}


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_under_open_arrivals_the_form_speaks_of_requests_per_second(launch, free_port, show, until):
    launch(
        "run", "--host", "sim", "--arrivals", "poisson", "--rate", "7", "--web-host", "127.0.0.1",
        "--web-port", str(free_port), "--metrics-port", "0",
    )  # fmt: skip
    until(lambda: listens(free_port))
    page = show(f"http://127.0.0.1:{free_port}/")

    page.wait(lambda: labels(page) >= REQUESTS, "the words for requests")
    assert not labels(page) & USERS
    assert "7" == page.find("[name=userCount]")[0].get_attribute("value")

    page.driver.execute_script(
        "document.querySelectorAll('.MuiAccordionSummary-root').forEach(e => e.click())"
    )
    page.wait(page.find("select[name=arrivals]")[0].is_displayed, "the choice of arrivals")
    Select(page.find("select[name=arrivals]")[0]).select_by_value("closed")
    page.wait(lambda: labels(page) >= USERS, "the words for users")
    assert not labels(page) & REQUESTS

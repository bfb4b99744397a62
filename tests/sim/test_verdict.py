import pytest

from harness.sim.verdict import Verdict, told_wait_s


def play(*attempts):
    """Return the lines for attempts of (who, began, ended, outcome, told)."""
    verdict = Verdict()
    for who, began, ended, outcome, told in attempts:
        verdict.begins(who, False, began)
        verdict.ends(who, outcome, told, ended)
    return verdict.lines()


def test_attempts_are_counted_per_request_and_waits_measured():
    lines = play(
        ("a", 0.0, 0.1, "http_error", None),
        ("b", 0.0, 1.0, "completed", None),
        ("a", 0.6, 0.7, "error_event", None),
        ("a", 1.7, 2.7, "completed", None),
    )

    assert "client: 2 requests, 4 attempts (1 took 1, 1 took 3)" == lines[0]
    assert "waits before a retry: 0.50 s to 1.00 s, median 0.75 s" == lines[1]
    assert 2 == len(lines)


def test_a_client_that_does_not_wait_as_long_as_told_is_named():
    lines = play(
        ("a", 0.0, 0.1, "http_error", 1.0),
        ("a", 1.1, 1.2, "http_error", 1.0),
        ("a", 1.6, 2.0, "completed", None),
    )

    assert ["Retry-After: obeyed 1 of 2 times", "  the worst waited 0.40 s instead of 1.00 s"] == lines[2:]


def test_failures_that_nobody_tried_again_are_given_up():
    assert "given up after: truncated 1" == play(("a", 0.0, 1.0, "truncated", None))[-1]


def test_the_same_request_after_a_success_is_a_new_one():
    lines = play(("a", 0.0, 1.0, "completed", None), ("a", 5.0, 6.0, "completed", None))

    assert ["client: 2 requests, 2 attempts (2 took 1)"] == lines


def test_requests_that_are_over_are_forgotten_and_stay_counted():
    verdict = Verdict()
    for number in range(1000):
        verdict.begins(f"good {number}", False, float(number))
        verdict.ends(f"good {number}", "completed", None, number + 0.5)
        verdict.begins(f"bad {number}", False, float(number))
        verdict.ends(f"bad {number}", "cut", None, number + 0.5)

    assert 241 == len(verdict._requests)  # the failures of the last four minutes
    assert "client: 2000 requests, 2000 attempts (2000 took 1)" == verdict.lines()[0]
    assert "given up after: cut 1000" == verdict.lines()[-1]


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"Retry-After": "5"}, 5.0),
        ({"Retry-After": "5", "Retry-After-Ms": "250"}, 0.25),
        ({"Retry-After": "Thu, 01 Jan 1970 00:00:12 GMT"}, 2.0),
        ({"Retry-After": "soon"}, None),
        ({}, None),
    ],
)
def test_the_wait_asked_for_is_read_as_the_sdks_do(headers, wait_s):
    assert wait_s == told_wait_s(headers, 10.0)

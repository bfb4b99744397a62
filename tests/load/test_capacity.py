"""The search: which loads it tries, what it answers, and when a step is decided."""

from __future__ import annotations

import msgspec
import pytest

from harness.gateways import Limits
from harness.load.capacity import Search, Step
from harness.load.objectives import parse_objective
from harness.stream import Session, assemble
from harness.stream.record import Identity, Retry
from harness.wire import grammar_for


def run(search, verdict_of):
    """Play the search against a gateway that answers with `verdict_of(load, phase)`; the loads it tried."""
    tried = []
    while search.load is not None:
        tried.append((search.phase, search.load))
        search.report(verdict_of(search.load, search.phase))
        assert len(tried) < 200, "the search does not end"
    return tried


def limit_at(limit):
    """A gateway that holds up to `limit`."""

    def verdict_of(load, phase):
        if load > limit:
            return "broken"
        return "holds" if phase == "confirm" else "seems_to_hold"

    return verdict_of


def test_it_doubles_then_halves_and_confirms_what_it_answers():
    search = Search(1)

    assert [
        ("grow", 1), ("grow", 2), ("grow", 4), ("grow", 8), ("grow", 16), ("bisect", 12), ("bisect", 10),
        ("bisect", 9), ("confirm", 8),
    ] == run(search, limit_at(8))  # fmt: skip
    assert (8, 9, True) == (search.answer, search.broken, search.is_sure)


@pytest.mark.parametrize("limit", [*range(1, 60), 99, 100, 101, 128, 333, 1000, 4096])
@pytest.mark.parametrize("first", [1, 7, 500])
def test_whatever_the_limit_the_answer_is_within_two_percent_and_no_load_is_wasted(limit, first):
    search = Search(first)
    tried = run(search, limit_at(limit))

    assert search.answer is not None
    assert search.answer <= limit < search.broken
    assert limit - search.answer <= 0.02 * limit
    assert len(tried) <= 24
    assert search.is_sure


def test_it_never_goes_beyond_what_is_allowed():
    search = Search(1, 100)
    tried = run(search, limit_at(10_000))

    assert 100 == max(load for _, load in tried)
    assert (100, None, True) == (search.answer, search.broken, search.is_sure)


def test_nothing_holds():
    search = Search(8)

    assert [("grow", 8), ("bisect", 4), ("bisect", 2), ("bisect", 1)] == run(search, limit_at(0))
    assert (None, 1, False) == (search.answer, search.broken, search.is_sure)


def test_an_answer_that_breaks_when_it_is_confirmed_sends_the_search_below_it():
    """Up to 20 a short look sees nothing; a long one sees that only 13 hold."""

    def verdict_of(load, phase):
        if load > (13 if phase == "confirm" else 20):
            return "broken"
        return "holds" if phase == "confirm" else "seems_to_hold"

    search = Search(1)
    tried = run(search, verdict_of)

    assert ("confirm", 20) in tried
    assert 13 == search.answer
    assert search.is_sure
    assert search.broken == 14


def test_an_inconclusive_answer_ends_the_search_and_is_not_repeated():
    search = Search(4, 4)

    assert [("grow", 4), ("confirm", 4)] == run(
        search, lambda load, phase: "inconclusive" if phase == "confirm" else "seems_to_hold"
    )
    assert 4 == search.answer


def attempt(sent_at, end_s=1.0, outcome="completed", status=200, ttft_s=0.2, final=True):
    session = Session(grammar_for("chat", usage_requested=True), Limits(), 0.0)
    session.end("aborted", 1.0)
    identity = Identity("r", "q", 1, "chat", "g", True, "default", "m", "local", "measure", 0.0)
    plain = assemble(session, identity, 0.0, retry=Retry("none"), final=final)
    first = ttft_s if outcome == "completed" else None
    return msgspec.structs.replace(
        plain, sent_at=sent_at, end_s=end_s, outcome=outcome, status=status, first_token_s=first
    )


def step_of(phase, *objectives, load=8, settle_s=2.0):
    search = Search(load)
    search.phase = phase
    return Step.begin(
        1, search, [parse_objective(o) for o in objectives or ["error_rate < 1%"]], 100.0, settle_s
    )


def test_only_what_began_and_ended_within_the_step_counts():
    step = step_of("grow")
    step.add(attempt(99.9, end_s=5.0))  # began under the load before
    step.add(attempt(100.1, end_s=1.8))  # ended while it settled
    step.add(attempt(100.1, end_s=1.95))
    step.add(attempt(103.0, outcome="aborted"))
    step.add(attempt(103.0, outcome="http_error", status=500, final=False))  # a retry follows
    step.add(attempt(103.0, outcome="http_error", status=429))

    assert (2, 1, 1) == (step.requests, step.good, step.rejected)
    assert {"completed": 1, "http_error": 1} == step.outcomes


def filled(step, good, bad=0):
    for number in range(good + bad):
        outcome = {"outcome": "http_error", "status": 429} if number < bad else {}
        step.add(attempt(103.0, **outcome))
    return step


@pytest.mark.parametrize(
    ("phase", "good", "bad", "measured_s", "verdict"),
    [
        ("grow", 2, 0, 9.0, None),  # too few to say anything
        ("grow", 3, 0, 2.9, None),  # too soon
        ("grow", 3, 0, 3.1, "seems_to_hold"),
        ("grow", 19, 1, 9.0, None),  # too many for now: it goes on
        ("grow", 19, 1, 30.0, "broken"),  # the step is over, and 5 % is not below 1 %
        ("grow", 17, 3, 1.0, "broken"),  # sure at once
        ("grow", 0, 0, 31.0, "broken"),  # nothing ever ended
        ("bisect", 3, 0, 3.1, "seems_to_hold"),
        ("confirm", 298, 0, 29.0, None),
        ("confirm", 299, 0, 10.0, "holds"),
        ("confirm", 150, 0, 31.0, None),  # another half minute, and it will be sure
        ("confirm", 20, 0, 31.0, "inconclusive"),  # two minutes would bring 80 requests
        ("confirm", 20, 1, 31.0, "broken"),
        ("confirm", 290, 0, 121.0, "inconclusive"),
    ],
)
def test_when_a_step_is_decided(phase, good, bad, measured_s, verdict):
    step = filled(step_of(phase), good, bad)

    assert verdict == step.decide(102.0 + measured_s, 30.0)


def test_while_it_settles_nothing_is_decided():
    assert filled(step_of("grow"), 0, 20).decide(101.9, 30.0) is None


@pytest.mark.parametrize(
    ("phase", "measured_s", "verdict"),
    [("grow", 4.0, None), ("grow", 5.0, "seems_to_hold"), ("bisect", 9.0, None),
     ("bisect", 10.0, "seems_to_hold"), ("confirm", 29.0, None), ("confirm", 30.0, "holds")],
)  # fmt: skip
def test_under_an_open_load_a_step_near_the_answer_is_not_cut_short(phase, measured_s, verdict):
    """A queue that is fed too fast grows by a few percent of a second each second."""
    step = filled(step_of(phase), 400)  # more than enough to be sure, were they not of one moment
    step.open = True

    assert verdict == step.decide(102.0 + measured_s, 30.0)


def test_the_objective_furthest_beyond_its_limit_broke_and_refusals_are_a_quota():
    step = step_of("grow", "ttft p95 < 1s", "error_rate < 1%")
    for _ in range(8):
        step.add(attempt(103.0))
    for _ in range(2):
        step.add(attempt(103.0, outcome="http_error", status=429))

    assert "error_rate < 1%" == step.broke.objective.text  # 20 times what is allowed, the other 4 times
    assert "quota" == step.cause


def test_slow_answers_are_saturation_and_failures_are_errors():
    slow = step_of("grow", "ttft p95 < 1s")
    slow.add(attempt(103.0, ttft_s=3.0))
    failing = step_of("grow")
    failing.add(attempt(103.0, outcome="error_event"))

    assert ("latency", "errors") == (slow.cause, failing.cause)
    assert step_of("grow").cause is None


def test_a_step_in_numbers():
    step = filled(step_of("confirm"), 300)
    step.open_samples = [8, 8, 9]
    step.verdict, step.ended = "holds", 112.0
    plain = step.to_plain()

    assert (8, "holds", 300, 10.0, 30.0) == (
        plain["load"], plain["verdict"], plain["requests"], plain["measured_s"], plain["requests_per_s"],
    )  # fmt: skip
    assert (30.0, 8.33) == (
        plain["littles_law"],
        plain["open_streams"],
    )  # 30/s of 1 s each, against what was seen
    assert (0.2, 0.2) == (plain["ttft_p50_s"], plain["ttft_p95_s"])
    assert plain["broke"] is None
    assert {"bad": 0, "n": 300, "low": 0.0, "high": 0.012221}.items() <= plain["objectives"][0].items()

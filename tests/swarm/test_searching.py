"""The capacity search as a shape: against a gateway that is a formula, on a clock that is a number."""

from __future__ import annotations

import io
import itertools

import msgspec
import pytest

from harness.gateways import Limits
from harness.load.settings import UsageError
from harness.observe.totals import Health
from harness.stream import Session, assemble
from harness.stream.record import Attempt, Identity, Retry
from harness.swarm.search_options import search_options
from harness.swarm.search_report import show_search
from harness.swarm.searching import CapacityShape, Watched
from harness.swarm.shaping import PlannedShape, shape_of
from harness.wire import grammar_for


def attempt() -> Attempt:
    session = Session(grammar_for("chat", usage_requested=True), Limits(), 0.0)
    session.end("aborted", 1.0)
    identity = Identity("r", "q", 1, "chat", "g", True, "default", "m", "local", "measure", 0.0)
    return assemble(session, identity, 0.0, retry=Retry("none"), final=True)


PLAIN = attempt()


class Gateway:
    """Holds `slots` streams of half a second; every user beyond them gets a 429 each second."""

    def __init__(self, slots):
        self.slots = slots
        self.now = 1000.0
        self.load = 0
        self.health = Health()
        self.loads = []

    def play(self, shape, seconds=2000):
        """Run the shape to its end as Locust does, a tick a second; returns how long it took."""
        began = self.now
        for _ in range(seconds):
            wish = shape.tick()
            if wish is None:
                return self.now - began
            if wish[0] != self.load:
                self.loads.append(wish[0])
            self.load = wish[0]
            for part in range(2):
                for user in range(self.load):
                    if user < self.slots:
                        shape.add(self.record(part / 2, "completed", 200, 0.5))
                    elif part == 0:
                        shape.add(self.record(0.0, "http_error", 429, 0.01))
            self.now += 1.0
        raise AssertionError("the search does not end")

    def record(self, after_s, outcome, status, end_s):
        first = 0.1 if outcome == "completed" else None
        return msgspec.structs.replace(
            PLAIN,
            sent_at=self.now + after_s,
            end_s=end_s,
            outcome=outcome,
            status=status,
            first_token_s=first,
        )

    def watched(self):
        return Watched(lambda: min(self.load, self.slots), lambda: self.health, lambda: self.now)


def shape_for(gateway, parameters="", slo="error_rate < 1%", unit="users"):
    shape = CapacityShape(search_options(f"capacity:{parameters}", slo), gateway.watched(), unit)
    shape.reset_time()
    return shape


@pytest.mark.parametrize("slots", [3, 8, 32, 128])
def test_the_answer_is_the_number_of_slots(slots):
    gateway = Gateway(slots)
    shape = shape_for(gateway)
    took_s = gateway.play(shape)
    plain = shape.to_plain()

    assert abs(plain["answer"] - slots) <= 0.02 * slots
    assert ("done", True, 0) == (plain["status"], plain["sure"], shape.exit_code)
    assert ("error_rate < 1%", "quota") == (plain["broke_first"], plain["cause"])
    assert plain["broken_at"] > plain["answer"]
    assert took_s < 420
    best = plain["curve"][-1]
    assert best["load"] == plain["answer"]
    assert plain["headroom"]["littles_law"] == pytest.approx(slots, rel=0.15)  # whole seconds
    assert plain["headroom"]["open_streams"] == slots


def test_too_few_requests_in_the_time_are_not_a_sure_answer():
    """One stream of half a second: 240 requests in two minutes, and 299 would be needed."""
    gateway = Gateway(1)
    shape = shape_for(gateway)
    gateway.play(shape)

    assert (1, False, 21) == (shape.search.answer, shape.to_plain()["sure"], shape.exit_code)


def test_nothing_holds():
    gateway = Gateway(0)
    shape = shape_for(gateway)
    gateway.play(shape)

    assert (None, "done", 20) == (shape.search.answer, shape.status, shape.exit_code)


def test_a_load_that_is_allowed_at_most_is_never_exceeded():
    gateway = Gateway(1000)
    shape = shape_for(gateway, "from=3,to=20")
    gateway.play(shape)

    assert 20 == max(gateway.loads) == shape.search.answer
    assert shape.to_plain()["broken_at"] is None


def test_rates_go_in_tenths():
    gateway = Gateway(80)  # 8.0 requests per second, in tenths
    shape = shape_for(gateway, "from=1", unit="rate")
    gateway.play(shape)
    plain = shape.to_plain()

    assert "requests per second" == plain["unit"]
    assert 10 == gateway.loads[0]
    assert plain["answer"] == pytest.approx(8.0, rel=0.05)


def test_a_step_that_the_generator_spoilt_is_thrown_away_and_tried_again():
    gateway = Gateway(4)
    shape = shape_for(gateway, "to=4")
    late = itertools.count()

    def health():
        # The first step alone ends with every arrival late; each step asks twice.
        bad = 100 if next(late) >= 1 else 0
        return Health(arrivals=bad, arrivals_late=bad)

    object.__setattr__(shape._watched, "health", health)
    gateway.play(shape)
    plain = shape.to_plain()

    assert 1 == len(plain["thrown_away"])
    assert ("generator", 1) == (plain["thrown_away"][0]["verdict"], plain["thrown_away"][0]["load"])
    assert "began more than 50.0 ms later" in plain["thrown_away"][0]["reason"]
    assert 4 == plain["answer"]
    assert [1, 2, 4, 4] == [step["load"] for step in plain["curve"]]


def test_a_generator_that_is_always_late_ends_the_search():
    gateway = Gateway(4)
    shape = shape_for(gateway)
    count = itertools.count()
    object.__setattr__(
        shape._watched, "health", lambda: Health(arrivals=100 * (n := next(count)), arrivals_late=100 * n)
    )
    gateway.play(shape)

    assert ("generator", 22) == (shape.status, shape.exit_code)
    assert 3 == len(shape.spoilt)
    assert [] == shape.steps


def test_late_reads_spoil_only_what_is_about_time():
    for slo, spoilt in (("error_rate < 1%", 0), ("ttft p95 < 1s", 3)):
        gateway = Gateway(2)
        shape = shape_for(gateway, slo=slo)
        count = itertools.count()
        object.__setattr__(
            shape._watched,
            "health",
            lambda c=count: Health(events=100 * (n := next(c)), events_uncertain=50 * n),
        )
        gateway.play(shape)
        assert spoilt == len(shape.spoilt)


def test_an_interrupted_search_says_what_it_knew():
    gateway = Gateway(8)
    shape = shape_for(gateway)
    with pytest.raises(AssertionError, match="does not end"):
        gateway.play(shape, seconds=14)
    plain = shape.to_plain()

    assert "interrupted" == plain["status"]
    assert not plain["sure"]
    assert plain["answer"] in (1, 2, 4)
    assert 21 == shape.exit_code


def test_a_second_run_searches_anew():
    gateway = Gateway(2)
    shape = shape_for(gateway)
    gateway.play(shape)
    shape.reset_time()

    assert ([], None, "running") == (shape.steps, shape.search.answer, shape.status)


def test_the_metrics_are_steps_and_the_best_so_far():
    gateway = Gateway(2)
    shape = shape_for(gateway, "to=2")
    gateway.play(shape)
    steps, knee = shape.gauges()

    assert [(1, 1.0), (2, 2.0), (3, 2.0)] == [(step, load) for step, load, _ in steps]
    assert pytest.approx(4.0, rel=0.1) == steps[-1][2]  # two streams of half a second
    assert (3, 2.0) == knee


def test_the_report_names_answer_interval_cause_and_cross_check():
    gateway = Gateway(8)
    shape = shape_for(gateway)
    gateway.play(shape)
    file = io.StringIO()
    show_search(shape.to_plain(), file)
    text = file.getvalue()

    assert "highest load that holds: 8 users\n" in text
    assert "error_rate < 1%: 0 of " in text
    assert "95 % interval 0.00 % to 1." in text
    assert "9 users broke error_rate < 1% (refused with 429: a quota, or slots that are all taken)" in text
    assert "Little's law: rate times duration is 8." in text


@pytest.mark.parametrize(
    ("shape", "slo", "words"),
    [
        ("capacity:", "", '--shape capacity needs an objective: pass --slo "ttft p95 < 1s"'),
        ("capacity:", "ttft p95 < 1", "--slo: ttft: expected a duration with a unit"),
        ("capacity:", "ttfb p95 < 1s", "--slo: unknown metric 'ttfb'"),
        ("capacity:from=0", "error_rate < 1%", "capacity: from: expected a number above 0, got '0'"),
        ("capacity:to=x", "error_rate < 1%", "capacity: to: expected a number above 0, got 'x'"),
        ("capacity:from=5,to=3", "error_rate < 1%", "capacity: to=3 is below from=5"),
        ("capacity:step-time=0s", "error_rate < 1%", "capacity: step-time: expected a duration above zero"),
        ("capacity:settle=2", "error_rate < 1%", "capacity: settle: '2' is not a duration"),
        ("capacity:until=5", "error_rate < 1%", "capacity has no parameter 'until'"),
    ],
)
def test_what_is_no_search_is_one_line(shape, slo, words):
    with pytest.raises(UsageError) as caught:
        search_options(shape, slo)

    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_which_shape_an_option_asks_for(options, settings):
    watched = Gateway(1).watched()

    def made(*arguments, host="sim"):
        return shape_of(options(*arguments), settings("--model", "m", *arguments, host=host), watched)

    assert made() is None
    assert isinstance(made("--shape", "ramp:to=5,over=5s"), PlannedShape)
    search = made("--shape", "capacity:", "--slo", "error_rate < 1%", "--slo", "ttft p95 < 1s")
    assert isinstance(search, CapacityShape)
    assert ["error_rate < 1%", "ttft p95 < 1s"] == [o.text for o in search.options.objectives]
    assert "users" == search.unit
    with pytest.raises(UsageError, match="--slo belongs to --shape capacity"):
        made("--slo", "error_rate < 1%")
    with pytest.raises(UsageError, match="needs a bound: pass to=N"):
        made("--shape", "capacity:", "--slo", "error_rate < 1%", host="http://192.0.2.1:1")
    assert made("--shape", "capacity:to=5", "--slo", "error_rate < 1%", host="http://192.0.2.1:1") is not None


def test_a_planned_shape_changes_the_load_at_once(monkeypatch, options, settings):
    shape = shape_of(
        options("--shape", "spike:base=2,peak=50,after=10s,for=5s"), settings(), Gateway(1).watched()
    )
    assert shape is not None
    monkeypatch.setattr(shape, "get_run_time", lambda: 0.0)
    assert (2, 2.0) == shape.tick()
    monkeypatch.setattr(shape, "get_run_time", lambda: 10.0)
    assert (50, 48.0) == shape.tick()
    monkeypatch.setattr(shape, "get_run_time", lambda: 75.0)
    assert shape.tick() is None

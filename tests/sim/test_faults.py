from itertools import islice, pairwise

import pytest

from harness.sim.faults import FAULTS
from harness.sim.plan import HANG, LAST_BODY, PROGRESS, STALL

OUTCOMES = {
    "completed", "unterminated", "empty", "error_event", "http_error", "not_a_stream", "stalled",
    "truncated", "cut", "no_response", "protocol_error",
}  # fmt: skip
ENDLESS = {"ping-only", "zero-width-stall"}
NAMED_EVERYWHERE = {
    "ok", "slow-first-token", "stall-pre", "stall-mid", "stall-pre-dead", "stall-mid-dead", "error-mid",
    "truncate", "reset", "http-429", "http-500", "not-a-stream",
}  # fmt: skip


def test_the_names_that_checks_rely_on_are_there():
    assert set() == NAMED_EVERYWHERE - set(FAULTS)


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_says_in_one_line_what_it_does(name):
    about = FAULTS[name].about

    assert "\n" not in about
    assert 10 <= len(about) <= 90


@pytest.mark.parametrize("gateway", ["generic", "hopbase", "sabiuco"])
@pytest.mark.parametrize("protocol", ["chat", "responses", "messages"])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_every_plan_can_be_told_to_its_end(make_script, gateway, protocol, count):
    for name, fault in FAULTS.items():
        for spelling in ("official", "abbreviated"):
            script = make_script(protocol, gateway, count, spelling)
            plan = list(islice(fault.plan(script), 500))

            assert plan, name
            assert (len(plan) == 500) == (name in ENDLESS), name
            assert fault.outcome_for(script) in OUTCOMES, name


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_that_hangs_is_a_stall_and_says_when_it_begins(make_script, name):
    script = make_script()
    kinds = [kind for _, kind, _ in islice(FAULTS[name].plan(script), 500)]
    stalled = FAULTS[name].outcome_for(script) == "stalled"

    assert stalled == (STALL in kinds)
    if HANG in kinds and not stalled:
        assert name in ("terminal-hang", "error-then-hang")


@pytest.mark.parametrize("gateway", ["generic", "hopbase", "sabiuco"])
def test_slow_is_beyond_the_warning_and_within_the_hard_limit_at_any_scale(make_script, gateway):
    for scale in (1.0, 0.02):
        limits = make_script(gateway=gateway, scale=scale).circumstances.limits
        for name, limit in (("slow-first-token", limits.first_token), ("late-headers", limits.headers)):
            plan = list(FAULTS[name].plan(make_script(gateway=gateway, scale=scale)))
            first_s = plan[0][0] if name == "late-headers" else plan[3][0] - 0.2

            assert limit.warn_s < first_s < limit.fail_s, (name, scale)


def test_a_stall_that_comes_back_does_so_beyond_the_hard_limit(make_script):
    script = make_script(gateway="hopbase")
    dues = [due for due, kind, _ in FAULTS["stall-resume"].plan(script) if kind <= LAST_BODY]
    longest = max(b - a for a, b in pairwise(dues))

    assert script.circumstances.limits.progress.fail_s < longest


def test_the_outcome_of_a_missing_terminal_depends_on_protocol_and_promise(make_script):
    outcomes = [FAULTS["unterminated"].outcome_for(make_script(p)) for p in ("chat", "responses", "messages")]

    assert ["unterminated", "truncated", "unterminated"] == outcomes


def test_the_name_of_a_tool_is_progress_where_it_comes_in_a_delta(make_script):
    counts = {
        protocol: sum(kind == PROGRESS for _, kind, _ in FAULTS["tool-call"].plan(make_script(protocol)))
        for protocol in ("chat", "responses", "messages")
    }

    assert {"chat": 7, "responses": 6, "messages": 6} == counts

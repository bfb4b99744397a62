"""Users who leave: rules, choice, and the moment; without a network."""

from __future__ import annotations

from random import Random

import pytest

from harness.gateways import Limit, Limits
from harness.load.abandon import AbandonError, Leave, LeavingSession, choose, parse_abandon
from harness.stream import Session
from harness.wire import grammar_for


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("5%@2s", (Leave(0.05, False, after_s=2.0),)),
        ("100 % @ 300ms", (Leave(1.0, False, after_s=0.3),)),
        ("5%@first-token", (Leave(0.05, True),)),
        ("2.5%@first-token+20tokens", (Leave(0.025, True, tokens=20),)),
        ("5%@first-token+1token, 1%@first-token+1s", (Leave(0.05, True, 0, 1), Leave(0.01, True, 1.0))),
        ("", ()),
    ],
)  # fmt: skip
def test_rules(text, rules):
    assert rules == parse_abandon(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("5@2s", "expected SHARE%@WHEN"),
        ("5%@2", "'2' is not a duration"),
        ("5%@first-tokens", "expected SHARE%@WHEN"),
        ("5%@first-token+20", "expected SHARE%@WHEN"),
        ("0%@2s", "above 0 and up to 100 %"),
        ("101%@2s", "above 0 and up to 100 %"),
        ("5.5.5%@2s", "expected SHARE%@WHEN"),
        ("60%@2s,60%@3s", "add up to more than 100 %"),
    ],
)
def test_what_is_no_rule_is_one_line(text, words):
    with pytest.raises(AbandonError) as caught:
        parse_abandon(text)

    assert words in str(caught.value)


def test_each_rule_is_followed_by_its_share_and_the_same_seed_chooses_the_same():
    rules = parse_abandon("5%@2s,20%@3s")

    def chosen(seed):
        random = Random(seed)
        return [choose(rules, random) for _ in range(10_000)]

    assert abs(chosen(1).count(rules[0]) - 500) < 3 * (10_000 * 0.05 * 0.95) ** 0.5
    assert abs(chosen(1).count(rules[1]) - 2000) < 3 * (10_000 * 0.20 * 0.80) ** 0.5
    assert chosen(1) == chosen(1)
    assert chosen(1) != chosen(2)
    assert choose((), Random(1)) is None


def token(text="a"):
    return b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n' % text.encode()


END = b'data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


def streaming(rule, planned=10.0):
    """A session whose headers came at 10.1."""
    session = Session(
        grammar_for("chat", usage_requested=False), Limits(first_token=Limit(fail_s=60.0)), planned
    )
    leaving = LeavingSession(session, parse_abandon(rule)[0], planned)
    leaving.connected(10.0, connect_s=0.0, tls_s=None, peer=None, reused=False)
    leaving.sent(10.0)
    leaving.headers(200, {"content-type": "text/event-stream"}, 10.1)
    return session, leaving


def test_they_leave_at_the_time_counted_from_the_planned_start():
    session, leaving = streaming("5%@2s")
    leaving.feed(token(), 10.5)

    assert 12.0 == leaving.deadline()
    assert not leaving.expire(11.999)
    assert leaving.expire(12.0)
    leaving.end("closed", 12.001)
    assert ("abandoned", 1) == (session.outcome, session.progress_count)


def test_a_limit_that_comes_first_still_fires():
    session, leaving = streaming("5%@2m")

    assert 70.0 == leaving.deadline()
    assert leaving.expire(70.0)
    leaving.end("closed", 70.0)
    assert "stalled" == session.outcome


def test_they_count_tokens_from_the_first_one():
    session, leaving = streaming("5%@first-token+2tokens")
    for number in range(2):
        leaving.feed(token(), 10.2 + number)
        assert leaving.deadline() is None
    before = leaving.urgency
    leaving.feed(token(), 12.5)

    assert leaving.urgency > before  # or the transport would not look at the deadline again
    assert 12.5 == leaving.deadline()
    assert leaving.expire(12.5)
    leaving.end("closed", 12.5)
    assert ("abandoned", 3) == (session.outcome, session.progress_count)


def test_who_has_their_whole_answer_stays():
    session, leaving = streaming("5%@first-token")
    leaving.feed(token() + END, 10.5)

    assert leaving.deadline() != 10.5
    leaving.end("eof", 10.6)
    assert "completed" == session.outcome


def test_a_connection_that_is_closed_for_another_reason_was_not_left():
    session, leaving = streaming("5%@2m")
    leaving.end("closed", 11.0)

    assert "aborted" == session.outcome


def test_an_end_that_comes_first_is_what_it_is():
    session, leaving = streaming("5%@2s")
    leaving.feed(token(), 10.5)
    leaving.end("cut", 11.0)

    assert "cut" == session.outcome
    assert leaving.ended

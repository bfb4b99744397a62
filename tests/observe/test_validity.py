from __future__ import annotations

import pytest

from harness.observe.totals import Conservation, Health
from harness.observe.validity import judge

WHOLE = Conservation(100, 100, 0)


def codes(health=None, conservation=WHOLE, **given):
    return [reason.code for reason in judge(health or Health(), conservation, **given).reasons]


@pytest.mark.parametrize(
    ("health", "expected"),
    [
        # one percent is still tolerated: p99 is what is judged
        (Health(events=1000, events_uncertain=10), []),
        (Health(events=1000, events_uncertain=11), ["uncertain_events"]),
        # hub lag counts only where it is the clock
        (Health(attempts=100, hub_waits=100, hub_waits_late=50), []),
        (Health(attempts=100, attempts_user_clock=1, hub_waits=100, hub_waits_late=50), []),
        (Health(attempts=100, attempts_user_clock=100, hub_waits=100, hub_waits_late=1), []),
        (Health(attempts=100, attempts_user_clock=100, hub_waits=100, hub_waits_late=2), ["hub_lag"]),
        # dropped arrivals are no late ones
        (Health(arrivals=200, arrivals_late=2), []),
        (Health(arrivals=200, arrivals_late=3), ["late_arrivals"]),
        (Health(arrivals=200, arrivals_dropped=2), []),
        (Health(arrivals=200, arrivals_dropped=3), ["dropped_arrivals"]),
    ],
)
def test_one_percent_is_the_line(health, expected):
    assert codes(health) == expected


def test_what_is_lost_is_never_tolerated():
    assert codes(lost_records=1) == ["lost_records"]
    assert codes(dead_workers=["w2"]) == ["dead_workers"]
    assert codes(conservation=Conservation(100, 98, 1)) == ["conservation"]


def test_reasons_are_sentences_with_numbers():
    verdict = judge(
        Health(events=2000, events_uncertain=50, uncertain_max_s=1.4),
        Conservation(10, 7, 1),
        lost_records=1234,
        dead_workers=["w2", "w5"],
        threshold_s=0.05,
    )

    assert verdict.valid is False
    assert [reason.text for reason in verdict.reasons] == [
        "2.5 % of 2,000 events were read so late that their arrival is uncertain by more than 50.0 ms "
        "(worst 1.40 s)",
        "1,234 records could not be written",
        "2 workers died or went missing: w2, w5",
        "10 attempts started, but 7 ended and 1 are open: 2 have no outcome",
    ]


def test_a_clean_run_is_valid_and_an_empty_one_is_neither():
    assert judge(Health(), WHOLE).valid is True
    empty = judge(Health(), Conservation(0, 0, 0))
    assert empty.valid is None
    assert empty.reasons[0].text == "nothing was measured: no attempt started"

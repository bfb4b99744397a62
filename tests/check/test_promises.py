"""Each promise once kept and once broken by the simulator: no more is called broken than what it broke.

Where breaking one thing breaks another as well (no proxy survives the silence of missing keepalives), the row
says so.
"""

import pytest
from gevent.pool import Pool

from harness.gateways import load
from harness.judge.check import promises_of

UNTESTABLE = {"H17", "H43", "H44", "B02", "B03", "B30", "B31"}


@pytest.mark.parametrize("gateway", ["hopbase", "sabiuco"])
def test_a_faithful_gateway_keeps_every_promise_that_streams_can_show(gateway, seen_of, verdicts):
    found = {f.id: f.verdict for f in verdicts(gateway, seen_of(gateway))}

    wrong = {
        i: v for i, v in found.items() if v.status != ("not testable here" if i in UNTESTABLE else "kept")
    }
    assert {} == wrong


BREAKS = [
    # the promise, the situation, what is played for it, in which protocol, what else breaks with it
    ("H01", "healthy", "wrong-type", "chat", ()),
    ("H02", "healthy", "not-a-stream", "responses", ()),
    ("H03", "healthy", "html-200", "messages", ()),
    ("H04", "healthy", "events-after-terminal", "chat", ("H20",)),
    ("H05", "healthy", "empty-data", "chat", ("H06", "H13", "H18")),
    ("H05", "healthy", "no-block-start", "messages", ("H04", "H29")),
    ("H06", "healthy", "unknown-event", "messages", ("H29",)),
    ("H07", "healthy", "rewritten", "messages", ()),
    ("H08", "thinking", "keepalive-stops", "chat", ("H10",)),  # no comment: no proxy waits for that long
    ("H09", "healthy", "comment-inside-event", "messages", ("H08", "H11")),  # far too many, of another text
    ("H10", "thinking", "keepalive-stops", "messages", ("H08",)),
    ("H12", "healthy", "id-and-keepalive", "chat", ("H05", "H08", "H11", "H41")),
    ("H13", "healthy", "keepalive-as-data", "responses", ("H04", "H06", "H23")),
    ("H14", "stuck-before", "stall-pre", "chat", ("H16",)),
    ("H14", "stuck-within", "error-mid", "messages", ()),  # an error, but far too early
    ("H15", "stuck-once", "stuck-restarted", "messages", ()),
    ("H16", "stuck-within", "stall-truncate", "responses", ()),
    ("H16", "stuck-within", "stall-mid", "chat", ("H14",)),
    ("H18", "healthy", "two-data-lines", "chat", ("H13",)),
    ("H18", "healthy", "named-chat-events", "chat", ("H04",)),
    ("H19", "healthy", "text-elsewhere", "chat", ()),
    ("H20", "healthy", "unterminated", "chat", ()),
    ("H21", "healthy", "usage-first", "chat", ("H04",)),
    ("H21", "healthy", "wrong-total", "chat", ("H04",)),
    ("H22", "healthy", "changing-id", "chat", ("H04",)),
    ("H23", "healthy", "no-event-lines", "responses", ("H04",)),
    ("H24", "healthy", "other-event-names", "responses", ("H04",)),
    ("H25", "healthy", "created-without-status", "responses", ()),
    ("H26", "healthy", "delta-without-place", "responses", ()),
    ("H27", "healthy", "changing-id", "responses", ("H04", "H05")),
    ("H27", "healthy", "wrong-total", "responses", ("H04",)),
    ("H28", "healthy", "events-after-terminal", "responses", ("H04",)),
    ("H29", "healthy", "no-block-start", "messages", ("H04", "H05")),
    ("H30", "healthy", "usage-missing", "messages", ("H05",)),
    ("H31", "healthy", "start-without-role", "messages", ()),
    ("H32", "break", "broken-off-500", "chat", ()),
    ("H33", "break", "reset", "responses", ()),
    ("H34", "break", "error-anthropic", "chat", ()),
    ("H35", "break", "error-flat", "responses", ()),
    ("H36", "break", "error-without-event-line", "messages", ("H39", "H40")),
    ("H37", "break", "truncate", "messages", ("H33",)),
    ("H38", "break", "error-then-hang", "messages", ()),
    ("H38", "break", "error-then-done", "messages", ()),
    ("H39", "break", "error-rate-limit", "messages", ()),
    ("H40", "break", "error-as-field", "chat", ("H33",)),
    ("H41", "healthy", "id-and-keepalive", "messages", ("H08", "H11")),
    ("H42", "healthy", "same-id", "messages", ()),
    ("B01", "healthy", "burst", "chat", ()),
    ("B04", "no-reasoning", "long-thinking", "chat", ("B24",)),
    ("B05", "healthy", "wrong-type", "chat", ()),
    ("B06", "healthy", "two-data-lines", "chat", ("B20",)),
    ("B07", "healthy", "unterminated", "chat", ()),
    ("B08", "healthy", "http-404", "chat", ("B05", "B09", "B10")),
    ("B09", "no-key", "ok", "chat", ()),
    ("B10", "healthy", "http-400", "chat", ("B05", "B08", "B09")),
    ("B11", "healthy", "changing-id", "chat", ()),
    ("B12", "healthy", "role-with-text", "chat", ()),
    ("B13", "healthy", "text-elsewhere", "chat", ("B12",)),
    ("B14", "healthy", "usage-first", "chat", ()),
    ("B15", "healthy", "usage-missing", "chat", ()),
    ("B16", "healthy", "usage-wrong", "chat", ()),
    ("B17", "healthy", "terminal-hang", "chat", ()),
    ("B17", "healthy", "events-after-terminal", "chat", ("B07",)),
    ("B18", "thinking", "keepalive-stops", "chat", ("B19",)),
    ("B19", "thinking", "keepalive-stops", "chat", ("B18",)),
    ("B20", "healthy", "keepalive-as-data", "chat", ("B06",)),
    ("B21", "thinking", "stall-truncate", "chat", ("B07", "B14")),
    ("B22", "healthy", "reasoning", "chat", ()),
    ("B23", "fast", "long-thinking", "chat", ("B04",)),
    ("B24", "no-reasoning", "reasoning", "chat", ()),
    ("B25", "healthy", "empty-data", "chat", ("B06", "B20", "B26")),
    ("B26", "healthy", "no-choices", "chat", ()),
    ("B27", "break", "truncate", "chat", ()),
    ("B28", "break", "error-rate-limit", "chat", ()),
    ("B29", "break", "error-then-done", "chat", ()),
]


SLOW = {"thinking", "stuck-before", "stuck-within", "stuck-once", "fast", "no-reasoning"}


def gateway_of(promise):
    return "hopbase" if promise.startswith("H") else "sabiuco"


@pytest.fixture(scope="module")
def slow_ones(ask_broken, seen_of):
    """Those that only wait, asked beside each other."""
    rows = {(gateway_of(p), situation, fault, protocol, None) for p, situation, fault, protocol, _ in BREAKS}
    pool = Pool(4)
    for row in sorted(rows):
        if row[1] in SLOW:
            pool.apply_async(ask_broken, row)
    pool.join(raise_error=True)


@pytest.mark.usefixtures("slow_ones")
@pytest.mark.parametrize(("promise", "situation", "fault", "protocol", "also"), BREAKS)
def test_what_the_simulator_breaks_is_called_broken_and_nothing_else(
    promise, situation, fault, protocol, also, broken_by
):
    broken, found = broken_by(gateway_of(promise), situation, fault, protocol)

    assert {promise, *also} == broken
    line = found[promise].evidence[0]
    assert f"Z {protocol} {situation} check-" in line
    assert "(gateway: req_" in line


# What a gateway promises about its keepalives and its words is in its profile: one that plays another file.
PLAYED = [
    ("H08", "hopbase", "thinking", ('interval = "10s"', 'interval = "14s"')),
    ("H11", "hopbase", "thinking", ('text = "hopbase-keepalive"', 'text = "keepalive"')),
    ("H39", "hopbase", "break", ('message = "Response stream interrupted, please retry"', 'message = "Oh."')),
    ("B18", "sabiuco", "thinking", ('interval = "15s"', 'interval = "19s"')),
    ("B18", "sabiuco", "thinking", ('text = "ok"', 'text = "still here"')),
    ("B28", "sabiuco", "break", ('code = "stream_interrupted"', 'code = "cut"')),
]


@pytest.mark.parametrize(("promise", "gateway", "situation", "change"), PLAYED)
def test_a_gateway_with_other_habits_breaks_that_promise_alone(
    promise, gateway, situation, change, start_sim, broken_by
):
    protocol = "messages" if promise == "H39" else "chat"

    broken, _ = broken_by(gateway, situation, None, protocol, start_sim(gateway, change))

    assert {promise} == broken


def test_every_promise_that_streams_can_show_is_broken_once():
    promises = {p.id for name in ("hopbase", "sabiuco") for p in promises_of(load(name))}

    assert promises - UNTESTABLE == {row[0] for row in BREAKS} | {row[0] for row in PLAYED}

from rich.console import Console

from harness.commands.live import picture, strip
from harness.load.exchange import open_session, prepare
from harness.load.prompts import Prompt

HEADERS = {"content-type": "text/event-stream"}


def stream(settings, **headers):
    """A session whose request went out at 100.0 s, and its call."""
    chosen = settings("--gateway", "hopbase", host="http://127.0.0.1:9")
    call = prepare(chosen, "chat", Prompt.of("Hello"), request="r", key=None, nonce=None)
    session = open_session(chosen, call)
    session.opened = 100.0
    session.sent(100.0)
    session.headers(200, HEADERS | headers, 100.1)
    return session, call


def token(session, t):
    session.feed(b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"Hi"}}]}\n\n', t)


def text_of(renderable, width=100):
    console = Console(width=width, color_system=None, file=None)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get().splitlines()


def test_the_strip_shows_the_strongest_sign_of_each_tenth_of_a_second_and_now_at_the_right(settings):
    session, _ = stream(settings)
    token(session, 101.02)
    session.feed(b": hopbase-keepalive\n\n", 101.04)
    session.feed(b": hopbase-keepalive\n\n", 101.52)
    session.feed(b"data: [DONE]\n\n", 101.95)

    assert "▮    ·   ■" == strip(session, 102.01, 10).plain
    assert "▮    ·   ■" + " " * 10 == strip(session, 103.01, 20).plain
    assert " " * 10 == strip(session, 110.0, 10).plain


def test_what_is_waited_for_and_how_long_it_may_take(settings):
    session, call = stream(settings)
    token(session, 101.0)
    session.feed(b": hopbase-keepalive\n\n", 111.0)
    head, counts, waits, _, legend = text_of(picture(session, call, 121.0))

    assert "chat http://127.0.0.1:9/v1/chat/completions  streaming  21.0 s" == head.strip()
    assert "1 tokens · 1 comments · 0 pings" == counts.strip()
    assert "last byte 10.0 s ago of 30.0 s   last token 20.0 s ago of 2m45s" == waits.strip()
    assert "▮ token" in legend


def test_a_simulator_is_named_as_soon_as_it_answers(settings):
    session, call = stream(settings, **{"x-harness-sim": "hopbase"})

    assert text_of(picture(session, call, 100.2), 200)[0].strip().endswith("SIMULATED")

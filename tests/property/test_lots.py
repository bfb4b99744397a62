"""The quick way of an event and the general one say the same of a stream: every time, count and judgement."""

from dataclasses import dataclass
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from harness.gateways import load
from harness.stream import Identity, Retry, Session, assemble
from harness.stream.record import Attempt
from harness.wire import grammar_for
from harness.wire.sse import SseParser
from tests.unit.wire import frames as f

IDENTITY = Identity("r", "q", 1, "chat", "g", False, "s", "m", "w", "measure", 0.0)

OPENING = {"chat": [f.ROLE], "responses": [f.CREATED, f.ITEM, f.PART], "messages": [f.START, f.block()]}
TOKEN = {"chat": f.HI, "responses": f.text("Hi"), "messages": f.delta()}
REST = {
    "chat": [
        f.chunk(" "),
        f.chunk("\u200b"),
        f.chunk(reasoning="Hm"),
        f.chunk("Ho", index=1),
        f.STOP,
        f.DONE,
    ],
    "responses": [f.text(" "), f.text("\u200b"), f.resp("queued"), f.PART_DONE, f.COMPLETED],
    "messages": [f.delta(" "), f.PING, f.BLOCK_STOP, f.message_delta(), f.MESSAGE_STOP],
}
ANYWHERE = [b": ka\n\n", b"data: {}\n\n", b"event: ping\n\n", b"data: [", b"]\n\n", b"\r\n"]
QUICK_S = [0.02, 0.02, 0.02, 0.02, 0.019, 0.021, 0.0, 0.5, 1.5, 11.0, 31.0, 61.0]


@dataclass
class Run:
    """Reads of one stream, each with the pause before it: runs of tokens, with something else between."""

    protocol: str
    gateway: str
    watch: bool
    reads: list[tuple[bytes, float]]
    peeks: set[int]  # after these reads somebody looks at the open stream


@st.composite
def runs(draw: st.DrawFn) -> Run:
    protocol = draw(st.sampled_from(sorted(TOKEN)))
    token, pause = TOKEN[protocol], st.sampled_from(QUICK_S)
    reads = [(frame, 0.01) for frame in OPENING[protocol]]
    for _ in range(draw(st.integers(1, 4))):
        reads += [(token, draw(pause)) for _ in range(draw(st.integers(0, 3)))]
        reads += [(token, 0.02)] * draw(st.sampled_from([0, 1, 31, 32, 33, 70]))
        frames = st.sampled_from([*REST[protocol], *ANYWHERE, token + token])
        reads += [(frame, draw(pause)) for frame in draw(st.lists(frames, max_size=3))]
    return Run(
        protocol,
        draw(st.sampled_from(["generic", "hopbase", "sabiuco"])),
        draw(st.booleans()),
        reads,
        draw(st.sets(st.integers(0, len(reads)), max_size=5)),
    )


def play(run: Run) -> tuple[Session, Attempt, list[float]]:
    profile = load(run.gateway)
    handed: list[float] = []
    session = Session(
        grammar_for(run.protocol), profile.limits, 100.0, keepalive=profile.keepalive,
        on_stall="watch" if run.watch else "close", on_gaps=handed.extend,
    )  # fmt: skip
    session.connected(100.0, connect_s=0.0, tls_s=None, peer=None, reused=False)
    session.sent(100.0)
    session.headers(200, {"content-type": "text/event-stream"}, 100.5)
    now = 100.5
    for number, (data, pause_s) in enumerate(run.reads):
        until = now + pause_s
        while (due := session.deadline()) is not None and due <= until and not session.ended:
            now = max(now, due)
            if session.expire(now):
                session.end("closed", now)
        now = until
        session.feed(data, now, now)
        if number in run.peeks:
            assert session.events >= session.progress_count >= len(session.gaps)
    session.end("eof", now + 0.01)
    return session, assemble(session, IDENTITY, 0.0, retry=Retry("none"), final=False), handed


@given(runs())
def test_both_ways_agree(run: Run) -> None:
    quick, record, handed = play(run)
    with patch.object(SseParser, "single", lambda self, data: None):
        general, expected, others = play(run)

    assert record == expected
    assert quick.timeline() == general.timeline()
    assert quick.gaps == general.gaps
    assert handed == others == list(general.gaps)
    assert quick.soft_stall_counts == general.soft_stall_counts
    assert (quick.thinking_s, quick.dead_s) == (general.thinking_s, general.dead_s)


def test_the_quick_way_is_taken() -> None:
    """Or the test above compares the general way with itself."""
    run = Run("chat", "generic", False, [(f.ROLE, 0.01), *[(f.HI, 0.02)] * 40], set())
    with (
        patch.object(Session, "_feed", autospec=True, side_effect=Session._feed) as feed,
        patch.object(Session, "_alone", autospec=True, side_effect=Session._alone) as alone,
    ):
        _, record, _ = play(run)

    assert record.progress.count == 40
    assert feed.call_count == 1
    assert alone.call_count <= 6  # the first, and a gap longer by the last digit of its float

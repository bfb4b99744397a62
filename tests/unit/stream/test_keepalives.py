"""Signs of life: what counts as one, the intervals, and the two kinds of promise."""

import pytest

from harness.gateways import load
from harness.stream.record import KeepaliveRecord
from tests.unit.stream.play import Play
from tests.unit.wire.frames import DONE, HI, PING, ROLE, START, STOP, block, chunk, data, delta, resp

HOPBASE = b": hopbase-keepalive\n\n"
OK = b": ok\n\n"


class TestCounting:
    """Comments and pings are counted apart, however they look."""

    @pytest.mark.parametrize(
        ("protocol", "frame", "comments", "pings"),
        [
            ("chat", HOPBASE, 1, 0),
            ("chat", b":\n", 1, 0),
            ("chat", b":\n:\n:\n\n", 3, 0),
            ("chat", chunk("\u200b"), 0, 1),
            ("chat", data({"type": "ping"}), 0, 1),
            ("chat", data({}, "ping"), 0, 1),
            ("chat", b"event: ping\n\n", 0, 1),
            ("chat", b"event: keepalive\ndata:\n\n", 0, 1),
            ("chat", chunk(""), 0, 0),
            ("chat", data({"choices": []}), 0, 0),
            ("messages", PING, 0, 1),
            ("messages", b"event: ping\n\n", 0, 1),
            ("messages", START + block() + delta("\ufeff"), 0, 1),
            ("responses", resp("output_text.delta", item_id="SSE-Keep-Alive", delta="\u200b"), 0, 1),
            ("responses", resp("in_progress"), 0, 0),
        ],
    )
    def test_one(self, protocol: str, frame: bytes, comments: int, pings: int) -> None:
        record = Play(protocol).head(1.0).read(2.0, frame).end(3.0)

        assert (comments, pings) == (record.keepalive.comments, record.keepalive.pings)
        assert (0, None) == (record.progress.count, record.first_token_s)
        assert ((2.0 if comments or pings else None), 2.0) == (record.keepalive.first_s, record.first_byte_s)

    def test_the_text_is_that_of_the_first_comment_escaped_and_cut(self) -> None:
        record = Play().head(1.0).read(2.0, b": a\x1b[0m" + b"x" * 1000 + b"\n" + OK).end(3.0)

        assert "a\\x1b[0m" + "x" * 92 == record.keepalive.text
        assert None is Play("messages").head(1.0).read(2.0, PING).end(3.0).keepalive.text

    def test_no_promise_counts_intervals_between_keepalives(self) -> None:
        play = Play().head(1.0).read(2.0, OK).read(5.0, HI).read(6.0, OK).read(7.0, OK).read(7.5, PING)
        record = play.end(8.0)

        assert KeepaliveRecord(3, 1, 2.0, 0.5, 1.833333, 4.0, 0, 0, "ok") == record.keepalive
        assert [("comment", 4.0), ("comment", 1.0), ("ping", 0.5)] == play.session.keepalive_gaps


class TestPeriodic:
    """HopBase: one every 10 s whatever else flows; late after 16 s, a violation after 22 s."""

    def test_kept(self) -> None:
        play = Play(gateway="hopbase").head(1.0).read(2.0, ROLE).every(1.0, HI, begin=3.0, end=10.0)
        play.read(11.0, HOPBASE).every(1.0, HI, begin=12.0, end=20.0).read(21.0, HOPBASE)
        record = play.read(22.0, STOP + DONE).end(22.1)

        assert KeepaliveRecord(2, 0, 11.0, 10.0, 10.0, 10.0, 0, 0, "hopbase-keepalive") == record.keepalive
        assert [] == play.soft

    @pytest.mark.parametrize(
        ("at", "late", "violations"), [(17.0, 0, 0), (17.5, 1, 0), (23.0, 1, 0), (23.5, 0, 1)]
    )
    def test_the_first_counts_from_the_headers(self, at: float, late: int, violations: int) -> None:
        play = Play(gateway="hopbase").head(1.0).every(5.0, ROLE, begin=2.0, end=12.0).read(at, HOPBASE)
        record = play.end(at + 1)

        assert (late, violations) == (record.keepalive.late, record.keepalive.violations)

    @pytest.mark.parametrize(
        ("interval", "expected"),
        [(16.0, []), (16.5, ["keepalive_late"]), (22.0, ["keepalive_late"]), (22.5, ["keepalive_violation"])],
    )
    def test_between_two_of_them_although_text_flows(self, interval: float, expected: list[str]) -> None:
        play = Play(gateway="hopbase").head(1.0).read(2.0, HOPBASE).every(1.0, HI, begin=3.0, end=16.0)
        play.read(2.0 + interval, HOPBASE)
        record = play.end(30.0)

        assert expected == [soft[0] for soft in play.soft]
        assert interval == record.keepalive.gap_max_s

    def test_at_the_end_without_another_one(self) -> None:
        play = Play(gateway="hopbase").head(1.0).read(2.0, HOPBASE).every(1.0, HI, begin=3.0, end=30.0)
        play.read(30.5, STOP + DONE).end(31.0)

        assert [("keepalive_violation", "mid_stream", 2.0, 30.5)] == play.soft

    def test_a_short_stream_needs_none(self) -> None:
        play = Play(gateway="hopbase").head(1.0).read(2.0, ROLE + HI + STOP + DONE)
        play.end(2.1)

        assert [] == play.soft

    def test_a_silent_stall_breaks_it_too(self) -> None:
        play = Play(gateway="hopbase").head(1.0).read(2.0, HOPBASE).read(3.0, ROLE + HI).wait(99.0)
        record = play.record()

        assert [("keepalive_violation", "mid_stream", 2.0, 33.0)] == play.soft
        assert ("stalled", 1) == (record.outcome, record.keepalive.violations)


class TestIdle:
    """Sabiuco: one after 15 s without a byte; late after 23.5 s, a violation after 32 s."""

    def test_kept(self) -> None:
        play = Play(gateway="sabiuco").head(1.0).read(2.0, ROLE).every(15.0, OK, begin=17.0, end=62.0)
        play.every(1.0, HI, begin=63.0, end=90.0).read(90.5, STOP + DONE)
        record = play.end(91.0)

        assert KeepaliveRecord(4, 0, 17.0, 15.0, 15.0, 15.0, 0, 0, "ok") == record.keepalive
        assert ["slow_progress"] == [soft[0] for soft in play.soft]  # the first token

    def test_nothing_is_due_while_text_flows(self) -> None:
        play = Play(gateway="sabiuco").head(1.0).every(10.0, HI, begin=2.0, end=102.0)
        play.end(103.0)

        assert [] == play.soft

    @pytest.mark.parametrize(
        ("silence", "expected"),
        [(23.5, []), (24.0, ["keepalive_late"]), (32.0, ["keepalive_late"]), (33.0, ["keepalive_violation"])],
    )
    @pytest.mark.parametrize("frame", [OK, ROLE])
    def test_a_silence_is_judged_whatever_ends_it(
        self, silence: float, expected: list[str], frame: bytes
    ) -> None:
        play = Play(gateway="sabiuco").head(1.0).read(2.0, ROLE).read(2.0 + silence, frame)

        assert expected == [soft[0] for soft in play.soft]

    def test_before_the_first_byte_it_counts_from_the_headers(self) -> None:
        profile = load("sabiuco").with_limit("first_byte", 100.0)
        play = Play(gateway=profile).head(1.0).read(26.0, OK)

        assert [("keepalive_late", "before_first_byte", 1.0, 26.0)] == play.soft

    def test_the_first_interval_counts_from_the_headers(self) -> None:
        record = Play(gateway="sabiuco").head(1.0).read(16.0, OK).end(17.0)

        assert (15.0, 15.0) == (record.keepalive.gap_min_s, record.keepalive.gap_max_s)

    def test_the_silence_at_the_end_counts(self) -> None:
        play = Play(gateway="sabiuco").head(1.0).read(2.0, ROLE + HI)
        play.end(30.0, "cut")

        assert ["keepalive_late"] == [soft[0] for soft in play.soft]

    def test_an_interval_is_the_silence_before_it(self) -> None:
        play = Play(gateway="sabiuco").head(1.0).read(2.0, ROLE).read(10.0, HI).read(25.0, OK)
        record = play.read(30.0, HI + OK).end(31.0)

        assert (15.0, 15.0, 2) == (
            record.keepalive.gap_min_s, record.keepalive.gap_max_s, record.keepalive.comments
        )  # fmt: skip


class TestWaiting:
    """Waiting is thinking while keepalives cover it, else dead."""

    def test_covered_and_not(self) -> None:
        play = (
            Play(gateway="hopbase")
            .head(1.0)
            .read(2.0, ROLE)
            .read(12.0, HOPBASE)
            .read(20.0, HI)
            .read(20.5, HI)
        )
        play.read(25.0, HI)
        play.end(25.2)

        # 10 s ended by a keepalive, 8 s begun by one; half a second is the pace; 4.5 s without any.
        assert (18.0, 4.5) == (play.session.thinking_s, play.session.dead_s)

    def test_a_keepalive_covers_only_the_silence_it_begins_or_ends(self) -> None:
        play = Play().head(1.0).read(2.0, ROLE).read(12.0, HOPBASE).read(12.5, HI).read(17.5, HI)
        play.end(17.6)

        assert (10.0, 5.0) == (play.session.thinking_s, play.session.dead_s)

    def test_a_named_ping_ends_a_silence_as_a_comment_does(self) -> None:
        """Its name is known by then, so it is read the quick way."""
        play = Play("messages").head(1.0).read(1.5, START + block() + PING)
        play.read(2.0, delta()).read(12.0, PING)
        play.end(12.1)

        assert (10.0, 0.0) == (play.session.thinking_s, play.session.dead_s)

    def test_a_broken_promise_covers_nothing(self) -> None:
        play = Play(gateway="hopbase").head(1.0).read(2.0, ROLE).read(27.0, HOPBASE)
        play.end(27.1)

        assert (0.0, 25.0) == (play.session.thinking_s, play.session.dead_s)

    def test_the_silence_of_a_dead_stall_is_dead(self) -> None:
        play = Play().head(1.0).read(2.0, ROLE + HI).wait(99.0)

        assert (0.0, 60.0) == (play.session.thinking_s, play.session.dead_s)


def test_a_flood_of_comments_keeps_memory_bounded() -> None:
    play = Play().head(1.0)
    for step in range(30):
        play.session.feed(b":\n" * 1000, 5002.0 + step)
    record = play.end(40.0)
    kept = play.session.timeline()

    assert 30_000 == record.keepalive.comments
    assert 10_000 == len(play.session.keepalive_gaps)
    assert 5096 > len(kept["t"]) == len(kept["kind"])
    assert 30_000 == len(kept["t"]) + kept["dropped"]

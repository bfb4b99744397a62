"""Every limit, what it is called when it fires, and that nothing fires which should not."""

from dataclasses import replace

import pytest

from harness.gateways import Limit, Limits, load
from harness.stream.outcome import STALL_CLASSES
from tests.unit.stream.play import T0, Play, stall
from tests.unit.wire.frames import (
    CREATED,
    DONE,
    GOOD_CHAT,
    HI,
    ITEM,
    PING,
    ROLE,
    START,
    STOP,
    block,
    chunk,
    data,
    delta,
    resp,
    text,
)

KEEPALIVE = b": hopbase-keepalive\n\n"
GENERIC = load("generic").limits  # headers 60, first_byte 30, first_token 120, progress 120, silence 60


def only(**fail_s: float) -> Limits:
    """Limits of which only these are set."""
    return Limits(**{name: Limit(None, seconds) for name, seconds in fail_s.items()})


class TestHard:
    """One test per limit: class, phase, limit, since when, until when."""

    def test_connect(self) -> None:
        record = Play(connect=False).wait(1000.0).record()

        assert ("stalled", ("no_connect", "connect", 5.0, 0.0, 5.0, True)) == (record.outcome, stall(record))

    def test_headers(self) -> None:
        record = Play().wait(1000.0).record()

        assert ("stalled", ("no_headers", "before_headers", 60.0, 0.0, 60.0, True)) == (
            record.outcome, stall(record)
        )  # fmt: skip
        assert (None, None) == (record.status, record.silence_end_s)

    def test_headers_of_a_gateway_without_that_limit(self) -> None:
        """The first token is late then, but what is missing is the headers."""
        record = Play(limits=only(first_token=10.0)).wait(1000.0).record()

        assert ("no_headers", "before_headers", 10.0, 0.0, 10.0, True) == stall(record)

    def test_first_byte(self) -> None:
        record = Play().head(3.0).wait(1000.0).record()

        assert ("headers_no_body", "before_first_byte", 30.0, 3.0, 33.0, True) == stall(record)
        assert (200, 3.0, None) == (record.status, record.headers_s, record.first_byte_s)

    def test_first_token_while_keepalives_come(self) -> None:
        record = Play().head(1.0).every(10.0, KEEPALIVE, begin=2.0, end=300.0).record()

        assert ("keepalive_only_pre", "before_first_token", 120.0, 0.0, 120.0, True) == stall(record)
        assert (12, None, 2.0) == (record.keepalive.comments, record.first_token_s, record.first_byte_s)

    def test_first_token_while_lifecycle_events_come(self) -> None:
        play = Play("responses").head(1.0).read(2.0, CREATED)
        record = play.every(10.0, resp("in_progress"), begin=12.0, end=300.0).record()

        assert ("keepalive_only_pre", "before_first_token", 120.0, 0.0, 120.0, True) == stall(record)
        assert 2.0 == record.first_event_s

    def test_first_token_while_whitespace_comes(self) -> None:
        """Blanks are output, but nobody sees them: the clock of the first token runs on."""
        record = Play().head(1.0).every(10.0, chunk(" "), begin=2.0, end=300.0).record()

        assert ("keepalive_only_pre", "before_first_token", 120.0, 0.0, 120.0, True) == stall(record)
        assert (12, None, 112.0) == (record.progress.count, record.first_token_s, record.last_token_s)

    def test_first_token_after_one_byte(self) -> None:
        record = Play(limits=only(first_token=20.0)).head(1.0).read(2.0, KEEPALIVE).wait(1000.0).record()

        assert ("dead_silence_pre", "before_first_token", 20.0, 0.0, 20.0, True) == stall(record)

    def test_silence_before_the_first_token(self) -> None:
        record = Play().head(1.0).read(2.0, ROLE).wait(1000.0).record()

        assert ("dead_silence_pre", "before_first_token", 60.0, 2.0, 62.0, True) == stall(record)
        assert 60.0 == record.silence_end_s

    def test_progress_while_keepalives_come(self) -> None:
        play = Play().head(1.0).read(2.0, ROLE + HI).every(10.0, KEEPALIVE, begin=12.0, end=1000.0)
        record = play.record()

        assert ("keepalive_only_mid", "mid_stream", 120.0, 2.0, 122.0, True) == stall(record)
        assert 12 == record.keepalive.comments

    @pytest.mark.parametrize(
        ("protocol", "said", "alive"),
        [
            ("messages", START + block() + delta(), PING),
            ("messages", START + block() + delta(), delta("\u200b")),
            (
                "responses",
                CREATED + ITEM + text("Hi"),
                resp("output_text.delta", item_id="x", delta="\u200b"),
            ),
            ("chat", ROLE + HI, chunk("\u200b")),
            ("chat", ROLE + HI, chunk("")),
            ("chat", ROLE + HI, data({"choices": [], "usage": {"prompt_tokens": 1}})),
        ],
    )
    def test_progress_while_signs_of_life_come(self, protocol: str, said: bytes, alive: bytes) -> None:
        record = Play(protocol).head(1.0).read(2.0, said).every(10.0, alive, begin=12.0, end=500.0).record()

        assert ("keepalive_only_mid", "mid_stream", 120.0, 2.0, 122.0, True) == stall(record)
        assert 1 == record.progress.count

    def test_progress_without_a_byte_since(self) -> None:
        play = Play(limits=only(progress=30.0)).head(1.0).read(2.0, ROLE + HI + KEEPALIVE)

        assert ("dead_silence_mid", "mid_stream", 30.0, 2.0, 32.0, True) == stall(play.wait(99.0).record())

    def test_silence_in_the_middle(self) -> None:
        record = Play().head(1.0).read(2.0, ROLE + HI).read(5.0, KEEPALIVE).wait(1000.0).record()

        assert ("dead_silence_mid", "mid_stream", 60.0, 5.0, 65.0, True) == stall(record)

    @pytest.mark.parametrize("half", [HI[:30], b"event: x\n", b"d", b": keep", HI[:-1]])
    def test_half_an_event_fires_at_half_the_limit(self, half: bytes) -> None:
        mid = Play().head(1.0).read(2.0, ROLE + HI + half).wait(1000.0).record()
        pre = Play().head(1.0).read(2.0, half).wait(1000.0).record()

        assert ("half_event", "mid_stream", 30.0, 2.0, 32.0, True) == stall(mid)
        assert ("half_event", "before_first_token", 30.0, 2.0, 32.0, True) == stall(pre)

    def test_a_half_that_is_made_whole_is_none(self) -> None:
        play = Play().head(1.0).read(2.0, ROLE + HI[:30]).read(31.0, HI[30:]).wait(1000.0)

        assert ("dead_silence_mid", "mid_stream", 60.0, 31.0, 91.0, True) == stall(play.record())

    def test_a_comment_line_without_its_blank_line_is_no_half(self) -> None:
        record = Play().head(1.0).read(2.0, ROLE + HI + b": ok\n").wait(1000.0).record()

        assert ("dead_silence_mid", "mid_stream", 60.0, 2.0, 62.0, True) == stall(record)

    def test_total(self) -> None:
        record = Play().head(1.0).every(10.0, HI, begin=2.0, end=1000.0).record()

        assert ("over_total", "mid_stream", 600.0, 0.0, 600.0, True) == stall(record)
        assert 60 == record.progress.count

    def test_of_two_limits_at_one_moment_the_more_telling_names_it(self) -> None:
        """Silence says more than the lack of progress, half an event more than silence."""
        silent = Play(limits=only(silence=30.0, progress=30.0)).head(1.0).read(2.0, HI).wait(99.0)
        half = Play(limits=only(silence=60.0, progress=30.0)).head(1.0).read(2.0, HI + b"d").wait(99.0)

        assert "dead_silence_mid" == (stall(silent.record()) or ("",))[0]
        assert "half_event" == (stall(half.record()) or ("",))[0]

    def test_without_limits_nothing_fires(self) -> None:
        play = Play(limits=Limits()).head(1.0).read(2.0, ROLE + HI)

        assert None is play.session.deadline()
        assert not play.session.expire(T0 + 1e9)

    def test_150_seconds_of_thinking_under_keepalives_are_no_stall_of_a_gateway_that_promises_them(
        self,
    ) -> None:
        play = Play(gateway="hopbase").head(1.0).read(2.0, ROLE + HI)
        play.every(10.0, KEEPALIVE, begin=11.0, end=151.0).read(152.0, HI + STOP + DONE)

        assert ("completed", None) == (play.end(152.1).outcome, play.record().stall)
        assert [("slow_progress", "mid_stream", 2.0, 152.0)] == play.soft

    def test_nothing_is_taken_between_the_stall_and_its_close(self) -> None:
        play = Play().head(1.0).read(2.0, ROLE + HI)
        assert play.session.expire(T0 + 62.0)
        play.session.feed(HI + STOP + DONE, T0 + 62.1)
        assert play.session.expire(T0 + 62.2)
        record = play.end(62.3, "closed")

        assert ("stalled", 1, 62.1) == (record.outcome, record.progress.count, record.last_byte_s)
        assert ("dead_silence_mid", "mid_stream", 60.0, 2.0, 62.0, True) == stall(record)

    def test_a_late_wake_up_fires_nothing_that_bytes_have_answered(self) -> None:
        play = Play().head(1.0).read(2.0, ROLE + HI)
        play.session.feed(HI, T0 + 61.0)  # the driver reads before it asks

        assert not play.session.expire(T0 + 63.0)
        assert T0 + 121.0 == play.session.deadline()


class TestDeadline:
    """The driver sleeps until `deadline`; `urgency` says that it must look again."""

    def test_in_every_phase(self) -> None:
        play = Play(connect=False)
        session = play.session
        found = [session.deadline()]
        session.sent(T0)
        found.append(session.deadline())
        session.headers(200, {"content-type": "text/event-stream"}, T0 + 1)
        found.append(session.deadline())
        session.feed(KEEPALIVE, T0 + 2)
        found.append(session.deadline())
        session.feed(HI, T0 + 3)
        found.append(session.deadline())
        session.feed(HI[:9], T0 + 4)
        found.append(session.deadline())
        session.feed(HI[9:] + STOP + DONE, T0 + 5)
        found.append(session.deadline())

        assert [T0 - 0.25 + 5, T0 + 60, T0 + 31, T0 + 62, T0 + 63, T0 + 34, T0 + 10] == found

    def test_urgency_grows_whenever_the_deadline_comes_nearer(self) -> None:
        play = Play(connect=False)
        session = play.session
        steps = [
            lambda: session.sent(T0),
            lambda: session.headers(200, {"content-type": "text/event-stream"}, T0 + 1),
            lambda: session.feed(KEEPALIVE, T0 + 2),
            lambda: session.feed(HI, T0 + 3),
            lambda: session.feed(HI[:9], T0 + 4),
            lambda: session.feed(HI[9:], T0 + 5),
            lambda: session.feed(HI[:9], T0 + 6),
            lambda: session.feed(HI[9:] + STOP + DONE, T0 + 7),
        ]
        for step in steps:
            before, urgency = session.deadline(), session.urgency
            step()
            after = session.deadline()
            assert before is not None
            assert after is not None
            assert after >= before or session.urgency > urgency

    def test_a_model_with_limits_of_its_own(self) -> None:
        fast = load("sabiuco").limits_for("sabiuco-rapido")
        play = Play(gateway="sabiuco", limits=fast).head(0.1).read(1.5, ROLE + HI)

        assert [("slow_progress", "before_first_token", 0.0, 1.5)] == play.soft


class TestSoft:
    """What is overdue beyond a warning limit is counted and ends nothing."""

    def test_slow_headers(self) -> None:
        play = Play().head(16.0)

        assert [("slow_progress", "before_headers", 0.0, 16.0)] == play.soft
        assert [] == Play().head(15.0).soft

    def test_slow_first_token(self) -> None:
        play = Play().head(1.0).read(2.0, ROLE).read(31.0, HI)

        assert [("slow_progress", "before_first_token", 0.0, 31.0)] == play.soft

    def test_slow_progress_each_time(self) -> None:
        play = Play().head(1.0).read(2.0, HI).read(18.0, HI).read(19.0, HI).read(40.0, HI)

        assert [
            ("slow_progress", "mid_stream", 2.0, 18.0),
            ("slow_progress", "mid_stream", 19.0, 40.0),
        ] == play.soft

    @pytest.mark.parametrize("reason", ["eof", "cut", "aborted", "abandoned"])
    def test_slow_at_the_end_without_another_token(self, reason: str) -> None:
        play = Play().head(1.0).read(2.0, HI)
        play.end(20.0, reason)  # type: ignore[arg-type]

        assert [("slow_progress", "mid_stream", 2.0, 20.0)] == play.soft

    def test_slow_to_the_terminal(self) -> None:
        play = Play().head(1.0).read(2.0, ROLE + HI).read(20.0, STOP + DONE)
        play.end(20.1)

        assert [("slow_progress", "mid_stream", 2.0, 20.0)] == play.soft

    def test_a_first_token_that_never_came(self) -> None:
        play = Play().head(1.0).read(2.0, ROLE)
        play.end(40.0, "aborted")

        assert [("slow_progress", "before_first_token", 0.0, 40.0)] == play.soft

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("connect", ("slow_progress", "connect", -0.25, 0.0)),
            ("first_byte", ("slow_progress", "before_first_byte", 1.0, 2.0)),
            ("silence", ("slow_progress", "mid_stream", 2.0, 3.0)),
            ("total", ("slow_progress", "after_terminal", 0.0, 3.5)),
        ],
    )
    def test_every_limit_can_warn(self, name: str, expected: tuple[str, str, float, float]) -> None:
        limits = Limits(**{name: Limit(0.2, None)})
        play = Play(limits=limits).head(1.0).read(2.0, ROLE + HI).read(3.0, STOP + DONE)
        play.end(3.5)

        assert [expected] == play.soft

    def test_burst_in_one_read(self) -> None:
        play = Play().head(1.0).read(2.0, ROLE).read(9.0, HI * 21).read(10.0, HI * 20)

        assert [("burst", "mid_stream", 2.0, 9.0)] == play.soft

    def test_burst_of_a_whole_answer_in_many_reads(self) -> None:
        play = Play().head(1.0).read(2.0, ROLE)
        for step in range(21):
            play.read(2.0 + step / 1000, HI)
        play.read(2.03, STOP + DONE).end(2.1)

        assert [("burst", "after_terminal", 2.0, 2.02)] == play.soft

    def test_a_short_or_slower_answer_is_no_burst(self) -> None:
        short = Play().head(1.0).read(2.0, ROLE + HI * 19)
        short.end(2.1)
        slow = Play().head(1.0).every(0.01, HI, begin=2.0, end=2.3)
        slow.end(2.4)

        assert ([], []) == (short.soft, slow.soft)

    def test_all_are_counted_and_fifty_are_kept(self) -> None:
        play = Play(limits=Limits(progress=Limit(1.0, None))).head(1.0).every(2.0, HI, begin=2.0, end=142.0)

        assert (70, 50) == (play.session.stalls.counts["slow_progress"], len(play.soft))

    def test_the_hard_stall_is_not_counted_again_as_a_soft_one(self) -> None:
        play = Play().head(1.0).read(2.0, HI).every(10.0, KEEPALIVE, begin=12.0, end=500.0)

        assert ("stalled", []) == (play.record().outcome, play.soft)


class TestWatch:
    """With ``watch`` a hard stall is noted, and the stream may come back."""

    def test_it_came_back(self) -> None:
        play = Play(on_stall="watch").head(1.0).read(2.0, ROLE + HI)
        play.every(10.0, KEEPALIVE, begin=12.0, end=132.0)
        assert play.session.stalls.watched
        record = play.read(140.0, HI + STOP + DONE).end(140.1)

        assert ("completed", ("keepalive_only_mid", "mid_stream", 120.0, 2.0, 140.0, False)) == (
            record.outcome, stall(record)
        )  # fmt: skip
        assert [122.0] == play.fired

    def test_it_never_came_back(self) -> None:
        play = (
            Play(on_stall="watch")
            .head(1.0)
            .read(2.0, ROLE + HI)
            .every(10.0, KEEPALIVE, begin=12.0, end=999.0)
        )
        record = play.record()

        assert ("stalled", ("keepalive_only_mid", "mid_stream", 120.0, 2.0, 600.0, True)) == (
            record.outcome, stall(record)
        )  # fmt: skip
        assert ([122.0, 600.0], 600.0) == (play.fired, record.end_s)

    def test_it_stalled_twice(self) -> None:
        play = Play(on_stall="watch").head(1.0).read(2.0, ROLE + HI).read(70.0, HI).wait(131.0)
        record = play.read(150.0, HI + STOP + DONE).end(150.1)

        assert ("dead_silence_mid", "mid_stream", 60.0, 70.0, 150.0, False) == stall(record)
        assert ("dead_silence_mid", "mid_stream", 2.0, 70.0) in play.soft
        assert [62.0, 130.0] == play.fired

    def test_a_second_stall_shorter_than_a_silence_before_it_ends_too(self) -> None:
        play = Play(limits=only(silence=0.2), on_stall="watch").head(1.0).read(1.1, ROLE).read(1.2, HI)
        play.read(2.1, HI).read(2.11, HI).read(2.12, HI).wait(2.4)
        assert play.session.stalls.watched

        play.read(2.5, HI)

        assert not play.session.stalls.watched
        assert [1.4, 2.32] == play.fired

    def test_its_end_ends_the_stall(self) -> None:
        play = Play(on_stall="watch").head(1.0).read(2.0, ROLE + HI).wait(80.0)
        record = play.end(90.0)

        assert ("truncated", ("dead_silence_mid", "mid_stream", 60.0, 2.0, 90.0, False)) == (
            record.outcome, stall(record)
        )  # fmt: skip

    def test_a_keepalive_alone_is_no_coming_back(self) -> None:
        play = Play(on_stall="watch").head(1.0).read(2.0, ROLE + HI).wait(70.0).read(75.0, KEEPALIVE)

        assert play.session.stalls.watched
        assert T0 + 600.0 == play.session.deadline()

    def test_headers_that_came_late(self) -> None:
        play = Play(on_stall="watch").wait(61.0).head(70.0).read(71.0, ROLE + HI + STOP + DONE)
        record = play.end(71.1)

        assert ("completed", ("no_headers", "before_headers", 60.0, 0.0, 71.0, False)) == (
            record.outcome, stall(record)
        )  # fmt: skip

    def test_an_error_frame_ends_it(self) -> None:
        play = Play(on_stall="watch").head(1.0).read(2.0, ROLE + HI).wait(80.0)
        record = play.read(85.0, data({"error": {"type": "api_error"}})).end(85.1)

        assert ("error_event", 85.0, False) == (
            record.outcome, *((record.stall.ended_s, record.stall.fatal) if record.stall else ())
        )  # fmt: skip

    def test_no_connection_and_the_total_are_not_watched(self) -> None:
        unconnected = Play(connect=False, on_stall="watch").wait(99.0)
        endless = Play(on_stall="watch").head(1.0).every(10.0, HI, begin=2.0, end=700.0)

        assert ("stalled", "stalled") == (unconnected.record().outcome, endless.record().outcome)


class TestUncertain:
    """A read that came late may hold the bytes of a whole window: nothing in it accuses the gateway."""

    def test_a_wide_window_charges_no_gap_and_keeps_its_bound(self) -> None:
        play = Play().head(1.0).read(2.0, ROLE + HI).read(40.0, HI * 3, earliest=39.0).read(41.0, HI)
        record = play.read(41.1, STOP + DONE).end(41.2)

        assert (2, 1.0) == (record.uncertain_events, record.uncertain_max_s)
        assert (5, 1.0, 40.0) == (
            record.progress.count,
            record.progress.gap_max_s,
            record.progress.gap_max_at_s,
        )
        assert [] == play.soft
        assert (37.0, 2.0) == (record.silence_max_s, record.silence_max_at_s)

    def test_the_last_event_of_a_late_read_is_exact(self) -> None:
        play = Play().head(1.0).read(2.0, ROLE + HI).read(12.0, HI, earliest=3.0)
        record = play.end(12.1)

        assert (0, None, 10.0) == (record.uncertain_events, record.uncertain_max_s, record.progress.gap_max_s)
        assert (10.0, 2.0) == (record.silence_max_s, record.silence_max_at_s)

    def test_a_narrow_window_is_exact(self) -> None:
        record = Play().head(1.0).read(2.0, ROLE + HI).read(12.0, HI * 2, earliest=11.996).end(12.1)

        assert (0, 10.0) == (record.uncertain_events, record.progress.gap_max_s)

    def test_an_unknown_window_is_taken_as_exact(self) -> None:
        record = Play().head(1.0).read(2.0, ROLE + HI).read(12.0, HI * 2).end(12.1)

        assert (0, 10.0) == (record.uncertain_events, record.progress.gap_max_s)

    def test_keepalives_of_a_late_read_break_no_promise(self) -> None:
        """Three comments at once after 26 s: two of them came earlier, nobody knows when."""
        late = Play(gateway="hopbase").head(1.0).read(2.0, KEEPALIVE).read(28.0, KEEPALIVE * 3, earliest=4.0)
        ours = late.end(28.1)
        theirs = Play(gateway="hopbase").head(1.0).read(2.0, KEEPALIVE).read(28.0, KEEPALIVE * 3).end(28.1)

        assert (0, 0, 4) == (ours.keepalive.late, ours.keepalive.violations, ours.keepalive.comments)
        assert (0, 1, 4) == (theirs.keepalive.late, theirs.keepalive.violations, theirs.keepalive.comments)

    def test_many_events_of_a_late_read_are_no_burst(self) -> None:
        play = Play().head(1.0).read(2.0, ROLE).read(9.0, HI * 30, earliest=8.0)
        play.end(9.1)

        assert [] == play.soft

    def test_a_first_token_of_a_late_read_has_a_window(self) -> None:
        """It may have come with the read before; one that came last, or alone, has none."""
        late = Play().head(1.0).read(2.0, ROLE).read(9.0, HI * 2, earliest=8.5)
        last = Play().head(1.0).read(2.0, ROLE).read(9.0, KEEPALIVE + HI, earliest=8.5)
        good = Play().head(1.0).read(2.0, ROLE).read(9.0, HI).read(12.0, HI * 2, earliest=11.0)

        assert [0.5, 0.0, 0.0] == [p.session.first_token_window_s for p in (late, last, good)]

    def test_lag_keeps_its_maximum(self) -> None:
        play = Play()
        for lag_s in (0.001, 0.004, 0.002):
            play.session.lag(lag_s)

        assert 0.004 == play.end(1.0, "aborted").lag_max_s


def test_limits_of_a_time_scale_fire_as_much_sooner() -> None:
    profile = load("hopbase").scaled(0.01)
    play = Play(gateway=profile).head(0.01).read(0.02, ROLE + HI)
    record = play.every(0.1, KEEPALIVE, begin=0.1, end=5.0).record()

    assert ("keepalive_only_mid", "mid_stream", 1.65, 0.02, 1.67, True) == stall(record)
    assert (0, 0) == (record.keepalive.late, record.keepalive.violations)


def test_an_override_holds() -> None:
    limits = GENERIC.with_override("progress", 3.0).with_override("progress.warn", 1.0)
    play = Play(limits=limits).head(1.0).read(2.0, HI).read(3.5, HI).every(1.0, KEEPALIVE, begin=4.0, end=9.0)

    assert ("keepalive_only_mid", "mid_stream", 3.0, 3.5, 6.5, True) == stall(play.record())
    assert [("slow_progress", "mid_stream", 2.0, 3.5)] == play.soft


def test_this_file_knows_every_class() -> None:
    from pathlib import Path

    here = Path(__file__).read_text("utf-8") + Path(__file__).with_name("test_keepalives.py").read_text(
        "utf-8"
    )
    here += Path(__file__).with_name("test_outcomes.py").read_text("utf-8")

    assert [] == [name for name in STALL_CLASSES if f'"{name}"' not in here]


def test_a_good_stream_has_no_stall_of_any_kind() -> None:
    play = Play(limits=replace(GENERIC)).head(0.2).read(0.4, ROLE)
    play.every(0.02, HI, begin=0.5, end=1.5).read(1.6, STOP + DONE)
    record = play.end(1.61)

    assert ("completed", None, [], []) == (record.outcome, record.stall, record.soft_stalls, play.fired)
    assert GOOD_CHAT  # the other files play it whole

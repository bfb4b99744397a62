from harness.sim.faults import FAULTS
from harness.sim.plan import CLOSE, CONTENT, EVENT, HANG, HEAD, MUTE, PART, RAW, RESET, STALL, TERMINAL
from harness.sim.playback import Beat

PERIODIC = Beat(b": beat\n\n", 10.0, periodic=True, promised=True)
IDLE = Beat(b": ok\n\n", 15.0, periodic=False, promised=True)


def token(due, text=b"t"):
    return (due, CONTENT, b"data: " + text + b"\n\n")


def test_each_token_is_written_when_it_is_due_whatever_was_late_before(stage):
    plan = [(0.0, HEAD, b""), *(token(0.2 + k * 0.02, b"%d" % k) for k in range(100))]
    played = stage.play(plan)
    stage.now = 0.3  # the server itself was busy
    stage.run(3.0)

    assert [0.3] == played.link.times_of(b"data: 0\n")
    assert [1.0] == played.link.times_of(b"data: 40\n")
    assert [2.18] == played.link.times_of(b"data: 99\n")


def test_a_healthy_stream_is_chunked_ended_and_logged(stage, make_script):
    played = stage.play(FAULTS["ok"].plan(make_script()), until=5.0)

    assert played.link.bytes.startswith(b"HEAD\r\n\r\n")
    assert played.link.bytes.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
    assert "finished" == played.link.ended
    line = stage.lines[0]
    assert ("completed", 6, 0, False) == (line.outcome, line.tokens, line.comments, line.client_left)
    assert 0.0 == line.first_byte_s
    assert 0.2 == round(line.first_content_s, 6)
    assert 0.32 == round(line.end_s, 6)


def test_reasoning_and_empty_first_chunks_do_not_count_as_first_content(stage, make_script):
    stage.play(FAULTS["reasoning"].plan(make_script()), until=5.0)

    assert 0.26 == round(stage.lines[0].first_content_s, 6)  # the fourth token
    assert 6 == stage.lines[0].tokens


def test_the_periodic_keepalive_flows_through_the_whole_stream(stage):
    plan = [(0.0, HEAD, b""), *(token(float(k)) for k in range(35)), (100.0, EVENT, b"e\n\n")]
    played = stage.play(plan, beat=PERIODIC, until=45.0)

    assert [10.0, 20.0, 30.0, 40.0] == played.link.times_of(b": beat")
    assert 4 == played.line.comments


def test_the_idle_keepalive_comes_only_after_silence_and_then_each_interval(stage):
    plan = [(0.0, HEAD, b""), *(token(float(k)) for k in range(20)), token(60.0), (70.0, HANG, b"")]
    played = stage.play(plan, beat=IDLE, until=80.0)

    assert [34.0, 49.0, 75.0] == played.link.times_of(b": ok")


def test_no_keepalive_is_written_inside_an_event(stage):
    plan = [(0.0, HEAD, b""), (5.0, PART, b"data: a"), (12.0, CONTENT, b"b\n\n"), (15.0, HANG, b"")]
    played = stage.play(plan, beat=PERIODIC, until=19.0)

    assert [12.0] == played.link.times_of(b": beat")
    assert played.link.bytes.index(b"b\n\n") < played.link.bytes.index(b": beat")


def test_a_muted_stream_is_silent_for_ever(stage):
    plan = [(0.0, HEAD, b""), token(1.0), (0.0, MUTE, b""), (0.0, STALL, b""), (0.0, HANG, b"")]
    played = stage.play(plan, beat=PERIODIC, until=500.0)

    assert [] == played.link.times_of(b": beat")
    assert played.link.ended is None


def test_a_stall_without_promised_keepalives_shows_them_all_the_same(stage):
    plan = [(0.0, HEAD, b""), token(1.0), (0.0, STALL, b""), (0.0, HANG, b"")]
    played = stage.play(plan, until=35.0)

    assert [11.0, 21.0, 31.0] == played.link.times_of(b": keepalive")


def test_keepalives_that_nobody_promised_do_not_disturb_a_healthy_stream(stage):
    played = stage.play([(0.0, HEAD, b""), token(1.0), token(40.0)], until=50.0)

    assert [] == played.link.times_of(b": keepalive")


def test_a_client_that_leaves_stops_the_stream_at_once(stage):
    told = []

    def plan():
        yield 0.0, HEAD, b""
        for k in range(100):
            told.append(k)
            yield token(float(k))

    played = stage.play(plan(), until=9.5)
    played.playback.left(stage.now)
    stage.run(200.0)

    assert 11 == len(told)  # ten written, one waiting for its time
    assert 10 == len(played.link.times_of(b"data:"))
    assert ("abandoned", True, 9.5) == (played.line.outcome, played.line.client_left, played.line.end_s)
    assert 1 == len(stage.lines)


def test_a_client_that_leaves_a_stall_was_right_to(stage):
    plan = [(0.0, HEAD, b""), token(1.0), (0.0, STALL, b""), (0.0, HANG, b"")]
    played = stage.play(plan, outcome="stalled", until=100.0)
    played.playback.left(stage.now)

    assert ("stalled", True) == (played.line.outcome, played.line.client_left)


def test_a_client_that_leaves_before_the_stall_began_has_abandoned(stage):
    plan = [(0.0, HEAD, b""), token(1.0), token(50.0), (0.0, STALL, b""), (0.0, HANG, b"")]
    played = stage.play(plan, outcome="stalled", until=10.0)
    played.playback.left(stage.now)

    assert "abandoned" == played.line.outcome


def test_after_the_terminal_the_outcome_is_settled_whoever_closes(stage):
    plan = [(0.0, HEAD, b""), token(1.0), (2.0, TERMINAL, b"data: [DONE]\n\n"), (0.0, HANG, b"")]
    played = stage.play(plan, until=10.0)
    played.playback.left(stage.now)

    assert ("completed", True) == (played.line.outcome, played.line.client_left)


def test_a_stream_that_is_open_when_the_server_stops_is_logged_as_such(stage):
    played = stage.play([(0.0, HEAD, b""), token(1.0), token(50.0)], until=10.0)
    played.playback.stop(stage.now)

    assert ("aborted", False, 1) == (played.line.outcome, played.line.client_left, played.line.tokens)


def test_closing_and_resetting_leave_the_body_without_its_end(stage):
    for kind, ended in ((CLOSE, "closed"), (RESET, "reset")):
        played = stage.play(
            [(0.0, HEAD, b""), token(0.1), (0.2, kind, b"")], outcome="cut", until=stage.now + 1.0
        )

        assert ended == played.link.ended
        assert b"0\r\n\r\n" not in played.link.bytes
        assert "cut" == played.line.outcome


def test_a_raw_answer_is_not_framed(stage):
    played = stage.play([(0.0, RAW, b"HTTP/1.1 500 X\r\nContent-Length: 2\r\n\r\n{}")], until=1.0)

    assert b"HTTP/1.1 500 X\r\nContent-Length: 2\r\n\r\n{}" == played.link.bytes
    assert 0.0 == played.line.first_byte_s


def test_a_client_without_chunks_gets_the_body_as_it_is(stage):
    played = stage.play([(0.0, HEAD, b""), token(0.1)], chunked=False, until=1.0)

    assert b"HEAD\r\n\r\ndata: t\n\n" == played.link.bytes


def test_a_client_that_does_not_read_is_not_written_to(stage):
    played = stage.play([(0.0, HEAD, b""), token(1.0), token(2.0)], until=0.5)
    played.link.congested = True
    stage.run(5.0)
    before = played.line.tokens
    played.link.congested = False
    stage.run(6.0)

    assert (0, 2) == (before, played.line.tokens)


def test_a_queued_stream_beats_while_it_waits_and_its_offsets_count_from_the_request(stage):
    played = stage.play([(0.0, HEAD, b""), token(1.0)], beat=PERIODIC, start=False)
    played.playback.open_early(stage.now)
    stage.run(25.0)
    played.playback.start(stage.now)
    stage.run(30.0)

    assert [10.0, 20.0] == played.link.times_of(b": beat")
    assert 1 == played.link.bytes.count(b"HEAD")
    assert (10.0, 26.0) == (played.line.first_byte_s, played.line.first_content_s)


def test_pieces_of_an_event_are_not_written_to_a_client_that_is_gone(stage):
    plan = [(0.0, HEAD, b""), token(1.0), *((2.0, PART, b"x") for _ in range(50)), token(3.0)]
    played = stage.play(plan, until=1.5)
    played.link.lost = True
    stage.run(2.5)
    played.playback.left(stage.now)

    assert 1 == len(played.link.times_of(b"x\r\n"))
    assert "abandoned" == played.line.outcome

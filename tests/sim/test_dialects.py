import pytest

from harness.sim.dialects import DialectError, dialect
from harness.sim.faults import FAULTS
from harness.sim.plan import CONTENT, EVENT, LAST_BODY, PART


def steps(make_script, spelling, protocol="chat", fault="ok", count=20):
    chosen = dialect(spelling)
    return list(chosen.apply(FAULTS[fault].plan(make_script(protocol, count=count, spelling=spelling))))


def body(plan):
    return b"".join(data for _, kind, data in plan if kind <= LAST_BODY)


@pytest.mark.parametrize("spelling", ["split", "split-utf8", "gathered", "pre-output-buffered"])
@pytest.mark.parametrize("protocol", ["chat", "responses", "messages"])
def test_segmentation_changes_no_byte(make_script, spelling, protocol):
    assert body(steps(make_script, "official", protocol)) == body(steps(make_script, spelling, protocol))


def test_a_split_event_is_several_pieces_of_which_the_last_counts(make_script):
    plan = steps(make_script, "split")

    assert 20 == sum(kind == CONTENT for _, kind, _ in plan)
    assert 100 < sum(kind == PART for _, kind, _ in plan)


def test_letters_are_cut_in_their_middle(make_script):
    cuts = [data for _, kind, data in steps(make_script, "split-utf8") if kind == PART]

    assert 3 <= len(cuts)
    for data in cuts:
        with pytest.raises(UnicodeDecodeError, match="unexpected end"):
            data.decode()


def test_gathered_tokens_leave_together_and_never_too_early(make_script):
    dues = [round(due, 6) for due, kind, _ in steps(make_script, "gathered") if kind == CONTENT]

    assert [0.34] * 8 + [0.5] * 8 + [0.6] * 4 == dues  # 0.2 + 7 × 0.02, 0.2 + 15 × 0.02, the finish chunk


def test_a_buffering_gateway_shows_nothing_before_output(make_script):
    plan = steps(make_script, "pre-output-buffered", "responses")
    dues = [round(due, 6) for due, kind, _ in plan if kind in (EVENT, CONTENT)]

    assert 0.2 == min(dues)
    assert b"" == body(steps(make_script, "pre-output-buffered", "responses", "headers-then-nothing"))


@pytest.mark.parametrize(
    ("spelling", "starts", "ends"),
    [
        ("crlf", b"data: {", b"data: [DONE]\r\n\r\n"),
        ("cr", b"data: {", b"data: [DONE]\r\r"),
        ("mixed", b"data: {", b"data: [DONE]\r\n\n"),
        ("data-without-space", b"data:{", b"data:[DONE]\n\n"),
        ("id", b"id: 1\ndata: {", b"data: [DONE]\n\n"),
        ("retry", b"retry: 3000\n\ndata: {", b"data: [DONE]\n\n"),
        ("data-without-space,crlf", b"data:{", b"data:[DONE]\r\n\r\n"),
    ],
)
def test_spellings(make_script, spelling, starts, ends):
    told = body(steps(make_script, spelling))

    assert told.startswith(starts)
    assert told.endswith(ends)


def test_cr_leaves_no_line_feed(make_script):
    assert b"\n" not in body(steps(make_script, "cr", "messages"))


def test_an_unknown_dialect_is_one_line_with_a_near_miss():
    with pytest.raises(DialectError, match=r"did you mean abbreviated\?"):
        dialect("abreviated")

"""Any split of any input gives the same items, and no input breaks the parser."""

from itertools import accumulate, pairwise

from hypothesis import given
from hypothesis import strategies as st

from harness.wire.sse import Event, Item, Overflow, SseParser

# What parsers trip over, weighted against arbitrary bytes.
PIECES = st.one_of(
    st.sampled_from([
        b"\n", b"\n\n", b"\r", b"\r\n", b"\r\r", b"\xef\xbb\xbf", b"\xef", b"\xbb", b":", b": ka", b"data",
        b"data:", b"data: ", b"data: x\n\n", b"event: e\n", b"event:", b"id: 1\n", b"id\n", b"id: \0\n",
        b"retry: 12\n", b"retry: x\n", b"error: x\n", b" ", b"\0", b"\xff", "\u2028".encode(), b"foo\n",
    ]),
    st.binary(max_size=12),
)  # fmt: skip
BODIES = st.lists(PIECES, max_size=25).map(b"".join)


def outcome(
    body: bytes, cuts: list[int], limit: int, *, quick: bool = False
) -> tuple[list[Item], int, str, int | None, bool]:
    """Items and final state of *body* fed in the pieces that *cuts* make; *quick*: as a session does."""
    parser = SseParser(limit)
    items: list[Item] = []
    places = sorted({0, len(body), *(cut % (len(body) + 1) for cut in cuts)})
    for begin, end in pairwise(places):
        piece = body[begin:end]
        single = parser.single(piece) if quick else None
        items += parser.feed(piece) if single is None else [Event(*single, parser.last_event_id)]
        assert parser.pending_bytes <= limit
    return items, parser.pending_bytes, parser.last_event_id, parser.retry_ms, parser.overflowed


@given(BODIES, st.lists(st.integers(0, 10_000), max_size=20), st.sampled_from([8, 16, 40, 1 << 24]))
def test_any_split_of_any_input_gives_the_same_items(body: bytes, cuts: list[int], limit: int) -> None:
    whole = outcome(body, [], limit)

    assert whole == outcome(body, cuts, limit)
    assert whole == outcome(body, list(range(len(body))), limit)
    assert whole == outcome(body, cuts, limit, quick=True)
    assert whole[0].count(Overflow(limit)) == int(whole[4])


EVENTS = st.lists(
    st.sampled_from([
        b"data: x\n\n", b"data: {}\n\n", b"data:x\n\n", b"event: e\ndata: x\n\n", b"event: e\n\n", b"\n",
        b"event: \ndata: x\n\n", b"event: e\ndata: x\ndata: y\n\n", b"event: f\ndata: x\n\n", b": ka\n\n",
        b"data: a\n", b"id: 7\n\n", b"data: b\r\n\r\n", b"data: longer than the limit\n\n", b"data: \n\n",
        b"retry: 1\n\n",
    ]),
    max_size=12,
)  # fmt: skip


@given(EVENTS, st.sampled_from([12, 1 << 24]))
def test_the_quick_way_says_what_the_general_one_does(events: list[bytes], limit: int) -> None:
    ends = list(accumulate(map(len, events)))

    assert outcome(b"".join(events), ends, limit) == outcome(b"".join(events), ends, limit, quick=True)

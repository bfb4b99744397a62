"""The reader of raw lines: every byte is kept, whatever way the body was cut."""

import pytest

from harness.judge.check.raw import read_blocks, read_lines, without_comments

BODY = b": hi\n\nevent: e\r\ndata: 1\r\n\r\ndata:2\rid: 7\r\rdata: half"


def blocks_of(chunks):
    return [(block.raw, block.whole, block.event, block.data) for block in read_blocks(chunks)]


EXPECTED = [
    (b": hi\n", True, None, None),
    (b"event: e\r\ndata: 1\r\n", True, b"e", b"1"),
    (b"data:2\rid: 7\r", True, None, b"2"),
    (b"data: half", False, None, b"half"),
]


def test_blocks_keep_their_bytes_and_line_ends():
    assert EXPECTED == blocks_of([(0.0, BODY)])


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_blocks_are_the_same_in_pieces_of_any_size(size):
    pieces = [(0.0, BODY[i : i + size]) for i in range(0, len(BODY), size)]

    assert EXPECTED == blocks_of(pieces)


def test_a_line_has_the_time_of_the_read_that_ended_it():
    lines = list(read_lines([(1.0, b": a"), (2.0, b"b\n"), (3.0, b"data: c\n\n")]))

    assert [(2.0, b": ab"), (3.0, b"data: c"), (3.0, b"")] == [(line.at_s, line.text) for line in lines]


def test_a_mark_of_byte_order_is_no_part_of_the_first_line():
    assert [b"data: 1"] == [line.text for line in read_lines([(0.0, b"\xef\xbb\xbfdata: 1\n")])]


def test_only_the_first_mark_of_byte_order_goes():
    lines = read_lines([(0.0, b"data: 1\n\xef\xbb\xbfdata: 2\n")])

    assert [b"data: 1", b"\xef\xbb\xbfdata: 2"] == [line.text for line in lines]


def test_without_comments_an_event_keeps_its_other_lines():
    body = b": a\n\nevent: e\n: b\ndata: 1\n\n: c\n\n"

    assert b"event: e\ndata: 1\n\n" == without_comments(body)


def test_fields_and_comments_of_one_block_are_told_apart():
    (block,) = read_blocks([(0.0, b"event: e\n: inside\ndata: 1\ndata:2\nfoo\n\n")])

    assert [(b"event", b"e"), (b"data", b"1"), (b"data", b"2"), (b"foo", b"")] == block.fields
    assert [b": inside"] == [line.text for line in block.comments]
    assert b"1\n2" == block.data

"""The parser against every case of the web platform tests, and against what gateways really send.

Each case runs whole, byte by byte, and split in two at every offset: the items must be the same.
"""

from time import process_time

import pytest

from harness.wire.sse import Comment, EmptyBlock, ErrorField, Event, Item, Overflow, Retry, SseParser

X = "x" * 2048


def parse(chunks: list[bytes], max_event_bytes: int = 1 << 24) -> tuple[list[Item], SseParser]:
    parser = SseParser(max_event_bytes)
    items: list[Item] = []
    for chunk in chunks:
        items += parser.feed(chunk)
    return items, parser


def every_way(body: bytes, max_event_bytes: int = 1 << 24) -> tuple[list[Item], SseParser]:
    """Parse *body* whole, per byte and at every split; all must agree, also on the parser's state."""
    items, parser = parse([body], max_event_bytes)
    splits = [[body[i : i + 1] for i in range(len(body))]]
    splits += [[body[:at], body[at:]] for at in range(len(body) + 1)]
    for chunks in splits:
        other_items, other = parse(chunks, max_event_bytes)
        assert items == other_items, chunks
        assert parser.pending_bytes == other.pending_bytes, chunks
        assert (parser.last_event_id, parser.retry_ms) == (other.last_event_id, other.retry_ms), chunks
        assert parser.overflowed == other.overflowed, chunks
    return items, parser


def events(items: list[Item]) -> list[str]:
    """``type:data`` of each event, with ``@id`` where an id is set."""
    return [
        f"{item.type}:{item.data}" + (f"@{item.id}" if item.id else "")
        for item in items
        if isinstance(item, Event)
    ]


# WPT's message.py appends three line ends to the body; with *raw* it appends one.
WPT_ENDED: list[tuple[str, str, list[str]]] = [
    # One byte order mark at the very start goes; a second one makes the field unknown.
    ("bom", "\ufeffdata:1\n\n\ufeffdata:2\n\ndata:3", ["message:1", "message:3"]),
    # Only one of two leading byte order marks goes.
    ("bom-2", "\ufeff\ufeffdata:1\n\ndata:2\n\ndata:3", ["message:2", "message:3"]),
    # A field without a colon, an empty one, and two of them: the data is "" and LF, both dispatched.
    ("field-data", "data:\n\ndata\ndata\n\ndata:test", ["message:", "message:\n", "message:test"]),
    # The type is the block's, not the stream's.
    ("field-event", "event:test\ndata:x\n\ndata:x", ["test:x", "message:x"]),
    # An empty type is no type.
    ("field-event-empty", "event: \ndata:data", ["message:data"]),
    # Leading zeros are decimal: not octal.
    ("field-retry", "retry:03000\ndata:x", ["message:x"]),
    # A number with anything behind it is ignored.
    ("field-retry-bogus", "retry:3000\nretry:1000x\ndata:x", ["message:x"]),
    # No number at all is ignored.
    ("field-retry-empty", "retry\ndata:test", ["message:test"]),
    # A leading space makes another field name; unknown fields are ignored.
    (
        "field-unknown",
        "data:test\n data\ndata\nfoobar:xxx\njustsometext\n:thisisacommentyay\ndata:test",
        ["message:test\n\ntest"],
    ),
    # One space goes, a tab stays; a lone CR ends a line.
    ("leading-space", "data:\ttest\rdata: \ndata:test", ["message:\ttest\n\ntest"]),
    # UTF-8 whatever the header's charset says.
    ("utf-8", "data:ok…", ["message:ok…"]),
]

WPT_RAW: list[tuple[str, str, list[str]]] = [
    # Comments of every line end, one with NUL and two of 2048 letters, never interrupt an event.
    (
        "comments",
        f"data:1\r:\0\n:\r\ndata:2\n:{X}\rdata:3\n:data:fail\r:{X}\ndata:4\n",
        ["message:1\n2\n3\n4"],
    ),
    # An event without its blank line is lost, and with it its id.
    ("data-before-final-empty-line", "retry:1000\ndata:test1\n\nid:test\ndata:test2", ["message:test1"]),
    # Names are compared literally; NUL, case and a colon elsewhere matter.
    (
        "field-parsing",
        "data:\0\ndata:  2\rData:1\ndata\0:2\ndata:1\r\0data:4\nda-ta:3\rdata_5\ndata:3\rdata:\r\n"
        " data:32\ndata:4\n",
        ["message:\0\n 2\n1\n3\n\n4"],
    ),
    # CRLF, LF and CR in one event; the appended LF completes a CRLF, so that CR alone dispatches.
    ("newlines", "data:test\r\ndata\ndata:test\r\n\r", ["message:test\n\ntest"]),
]

# From other server scripts of WPT: complete as they are.
WPT_COMPLETE: list[tuple[str, str, list[str]]] = [
    ("field-id", "id: …\nretry: 200\ndata: hello\n\n", ["message:hello@…"]),
    # The id stays until it changes.
    (
        "field-id-3 persist",
        "id: 1\ndata: 1\n\ndata: 2\n\nid: 2\ndata:3\n\ndata:4\n\n",
        ["message:1@1", "message:2@1", "message:3@2", "message:4@2"],
    ),
    # An empty id resets it, with a colon and without.
    (
        "field-id-3 reset 1",
        "id: 1\ndata: 1\n\nid:\ndata:2\n\ndata:3\n\n",
        ["message:1@1", "message:2", "message:3"],
    ),
    (
        "field-id-3 reset 2",
        "id: 1\ndata: 1\n\nid\ndata:2\n\ndata:3\n\n",
        ["message:1@1", "message:2", "message:3"],
    ),
    # An id with NUL anywhere is ignored.
    *(
        (f"field-id-null {value!r}", f"id: {value}\nretry: 200\ndata: hello\n\n", ["message:hello"])
        for value in ("\0\0", "x\0", "\0x", "x\0x", " \0")
    ),
    ("null-character", "data:\0\n\n", ["message:\0"]),
]

WPT = [
    *((name, body + "\n\n\n", expected) for name, body, expected in WPT_ENDED),
    *((name, body + "\n", expected) for name, body, expected in WPT_RAW),
    *WPT_COMPLETE,
]


@pytest.mark.parametrize(("body", "expected"), [pytest.param(b, e, id=n) for n, b, e in WPT])
def test_web_platform_case(body: str, expected: list[str]) -> None:
    items, _ = every_way(body.encode())

    assert expected == events(items)


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
@pytest.mark.parametrize(("body", "expected"), [pytest.param(b, e, id=n) for n, b, e in WPT_COMPLETE])
def test_every_line_end_means_the_same(end: str, body: str, expected: list[str]) -> None:
    items, _ = every_way(body.replace("\n", end).encode())

    assert expected == events(items)


EXTRA: list[tuple[str, bytes, list[Item]]] = [
    ("a comment alone", b": hopbase-keepalive\n\n", [Comment(b"hopbase-keepalive", False)]),
    # llama.cpp's bare colon; only one space goes.
    ("bare colon", b":\n\n", [Comment(b"", False)]),
    ("comment with two spaces", b":  ok\n\n", [Comment(b" ok", False)]),
    # No data: nothing is dispatched, but decoders that forget the rule make an empty event of it.
    ("event without data", b"event: ping\n\n", [EmptyBlock("ping", False)]),
    ("retry alone", b"retry: 3000\n\n", [Retry(3000), EmptyBlock(None, False)]),
    ("id alone", b"id: 7\n\n", [EmptyBlock(None, False)]),
    # After an id every blank line is such a trap.
    (
        "keepalive after an id",
        b"id: 7\ndata: a\n\n: ka\n\ndata: b\n\n",
        [
            Event("message", b"a", "7"),
            Comment(b"ka", False),
            EmptyBlock(None, False),
            Event("message", b"b", "7"),
        ],
    ),
    # … until the id is empty again.
    (
        "keepalive after an id that was reset",
        b"id: 7\ndata: a\n\nid:\ndata: b\n\n: ka\n\n",
        [Event("message", b"a", "7"), Event("message", b"b", ""), Comment(b"ka", False)],
    ),
    # Fields that mean nothing make no empty event anywhere.
    ("unknown field alone", b"foo: bar\n\n", []),
    ("bad retry alone", b"retry: soon\n\n", []),
    ("id with NUL alone", b"id: \0\n\n", []),
    ("comment inside", b"event: e\n: ka\ndata: b\n\n", [Comment(b"ka", True), Event("e", b"b", "")]),
    # The blank line after the comment ends the block: the name is lost.
    (
        "comment block splits an event",
        b"event: e\n: ka\n\ndata: b\n\n",
        [Comment(b"ka", True), EmptyBlock("e", True), Event("message", b"b", "")],
    ),
    # A comment before the name tears nothing.
    ("comment before a name", b": ka\nevent: e\n\n", [Comment(b"ka", False), EmptyBlock("e", False)]),
    ("comment between data", b"data: 1\n:\ndata: 2\n\n", [Comment(b"", True), Event("message", b"1\n2", "")]),
    # Neither these bytes nor the strings they stand for end a line.
    ("U+2028", "data: a\u2028b\n\n".encode(), [Event("message", "a\u2028b".encode(), "")]),
    ("U+0085", "data: a\u0085b\n\n".encode(), [Event("message", "a\u0085b".encode(), "")]),
    ("VT and FF", b"data: a\x0bb\x0cc\n\n", [Event("message", b"a\x0bb\x0cc", "")]),
    ("bogus retries", b"retry: +5\nretry: -3\nretry: 1_0\nretry:\ndata: x\n\n", [Event("message", b"x", "")]),
    ("retry in other digits", "retry: ٣\ndata: x\n\n".encode(), [Event("message", b"x", "")]),
    ("data without a space", b'data:{"a":1}\n\n', [Event("message", b'{"a":1}', "")]),
    ("names are case-sensitive", b"Data: x\nEVENT: e\n\n", []),
    ("the last name counts", b"event: a\nevent: b\ndata: x\n\n", [Event("b", b"x", "")]),
    ("colons in the value", b"data: a: b\n\n", [Event("message", b"a: b", "")]),
    ("blank lines alone", b"\n\n\r\n\r\r\n\n", []),
    # A CRLF cut in two is one line end, whatever follows.
    ("CR LF LF", b"data: a\r\n\n", [Event("message", b"a", "")]),
    ("LF CR LF", b"data: a\n\r\n", [Event("message", b"a", "")]),
    ("CR CR", b"data: a\r\rdata: b\r\r", [Event("message", b"a", ""), Event("message", b"b", "")]),
    # Old llama.cpp wrote an error as a field of its own: conformant parsers see nothing.
    ("error as a field", b'error: {"code":500}\n\n', [ErrorField()]),
    ("empty data", b"data:\n\ndata: \n\n", [Event("message", b"", ""), Event("message", b"", "")]),
    ("half a byte order mark", b"\xef\xbbdata: x\n\ndata: y\n\n", [Event("message", b"y", "")]),
    ("nothing", b"", []),
]


@pytest.mark.parametrize(("body", "expected"), [pytest.param(b, e, id=n) for n, b, e in EXTRA])
def test_items_of(body: bytes, expected: list[Item]) -> None:
    items, _ = every_way(body)

    assert expected == items


def test_malformed_utf8_becomes_a_replacement_character_and_never_an_exception() -> None:
    items, _ = every_way(b"event: \xff\nid: \xc3\ndata: a\xe2\x28b\n\n: \xf0\x9f\n\n")
    event, comment = items[0], items[1]

    assert isinstance(event, Event)
    assert ("\ufffd", "\ufffd", "a\ufffd(b") == (event.type, event.id, event.data)
    assert isinstance(comment, Comment)
    assert "\ufffd" == comment.text


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("retry:03000\ndata:x\n\n", 3000),
        ("retry:3000\nretry:1000x\ndata:x\n\n", 3000),
        ("retry\n\n", None),
        ("retry: +5\n\n", None),
    ],
)
def test_reconnection_time(body: str, expected: int | None) -> None:
    _, parser = every_way(body.encode())

    assert expected == parser.retry_ms


def test_an_id_counts_once_its_block_ends() -> None:
    """A reconnect after a cut must ask for what follows the last whole event."""
    _, parser = every_way(b"id: 1\ndata: a\n\nid: 2\ndata: b\n")

    assert "1" == parser.last_event_id


@pytest.mark.parametrize(
    ("body", "pending"),
    [
        (b"data: a\n\n", 0),
        (b"data: a\n", 8),  # the line and its end
        (b"data: a", 7),
        (b"event: e\ndata: a\r\n", 17),
        (b"data: a\r", 8),  # the CR has ended its line; an LF may follow
        (b": keepalive\n", 0),  # a comment line is whole without a blank line
        (b": keep", 6),
        (b"event: e\n: ka\n", 9),
        (b"", 0),
        (b"\xef\xbb", 2),
    ],
)
def test_pending_bytes(body: bytes, pending: int) -> None:
    _, parser = every_way(body)

    assert pending == parser.pending_bytes


class TestLimit:
    """An event over the limit is one `Overflow`, then nothing; any split sees the same."""

    @pytest.mark.parametrize(
        ("body", "overflows"),
        [
            (b"data: 3456789\n\n", False),  # 14 bytes with the line's end
            (b"data: 34567890123\n\n", True),
            (b"data: 345678901\n\n", False),  # 16: at the limit
            (b"data: 3456789012\n\n", True),  # 17
            (b"data: 3\ndata: 3\n\n", False),  # 16 in two lines
            (b"data: 3\ndata: 34\n\n", True),
            (b"event: 34567890\ndata: 1\n\n", True),
            (b"foo: 3456789\nfoo: 3456789\n\n", True),  # unknown fields count too
            (b": 34567890123456\n\n", False),  # a comment of 16, its line end not counted
            (b": 345678901234567\n\n", True),
            (b"data: 34567890123", True),  # before any line end
            (b"data: 1\n\ndata: 2\n\n" * 3, False),  # each event by itself
            (b"data: 1\n\n: 345678901234567\n\ndata: 2\n\n", True),
            (b"data: 1\r\ndata: 345\r\n\r\n", True),
        ],
    )
    def test_around_it(self, body: bytes, overflows: bool) -> None:
        items, parser = every_way(body, max_event_bytes=16)

        assert overflows == (Overflow(16) in items) == parser.overflowed
        assert int(overflows) == items.count(Overflow(16))

    def test_what_came_before_is_kept_and_what_comes_after_is_not(self) -> None:
        items, parser = every_way(b"data: 1\n\ndata: 345678901234567890\n\ndata: 2\n\n", max_event_bytes=16)

        assert [Event("message", b"1", ""), Overflow(16)] == items
        assert [] == parser.feed(b"data: 3\n\n")

    def test_memory_stays_bounded(self) -> None:
        parser = SseParser(1000)
        most = 0
        for _ in range(10_000):
            parser.feed(b"data: x")
            most = max(most, parser.pending_bytes)

        assert 1000 >= most
        assert 0 == parser.pending_bytes

    def test_of_a_real_parser_is_16_mib(self) -> None:
        parser = SseParser()
        line = b"data: " + b"x" * (2**20 - 7) + b"\n"  # 1 MiB

        assert [] == [item for _ in range(16) for item in parser.feed(line)]
        assert [Overflow(16 * 2**20)] == parser.feed(b"d")

    def test_names_of_a_hostile_server_are_not_all_kept(self) -> None:
        parser = SseParser()
        for number in range(2000):
            [event] = parser.feed(b"event: e%d\ndata: x\n\n" % number)
            assert Event(f"e{number}", b"x", "") == event

        assert 256 >= len(parser._names)


def test_a_chunk_costs_the_same_however_much_waits() -> None:
    """Ten megabytes in one-byte chunks must not be quadratic.

    A parser that copies what waits would take a thousand times longer behind 8 MB than behind 1 kB.
    """

    def best(waiting: int) -> float:
        parser = SseParser()
        parser.feed(b"data: " + b"x" * waiting)
        costs = []
        for _ in range(10):
            began = process_time()
            for _ in range(500):
                parser.feed(b"x")
            costs.append(process_time() - began)
        return min(costs)

    assert best(8_000_000) < 20 * best(1000)

"""Taking a whole chunk at once, and parsing it byte by byte, give the same body and the same end."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.transport.response import Response

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST = b"0\r\n\r\n"

BODIES = st.binary(min_size=1, max_size=40) | st.sampled_from(
    [
        b"x" * 15,
        b"x" * 16,
        b"x" * 255,
        b"x" * 256,
        b"x" * 2047,
        b"x" * 2048,
        b"2\r\nhi\r\n",
        b"0\r\n\r\n",
        b"\r\n",
    ]
)


def written(body: bytes, way: str) -> bytes:
    """Return one chunk, as some server might write it."""
    size = {"": b"%x", "upper": b"%X", "zeros": b"00%x", "extension": b"%x;a=b"}[way] % len(body)
    return size + b"\r\n" + body + b"\r\n"


CHUNKS = st.builds(written, BODIES, st.sampled_from(["", "", "", "upper", "zeros", "extension"]))
WRONG = st.sampled_from(
    [b"g\r\nx\r\n", b"+1\r\nx\r\n", b" 1\r\nx\r\n", b"2\r\nx\r\n", b"1\r\nxyz", b"1\nx\r\n"]
)


@dataclass
class Reads:
    """What came, in the pieces in which it was read."""

    pieces: list[bytes]


@st.composite
def reads(draw: st.DrawFn) -> Reads:
    """Mostly a chunk a read; now and then two, or a part of one."""
    pieces = [HEAD]
    for chunk in draw(st.lists(CHUNKS | WRONG, max_size=12)):
        match draw(st.sampled_from(["alone", "alone", "alone", "joined", "cut"])):
            case "alone":
                pieces.append(chunk)
            case "joined":
                pieces[-1] += chunk
            case "cut":
                at = draw(st.integers(1, len(chunk)))
                pieces += [piece for piece in (chunk[:at], chunk[at:]) if piece]
    pieces += draw(st.sampled_from([[], [LAST], [LAST + b"1\r\nx\r\n"], [LAST, b"1\r\nx\r\n"]]))
    return Reads(pieces)


def answer(pieces: list[bytes], *, quick: bool) -> tuple[bytes, bool, bool, bool]:
    response, body = Response("POST"), b""
    for data in pieces:
        piece = response.chunk(data) if quick else None
        if piece is None:
            response.feed(data)
            piece = response.take_body()
        body += piece
    return body, response.complete, response.stray, bool(response.error)


@given(reads())
def test_both_ways_agree(case: Reads) -> None:
    assert answer(case.pieces, quick=True) == answer(case.pieces, quick=False)


@pytest.mark.parametrize("size", [1, 15, 16, 255, 256, 2047])
def test_a_chunk_alone_is_taken_at_once(size: int) -> None:
    response = Response("POST")
    response.feed(HEAD + b"1\r\nx\r\n")

    assert response.chunk(written(b"y" * size, "")) == b"y" * size
    assert response.take_body() == b"x"


def test_a_body_without_chunks_is_never_taken_for_one() -> None:
    response = Response("POST")
    response.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n1\r\nx\r\n")

    assert response.chunk(b"1\r\nx\r\n") is None


@pytest.mark.parametrize(
    "begun",
    [b"8\r\n", b"8\r\nab", b"1;a=", b"1\r\nx", b"1\r\nx\r"],
    ids=["header", "body", "extension", "its end", "half of its end"],
)
def test_nothing_is_taken_inside_a_chunk(begun: bytes) -> None:
    response = Response("POST")
    response.feed(HEAD + b"1\r\nx\r\n" + begun)  # the chunk goes on with what looks like one

    assert response.chunk(b"1\r\nx\r\n") is None


def test_a_chunk_that_does_not_end_as_it_must_is_an_error() -> None:
    assert answer([HEAD, b"1\r\nx\r\n", b"1\r\nxyz"], quick=True)[3]


def test_nothing_is_taken_before_the_headers() -> None:
    assert Response("POST").chunk(b"1\r\nx\r\n") is None

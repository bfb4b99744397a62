"""Whatever a gateway sends, however cut and timed: one outcome, never an exception, bounded memory."""

from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from harness.gateways import PROTOCOLS, load
from harness.stream import Identity, Retry, Session, assemble, describe
from harness.stream.outcome import OUTCOMES, EndReason
from harness.stream.record import Attempt, from_json, to_json
from harness.wire import grammar_for
from tests.unit.wire import frames as f

IDENTITY = Identity("r", "q", 1, "chat", "g", False, "s", "m", "w", "measure", 0.0)

CHAT = [
    f.ROLE,
    f.HI,
    f.STOP,
    f.usage(),
    f.DONE,
    f.chunk(" "),
    f.chunk("\u200b"),
    f.chunk(reasoning="Hm"),
    f.chunk("", finish=""),
    f.chunk("", finish="error"),
    f.chunk("Ho", index=1),
    f.chunk(refusal="No"),
    f.data({"error": {"message": "x", "code": 500}}),
    f.data({"error": "x", "choices": []}),
    f.data({"choices": None}),
    f.data({"choices": [None]}),
    f.data({"choices": [{"delta": None}]}),
]
RESPONSES = [
    f.CREATED,
    f.ITEM,
    f.PART,
    f.text("Hi"),
    f.text("\u200b"),
    f.PART_DONE,
    f.ITEM_DONE,
    f.COMPLETED,
    f.DONE,
    f.resp("failed", response=None),
    f.resp("incomplete", response={"incomplete_details": None}),
    f.resp("output_text.done", text="Hi", output_index=0, content_index=0),
    f.resp("news"),
    f.data({"type": "error", "message": "x"}, "error"),
    f.resp("queued"),
    f.resp("output_item.added", item=[]),
]
MESSAGES = [
    f.START,
    f.block(),
    f.block("tool_use", 1, input={}),
    f.delta(),
    f.delta("{", "input_json_delta", "partial_json"),
    f.BLOCK_STOP,
    f.message_delta(),
    f.message_delta(None),
    f.MESSAGE_STOP,
    f.PING,
    f.DONE,
    f.data({"type": "error", "error": {"type": "api_error"}}, "error"),
    f.msg("message_start", message=5),
    f.msg("content_block_delta", index=[], delta=[]),
    f.delta(5),
]
ANYWHERE = [
    b": ka\n\n",
    b":\n",
    b"event: ping\n\n",
    b"data:\n\n",
    b"data: {}\n\n",
    b"data: [done]\n\n",
    b"id: 1\n\n",
    b"retry: 5\n\n",
    b"\r",
    b"\r\n\r\n",
    b"\xef\xbb\xbf",
    b"event: error\ndata: x\n\n",
    b"error: {}\n\n",
]

KEYS = st.sampled_from(
    [
        "type",
        "id",
        "error",
        "choices",
        "delta",
        "index",
        "finish_reason",
        "usage",
        "content",
        "message",
        "code",
        "response",
        "item",
        "output_index",
        "content_index",
        "output",
        "content_block",
        "stop_reason",
        "object",
        "tool_calls",
        "function",
        "sequence_number",
        "text",
        "prompt_tokens",
        "completion_tokens",
        "status",
        "role",
        "reasoning_details",
        "logprobs",
    ]
)
# Values that are legal JSON where nobody expects them.
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=8,
)
NAMES = st.sampled_from(
    [
        None,
        "ping",
        "error",
        "message",
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "response.created",
        "response.output_text.delta",
        "response.output_item.added",
        "response.output_text.done",
        "response.completed",
        "response.failed",
    ]
)


def odd_frame(name: str | None, body: object) -> bytes:
    if name is not None and isinstance(body, dict) and "type" not in body:
        body["type"] = name
    return f.data(body, name)


ODD = st.builds(odd_frame, NAMES, st.dictionaries(KEYS, JSON, max_size=5) | JSON)
STREAMS = [f.GOOD_CHAT, f.GOOD_RESPONSES, f.GOOD_MESSAGES]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A good stream with bytes changed, dropped, doubled or put in."""
    body = bytearray(draw(st.sampled_from(STREAMS)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(body)))
        length = draw(st.integers(0, 40))
        piece = draw(
            st.sampled_from(ANYWHERE) | st.binary(max_size=6) | st.just(bytes(body[at : at + length]))
        )
        body[at : at + draw(st.integers(0, length))] = piece
    return bytes(body)


BODIES = st.one_of(
    st.lists(st.one_of(st.sampled_from(CHAT + RESPONSES + MESSAGES + ANYWHERE), ODD), max_size=12).map(
        b"".join
    ),
    *(
        st.lists(st.sampled_from(own + ANYWHERE), max_size=14).map(b"".join)
        for own in (CHAT, RESPONSES, MESSAGES)
    ),
    mutated(),
    st.binary(max_size=200),
)
ENDS: list[EndReason] = ["eof", "cut", "aborted", "abandoned", "bad_http", "closed"]


@dataclass
class Plan:
    """How one stream is cut, timed and ended."""

    protocol: str
    gateway: str
    watch: bool
    status: int
    kind: str
    cuts: list[int]
    pauses: list[float]
    windows: list[float]
    end: EndReason


PLANS = st.builds(
    Plan,
    st.sampled_from(PROTOCOLS),
    st.sampled_from(["generic", "hopbase", "sabiuco"]),
    st.booleans(),
    st.sampled_from([200, 200, 200, 200, 204, 307, 429, 500]),
    st.sampled_from(["text/event-stream"] * 5 + ["application/json", ""]),
    st.lists(st.integers(0, 10_000), max_size=12),
    st.lists(
        st.sampled_from([0.0, 0.001, 0.01, 1.0, 11.0, 31.0, 61.0, 121.0, 400.0]), min_size=1, max_size=6
    ),
    st.lists(st.sampled_from([0.0, 0.0, 0.004, 0.5]), min_size=1, max_size=4),
    st.sampled_from(ENDS),
)


def play(body: bytes, plan: Plan) -> tuple[Session, Attempt]:
    """Live one attempt as the transport would: limits fire between the reads."""
    profile = load(plan.gateway)
    session = Session(
        grammar_for(plan.protocol, usage_requested=plan.protocol == "chat"),
        profile.limits,
        100.0,
        keepalive=profile.keepalive,
        on_stall="watch" if plan.watch else "close",
    )
    session.connected(100.0, connect_s=0.0, tls_s=None, peer=None, reused=False)
    session.sent(100.0)
    session.headers(plan.status, {"content-type": plan.kind}, 100.5)
    now = 100.5
    places = sorted({0, len(body), *(cut % (len(body) + 1) for cut in plan.cuts)})
    for number, (begin, end) in enumerate(pairwise(places)):
        now = rest(session, now, now + plan.pauses[number % len(plan.pauses)])
        session.feed(body[begin:end], now, now - plan.windows[number % len(plan.windows)])
    now = rest(session, now, now + plan.pauses[0])
    session.end(plan.end, now)
    session.end("eof", now + 1.0)
    record = assemble(session, IDENTITY, 0.0, retry=Retry("none"), final=False)
    return session, record


def rest(session: Session, now: float, until: float) -> float:
    """Let the limits fire that are due; a closed session ends then."""
    for _ in range(100):
        due = session.deadline()
        if due is None or due > until:
            return until
        now = max(now, due)
        if session.expire(now):
            session.end("closed", now)
    raise AssertionError("limits fire for ever")


@given(BODIES, PLANS)
def test_one_outcome_and_never_an_exception(body: bytes, plan: Plan) -> None:
    session, record = play(body, plan)

    assert record.outcome in OUTCOMES
    assert record == from_json(to_json(record))
    assert "\n" not in describe(record)
    assert len(describe(record)) < 500
    assert (record.outcome == "stalled") == (record.stall is not None and record.stall.fatal)
    assert (record.outcome in ("completed", "unterminated", "empty")) >= (record.finish is not None)
    assert record.outcome != "completed" or session.grammar.facts.has_output
    if record.outcome in (
        "error_event",
        "http_error",
        "not_a_stream",
        "cut",
        "protocol_error",
        "no_response",
    ):
        assert record.error is not None
    else:
        assert record.error is None
    check_numbers(session, record)


def check_numbers(session: Session, record: Attempt) -> None:
    """What is true of the clocks and counts of any stream, and how much of it is kept."""
    order = [0.0, record.headers_s, record.first_byte_s, record.first_event_s, record.first_token_s]
    known = [moment for moment in order if moment is not None]
    assert known == sorted(known)
    for moment in (record.first_content_s, record.last_token_s, record.last_byte_s, record.terminal_s):
        assert moment is None or 0.0 <= moment <= record.end_s
    assert len(session.gaps) <= max(0, record.progress.count - 1)
    assert all(gap >= 0.0 for gap in session.gaps)
    assert (record.last_token_s is None) == (record.progress.count == 0)
    assert session.thinking_s >= 0.0
    assert session.dead_s >= 0.0
    assert record.keepalive.late + record.keepalive.violations <= len(session.stalls.counts) * 100
    assert len(session.trace.moments) < 5000
    assert all(len(rule) < 40 for rule in record.violations)


@given(BODIES, PLANS, st.lists(st.integers(0, 10_000), max_size=12))
def test_how_the_bytes_are_cut_changes_nothing_but_times(body: bytes, plan: Plan, cuts: list[int]) -> None:
    plan.pauses, plan.windows, plan.end = [0.0], [0.0], "eof"
    _, one = play(body, plan)
    plan.cuts = cuts
    _, other = play(body, plan)

    assert (one.outcome, one.finish, one.error, one.tokens) == (
        other.outcome, other.finish, other.error, other.tokens
    )  # fmt: skip
    assert (one.violations, one.progress.count) == (other.violations, other.progress.count)
    assert (one.keepalive.comments, one.keepalive.pings, one.events) == (
        other.keepalive.comments, other.keepalive.pings, other.events
    )  # fmt: skip

"""The official SDKs and our session on every fault and dialect of the simulator.

An SDK that raises on what we call a failure agrees. The differences are known ones: streams whose failure the
SDKs do not see, and healthy ones on which they fail.
"""

import pytest
from gevent.pool import Pool

from harness.sim.dialects import NAMES as DIALECTS
from harness.sim.faults import FAULTS
from tests.peers.sdk import WAITS, seen_by_sdk

PROTOCOLS = ("chat", "responses", "messages")
# Sequences are made of other faults; 17 MiB of one event would only test patience.
PLAYED = [name for name, fault in FAULTS.items() if not fault.sequence and name != "oversize-event"]
SCALE = 0.01

BY_STATUS = {
    400: "BadRequestError", 401: "AuthenticationError", 403: "PermissionDeniedError", 404: "NotFoundError",
    409: "ConflictError", 422: "UnprocessableEntityError", 429: "RateLimitError",
    302: "NotFoundError",  # both follow the redirect, and there is nothing at its end
}  # fmt: skip
ANTHROPIC_BY_STATUS = {
    402: "PaymentRequiredError", 408: "RequestTimeoutError", 413: "ContentTooLargeError",
    503: "ServiceUnavailableError", 504: "GatewayTimeoutError", 529: "OverloadedError",
}  # fmt: skip

KEPT_ALIVE = {"ping-only", "stall-mid", "stall-pre", "zero-width-stall"}
OPENAI = ("chat", "responses")

# Protocols and fault -> what the SDK makes of it, and why it is no surprise.
KNOWN: dict[tuple[tuple[str, ...], str], str] = {
    # An empty event goes through json.loads: the iterator raises on a healthy stream.
    **{(OPENAI, name): "raw JSONDecodeError" for name in (
        "empty-data", "event-without-data", "ping-shapes", "id-and-keepalive", "retry-preamble")},
    (("responses",), "comment-splits-event"): "raw JSONDecodeError",
    (PROTOCOLS, "bad-utf8"): "raw UnicodeDecodeError",
    # Without `event:` lines the Anthropic SDK drops everything, and so it does with errors and stray events.
    (("messages",), "no-event-lines"): "nothing",
    (("messages",), "keepalive-as-data"): "complete",
    **{(("messages",), name): "partial" for name in (
        "error-data", "error-string", "error-without-event-line", "error-hopbase", "error-sabiuco",
        "error-openrouter", "error-fastchat")},
    # Flat errors and `response.failed` are events like others to the OpenAI SDK.
    **{(OPENAI, name): "partial" for name in ("error-flat", "error-fastchat")},
    **{(("responses",), name): "partial" for name in (
        "error-rate-limit", "error-invalid", "error-hostile-text", "error-mid", "error-pre", "error-official",
        "error-hopbase-failed", "error-then-done", "stall-error", "stuck-pre-error", "stuck-error")},
    # After them it reads on, until its own time runs out.
    (("responses",), "error-then-hang"): "APITimeoutError",
    (("responses",), "terminal-hang"): "APITimeoutError",
    (("messages",), "terminal-hang"): "raw ReadTimeout",
    # Nobody checks the content type, so a stream of another type is read, and a page is no event.
    (PROTOCOLS, "wrong-type"): "complete",
    (PROTOCOLS, "no-events"): "nothing",
    # The SDK has no limit between two tokens: it waits, and the rest comes.
    (PROTOCOLS, "stall-resume"): "complete",
    (PROTOCOLS, "stall-pre-resume"): "complete",
    (OPENAI, "bad-chunk-size"): "APIConnectionError",
    (("messages",), "bad-chunk-size"): "raw RemoteProtocolError",
    (PROTOCOLS, "not-http"): "APIConnectionError",
    (("messages",), "reset"): "raw ReadError",
    (PROTOCOLS, "no-headers"): "APITimeoutError",
}  # fmt: skip
FLAT = {(protocol, name): seen for (protocols, name), seen in KNOWN.items() for protocol in protocols}


def expected(protocol, fault, record):
    """Return what an SDK should make of a stream that our session judged as *record*."""
    if (protocol, fault) in FLAT:
        return FLAT[protocol, fault]
    messages = protocol == "messages"
    match record.outcome:
        case "completed" | "empty":
            return "complete"
        case "unterminated":
            return "partial" if messages else "complete"  # a finish reason is all that Chat users look at
        case "truncated":
            return "partial"  # no exception: the answer only has no finish
        case "error_event":
            return "APIStatusError" if messages else "APIError"
        case "http_error":
            by_status = BY_STATUS | (ANTHROPIC_BY_STATUS if messages else {})
            return by_status.get(
                record.status, "APIStatusError" if record.status < 500 else "InternalServerError"
            )
        case "not_a_stream":
            return "nothing"
        case "cut":
            return "raw RemoteProtocolError" if messages else "APIConnectionError"
        case "no_response":
            return "APIConnectionError"
        case "stalled":
            if fault in KEPT_ALIVE:
                return WAITS  # a comment resets every read timeout: it would wait for ever
            return "raw ReadTimeout" if messages else "APITimeoutError"
        case "protocol_error":
            return "raw JSONDecodeError"
    raise AssertionError(record.outcome)


@pytest.fixture(scope="module")
def seen(start_sim, ask):
    """Ask for everything, a few at a time: what the SDK and our session made of each fault and dialect."""
    url = start_sim("--time-scale", str(SCALE))
    found = {}

    def look(protocol, header, name):
        headers = {header: name}
        found[protocol, name] = (
            seen_by_sdk(protocol, url, "m", headers),
            ask(url, protocol, headers=headers, scale=SCALE),
        )

    pool = Pool(8)
    for protocol in PROTOCOLS:
        for name in PLAYED:
            pool.apply_async(look, (protocol, "X-Harness-Fault", name))
        for name in DIALECTS:
            pool.apply_async(look, (protocol, "X-Harness-Dialect", name))
    pool.join(raise_error=True)
    return found


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("fault", PLAYED)
def test_the_sdk_sees_what_we_see_or_misses_what_it_is_known_to_miss(protocol, fault, seen):
    by_sdk, record = seen[protocol, fault]

    assert expected(protocol, fault, record) == by_sdk, record


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_is_whole_for_us_and_all_but_one_for_the_sdks(protocol, dialect, seen):
    by_sdk, record = seen[protocol, dialect]

    assert "completed" == record.outcome
    # A reconnection time as a block of its own is an empty event to it.
    fatal = dialect == "retry" and protocol in OPENAI
    assert ("raw JSONDecodeError" if fatal else "complete") == by_sdk


def test_every_known_difference_is_about_a_fault_that_is_played():
    assert set() == {name for _, name in FLAT} - set(PLAYED)

"""Our retries against the official SDKs': the same failures, the same number of attempts, the same waits.

The SDKs run against a scripted transport and sleep on a stubbed clock, so that what they decide is exact
and no test waits. `decide` gets the same answers.
"""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import anthropic
import httpx
import httpx2
import msgspec
import openai
import pytest

from harness.gateways import Limits
from harness.stream import Session, assemble
from harness.stream.record import ErrorRecord, Identity, Retry
from harness.stream.retry import Policy, decide
from harness.wire import grammar_for

# Each script: what the server answers, attempt by attempt; the last answer repeats. A string is no answer.
SCRIPTS = {
    **{f"always {status}": [(status, {})] for status in (400, 401, 403, 404, 408, 409, 413, 422, 425, 429)},
    **{f"always {status}": [(status, {})] for status in (499, 500, 502, 503, 504, 520, 524, 529)},
    "500, 429, then good": [(500, {}), (429, {}), (200, {})],
    "retry-after 5": [(429, {"retry-after": "5"})],
    "retry-after 120": [(503, {"retry-after": "120"})],
    "retry-after 121": [(503, {"retry-after": "121"})],
    "retry-after 0": [(429, {"retry-after": "0"})],
    "retry-after nonsense": [(429, {"retry-after": "soon"})],
    "retry-after a date that is past": [(429, {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"})],
    "retry-after-ms 250": [(429, {"retry-after-ms": "250", "retry-after": "5"})],
    "retry-after-ms nonsense": [(429, {"retry-after-ms": "x", "retry-after": "3"})],
    "400 that should be retried": [(400, {"x-should-retry": "true"})],
    "500 that should not": [(500, {"x-should-retry": "false"})],
    "should retry maybe": [(500, {"x-should-retry": "maybe"})],
    "refused": ["refused"],
    "closed": ["closed", (200, {})],
}  # fmt: skip


class Server(httpx.BaseTransport, httpx2.BaseTransport):
    """Plays a script and counts. One SDK brings `httpx`, the other its continuation under another name."""

    def __init__(self, script, http):
        self.script, self.http, self.asked = script, http, 0

    def handle_request(self, request):
        answer = self.script[min(self.asked, len(self.script) - 1)]
        self.asked += 1
        if answer == "refused":
            raise self.http.ConnectError("refused", request=request)
        if answer == "closed":
            raise self.http.RemoteProtocolError("closed without an answer", request=request)
        status, headers = answer
        if status == 200:
            kind = {"content-type": "text/event-stream"}
            return self.http.Response(200, headers=kind, content=b"data: [DONE]\n\n", request=request)
        return self.http.Response(status, headers=headers, json={"error": {"message": "no"}}, request=request)


@pytest.fixture
def waits(monkeypatch):
    """What the SDKs slept, instead of sleeping."""
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    return slept


def by_sdk(protocol, script, retries):
    """Let the protocol's SDK ask once; returns how often it sent the request."""
    library = httpx2 if protocol == "messages" else httpx
    server = Server(script, library)
    common: dict[str, Any] = {
        "api_key": "k", "http_client": library.Client(transport=server), "max_retries": retries,
    }  # fmt: skip
    hi: Any = [{"role": "user", "content": "Hi"}]
    try:
        if protocol == "messages":
            anthropic.Anthropic(base_url="http://gateway.test", **common).messages.create(
                model="m", max_tokens=5, stream=True, messages=hi
            )
        elif protocol == "chat":
            openai.OpenAI(base_url="http://gateway.test/v1", **common).chat.completions.create(
                model="m", stream=True, messages=hi
            )
        else:
            openai.OpenAI(base_url="http://gateway.test/v1", **common).responses.create(
                model="m", stream=True, input="Hi"
            )
    except (openai.APIError, anthropic.APIError):
        pass
    return server.asked


def record_of(protocol, answer, attempt):
    session = Session(grammar_for(protocol, usage_requested=True), Limits(), 0.0)
    session.end("aborted", 1.0)
    identity = Identity("r", "q", attempt, protocol, "g", True, "default", "m", "local", "measure", 0.0)
    plain = assemble(session, identity, 0.0, retry=Retry("none"), final=True)
    if isinstance(answer, str):
        outcome = {"refused": "connect_error", "closed": "no_response"}[answer]
        return msgspec.structs.replace(plain, outcome=outcome, status=None)
    status, _ = answer
    if status == 200:
        return msgspec.structs.replace(plain, outcome="completed", status=200)
    error = ErrorRecord("http", None, None, "no", False, "http.plain")
    return msgspec.structs.replace(plain, outcome="http_error", status=status, error=error)


def by_us(protocol, script, retries, draw):
    policy, attempt = Policy("sdk", retries), 1
    waits: list[float | None] = []
    while True:
        answer = script[min(attempt - 1, len(script) - 1)]
        headers = {} if isinstance(answer, str) else answer[1]
        verdict = decide(
            policy, record_of(protocol, answer, attempt), headers, elapsed_s=0.0, wall=time.time(), draw=draw
        )
        if verdict.retry.decision != "retry":
            return attempt, waits
        waits.append(verdict.retry.delay_s)
        attempt += 1


@pytest.mark.parametrize("protocol", ["chat", "responses", "messages"])
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_as_many_attempts_as_the_official_sdk_and_the_same_waits(protocol, script, waits):
    for retries in (0, 2, 6):
        waits.clear()
        attempts = by_sdk(protocol, script, retries)
        ours, longest = by_us(protocol, script, retries, 0.0)
        _, shortest = by_us(protocol, script, retries, 1.0)

        assert attempts == ours
        assert len(waits) == len(longest)
        for waited, low, high in zip(waits, shortest, longest, strict=True):
            assert low - 1e-6 <= waited <= high + 1e-6


def test_the_waits_of_the_sdk_fill_our_bands(waits, monkeypatch):
    """Both ends of each band are reached: ours are no wider than theirs."""
    ends = []
    for draw in (0.0, 1.0 - 1e-12):
        waits.clear()
        monkeypatch.setattr(openai._base_client, "random", lambda draw=draw: draw)
        by_sdk("chat", [(500, {})], 6)
        ends.append(list(waits))

    assert pytest.approx(ends[0]) == by_us("chat", [(500, {})], 6, 0.0)[1]
    assert pytest.approx(ends[1]) == by_us("chat", [(500, {})], 6, 1.0)[1]
    assert pytest.approx([0.5, 1.0, 2.0, 4.0, 8.0, 8.0]) == ends[0]
    assert pytest.approx([0.375, 0.75, 1.5, 3.0, 6.0, 6.0]) == ends[1]


def test_a_date_is_waited_for_by_both(waits, monkeypatch):
    now = SimpleNamespace(at=1_760_000_000.0)
    monkeypatch.setattr(time, "time", lambda: now.at)
    script = [(503, {"retry-after": "Thu, 09 Oct 2025 08:53:47 GMT"})]  # 27 seconds later

    for protocol in ("chat", "messages"):
        waits.clear()
        assert by_sdk(protocol, script, 2) == by_us(protocol, script, 2, 0.5)[0] == 3
        assert pytest.approx([27.0, 27.0]) == waits
        assert pytest.approx(waits) == by_us(protocol, script, 2, 0.5)[1]

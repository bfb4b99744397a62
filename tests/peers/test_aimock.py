"""aimock, a mock server of others, with its chaos switched on: every kind of it has the right outcome."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.peers.conftest import PEERS, wait_until

FIXTURES = Path(__file__).parent / "aimock" / "fixtures.json"
MODELS = {"chat": "gpt-mock", "responses": "gpt-mock", "messages": "claude-mock"}
TEXT = "Here are some words for you, one after the other, until they end."
CHUNK = 5  # characters


@pytest.fixture(scope="module")
def aimock(start, tmp_path_factory):
    """Start aimock and return its URL."""
    log = tmp_path_factory.mktemp("aimock") / "log.txt"
    node = (PEERS / "node.path").read_text().strip()
    program = PEERS / "aimock/node_modules/@copilotkit/aimock/dist/cli.js"
    command = [node, program, "-p", "0", "-f", FIXTURES, "-c", str(CHUNK), "-l", "10", "--log-level", "info"]
    with log.open("w") as file:
        process = start(list(map(str, command)), env={"PATH": os.environ["PATH"]}, stdout=file,
                        stderr=subprocess.STDOUT)  # fmt: skip

    def address():
        return re.search(r"http://[\d.]+:\d+", log.read_text())

    wait_until(address, process, 30, log)
    found = address()
    assert found is not None
    return found[0]


@pytest.fixture
def chaos(aimock, ask):
    def chaos(protocol, prompt="words", **rates):
        headers = {f"X-AIMock-Chaos-{name.title()}": str(rate) for name, rate in rates.items()}
        return ask(aimock, protocol, model=MODELS[protocol], prompt=prompt, headers=headers)

    return chaos


every_protocol = pytest.mark.parametrize("protocol", ["chat", "responses", "messages"])


@every_protocol
def test_without_chaos_the_answer_is_whole_and_has_its_pieces(protocol, chaos):
    record = chaos(protocol)

    assert ("completed", "stop", 200) == (record.outcome, record.finish, record.status)
    assert -(-len(TEXT) // CHUNK) == record.progress.count
    assert {} == record.violations


@every_protocol
def test_a_tool_call_is_an_answer(protocol, chaos):
    record = chaos(protocol, prompt="tool")

    assert ("completed", "tool") == (record.outcome, record.finish)
    assert record.first_tool_s is not None
    assert record.first_content_s is None


@every_protocol
def test_latency_delays_the_first_token_and_nothing_else(protocol, chaos):
    plain, late = chaos(protocol), chaos(protocol, latency=400)

    assert "completed" == late.outcome
    assert plain.first_token_s < 0.3
    assert 0.4 <= late.first_token_s < 0.8
    assert {} == late.violations


@every_protocol
def test_a_dropped_request_is_an_http_error_worth_a_retry(protocol, chaos):
    record = chaos(protocol, drop=1)

    assert ("http_error", 500) == (record.outcome, record.status)
    assert ("chaos_drop", True) == (record.error.code, record.error.retryable)


@every_protocol
def test_a_rate_limit_is_an_http_error_worth_a_retry(protocol, chaos):
    record = chaos(protocol, ratelimit=1)

    assert ("http_error", 429) == (record.outcome, record.status)
    assert ("rate_limit_error", True) == (record.error.type, record.error.retryable)


@every_protocol
def test_a_malformed_answer_under_200_is_no_stream(protocol, chaos):
    record = chaos(protocol, malformed=1)

    assert ("not_a_stream", 200) == (record.outcome, record.status)
    assert "{malformed json: <<<chaos>>>" == record.error.message


@every_protocol
def test_a_connection_that_is_destroyed_at_once_is_no_response(protocol, chaos):
    assert "no_response" == chaos(protocol, disconnect=1).outcome


@every_protocol
@pytest.mark.parametrize("prompt", ["cut", "leave"])
def test_a_connection_that_is_destroyed_in_the_middle_is_cut_after_some_tokens(protocol, prompt, chaos):
    record = chaos(protocol, prompt=prompt)

    assert ("cut", 200) == (record.outcome, record.status)
    assert 1 <= record.progress.count < -(-len(TEXT) // CHUNK)


@every_protocol
def test_an_error_of_its_own_is_an_http_error(protocol, chaos):
    record = chaos(protocol, prompt="busy")

    assert ("http_error", 503, "too busy") == (record.outcome, record.status, record.error.message)

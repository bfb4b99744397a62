"""LiteLLM's proxy as a real gateway in front of the simulator: our outcomes are those of a careful reader.

The proxy may well say something else than what its upstream did; what counts here is what it sent.
"""

import json
import os
import subprocess
import time
import urllib.error
import urllib.request

import pytest

from harness.load.exchange import new_request_id
from tests.peers.careful import outcome, request
from tests.peers.conftest import PEERS, wait_until
from tests.ports import find_free_port

KEY = "sk-of-nobody-for-loopback-only-0123456789"
LIMITS = (("silence", 3.0), ("first_token", 6.0), ("progress", 3.0), ("close", 2.0))
CONFIG = """
model_list:
  - model_name: "sim-*"
    litellm_params: {model: "openai/sim-*", api_base: "UPSTREAM/v1", api_key: "none"}
    model_info: {supports_native_streaming: true}
  - model_name: "claude-sim-*"
    litellm_params: {model: "anthropic/sim-*", api_base: "UPSTREAM", api_key: "none"}
  - model_name: "mock"
    litellm_params: {model: "openai/gpt-mock", api_key: "none", mock_response: "Hello from the mock."}
  - model_name: "mock-error"
    litellm_params: {model: "openai/gpt-mock", api_key: "none", mock_response: "litellm.RateLimitError"}
litellm_settings: {num_retries: 0, telemetry: false}
router_settings: {num_retries: 0, disable_cooldowns: true}
general_settings: {master_key: "KEY"}
"""


@pytest.fixture(scope="module")
def truth(tmp_path_factory):
    return tmp_path_factory.mktemp("truth") / "truth.jsonl"


@pytest.fixture(scope="module")
def proxy(start, start_sim, truth, tmp_path_factory):
    """Start the proxy in front of a simulator, without any outside network, and return its URL."""
    upstream = start_sim("--truth", str(truth))
    folder = tmp_path_factory.mktemp("litellm")
    (folder / "config.yaml").write_text(CONFIG.replace("UPSTREAM", upstream).replace("KEY", KEY))
    port = find_free_port()
    log = folder / "log.txt"
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_TELEMETRY": "False", "LITELLM_LOG": "ERROR", "NO_PROXY": "*",
    }  # fmt: skip
    program = PEERS / "litellm/bin/litellm"
    command = [program, "--config", folder / "config.yaml", "--host", "127.0.0.1", "--port", str(port)]
    with log.open("w") as file:
        process = start([*map(str, command), "--telemetry", "False"], env=environment, cwd=folder,
                        stdout=file, stderr=subprocess.STDOUT)  # fmt: skip
    url = f"http://127.0.0.1:{port}"

    def answers():
        try:
            return urllib.request.urlopen(f"{url}/health/liveliness", timeout=2).status == 200
        except (urllib.error.URLError, OSError):
            return False

    wait_until(answers, process, 120, log)
    return url


def ours(ask, proxy, protocol, model, prompt="hello"):
    return ask(proxy, protocol, model=model, key=KEY, prompt=prompt, limits=LIMITS)


FAULTS = (
    "ok", "error-mid", "error-pre", "truncate", "reset", "http-429", "http-500", "http-401", "not-a-stream",
    "unterminated", "reasoning", "tool-call", "length", "empty", "stall-mid-dead", "pings", "crlf", "split",
)  # fmt: skip


@pytest.mark.parametrize("protocol", ["chat", "responses", "messages"])
@pytest.mark.parametrize("fault", FAULTS)
def test_what_the_proxy_makes_of_a_fault_has_the_outcome_that_its_bytes_have(protocol, fault, proxy, ask):
    model = f"claude-sim-{fault}" if protocol == "messages" else f"sim-{fault}"

    record = ours(ask, proxy, protocol, model)

    assert outcome(protocol, request(protocol, proxy, model, "hello", KEY)) == record.outcome


@pytest.mark.parametrize("protocol", ["chat", "responses", "messages"])
@pytest.mark.parametrize("model", ["mock", "mock-error", "no-such-model"])
def test_what_the_proxy_says_by_itself_has_the_outcome_that_its_bytes_have(protocol, model, proxy, ask):
    record = ours(ask, proxy, protocol, model)

    assert outcome(protocol, request(protocol, proxy, model, "hello", KEY)) == record.outcome


@pytest.mark.parametrize(
    ("protocol", "model", "expected"),
    [
        ("chat", "mock", "completed"),
        ("messages", "mock", "not_a_stream"),  # 200 and JSON, although a stream was asked for
        ("chat", "sim-ok", "completed"),
        ("responses", "sim-ok", "completed"),
        ("messages", "claude-sim-ok", "completed"),
        ("chat", "sim-error-mid", "error_event"),
        ("chat", "sim-reset", "error_event"),  # it turns the broken connection into an error
        ("chat", "sim-truncate", "completed"),  # and a clean cut into a proper end: no client can know
        ("chat", "sim-not-a-stream", "empty"),
        ("chat", "sim-stall-mid-dead", "stalled"),
        ("chat", "sim-http-429", "http_error"),
    ],
)
def test_what_the_proxy_is_known_to_do(protocol, model, expected, proxy, ask):
    assert expected == ours(ask, proxy, protocol, model).outcome


def told(truth, name):
    """Return the line about request *name*; the log is flushed each second."""
    for _ in range(50):
        lines = [line for line in map(json.loads, truth.read_text().splitlines()) if line["request"] == name]
        if lines:
            (line,) = lines
            return line
        time.sleep(0.1)
    raise AssertionError(f"nothing about {name}: {truth.read_text()[-500:]}")


def test_truth_is_joined_by_a_marker_in_the_prompt_where_the_header_is_dropped(proxy, truth, ask):
    name = new_request_id()

    record = ours(ask, proxy, "chat", "sim-slow-drip", prompt=f"hello [[req:{name}-1]]")
    line = told(truth, name)

    assert ("slow-drip", "completed", "completed") == (line["fault"], line["outcome"], record.outcome)
    assert 12 == line["tokens"] == record.tokens.output
    assert 0.0 < line["first_content_s"] < record.first_content_s

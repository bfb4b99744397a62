"""The official SDKs against the official dialect: raw iterators and helpers, in all three protocols."""

from typing import Any

import anthropic
import openai
import pytest

from harness.sim.words import said

PROMPT: Any = [{"role": "user", "content": "Write a haiku about the sea."}]
TEXT = said(0, 40)


@pytest.fixture(scope="module")
def sim(launch):
    return launch("--gateway", "hopbase", "--time-scale", "0.01", "--tokens", "40", "--gap", "3ms",
                  "--first-token", "50ms")  # fmt: skip


@pytest.fixture
def openai_client(sim):
    with openai.OpenAI(base_url=f"{sim.url}/v1", api_key="k", max_retries=0) as client:
        yield client


@pytest.fixture
def anthropic_client(sim):
    with anthropic.Anthropic(base_url=sim.url, api_key="k", max_retries=0) as client:
        yield client


def test_chat_raw(openai_client):
    with openai_client.chat.completions.create(
        model="m", messages=PROMPT, stream=True, stream_options={"include_usage": True}
    ) as stream:
        chunks = list(stream)

    assert TEXT == "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert (40, 46) == (chunks[-1].usage.completion_tokens, chunks[-1].usage.total_tokens)
    assert "m" == chunks[0].model


def test_chat_helper(openai_client):
    with openai_client.chat.completions.stream(model="m", messages=PROMPT) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_completion()

    assert {"chunk", "content.delta", "content.done"} <= kinds
    assert (TEXT, "stop") == (final.choices[0].message.content, final.choices[0].finish_reason)


def test_responses_raw(openai_client):
    with openai_client.responses.create(model="m", input="Write.", stream=True) as stream:
        events = list(stream)

    assert "response.completed" == events[-1].type
    assert TEXT == "".join(e.delta for e in events if e.type == "response.output_text.delta")
    assert 40 == events[-1].response.usage.output_tokens


def test_responses_helper(openai_client):
    with openai_client.responses.stream(model="m", input="Write.") as stream:
        assert 40 == sum(event.type == "response.output_text.delta" for event in stream)
        final = stream.get_final_response()

    assert (TEXT, "completed") == (final.output_text, final.status)


def test_messages_raw(anthropic_client):
    with anthropic_client.messages.create(model="m", max_tokens=1000, messages=PROMPT, stream=True) as stream:
        events = list(stream)

    assert ["message_start", "content_block_start"] == [e.type for e in events[:2]]
    assert "message_stop" == events[-1].type
    assert TEXT == "".join(e.delta.text for e in events if e.type == "content_block_delta")


def test_messages_helper(anthropic_client):
    with anthropic_client.messages.stream(model="m", max_tokens=1000, messages=PROMPT) as stream:
        assert TEXT == "".join(stream.text_stream)
        final = stream.get_final_message()

    assert ("end_turn", 40) == (final.stop_reason, final.usage.output_tokens)


@pytest.mark.parametrize("fault", ["tool-call", "refusal", "reasoning"])
def test_helpers_follow_the_other_channels(openai_client, anthropic_client, fault):
    headers = {"X-Harness-Fault": fault}
    with openai_client.chat.completions.stream(model="m", messages=PROMPT, extra_headers=headers) as stream:
        list(stream)
        chat = stream.get_final_completion().choices[0]
    with openai_client.responses.stream(model="m", input="Write.", extra_headers=headers) as stream:
        list(stream)
        response = stream.get_final_response()
    with anthropic_client.messages.stream(
        model="m", max_tokens=1000, messages=PROMPT, extra_headers=headers
    ) as stream:
        list(stream)
        message = stream.get_final_message()

    if fault == "tool-call":
        assert ("tool_calls", "tool_use") == (chat.finish_reason, message.stop_reason)
        assert message.content[0].input["query"].endswith("tides")
        assert "function_call" == response.output[0].type
    elif fault == "refusal":
        assert (TEXT, "refusal") == (chat.message.refusal, message.stop_reason)
        assert TEXT == response.output[0].content[0].refusal
    else:
        assert said(20, 40) == chat.message.content == response.output_text == message.content[1].text
        assert ("thinking", "reasoning") == (message.content[0].type, response.output[0].type)


def test_whole_answers_models_and_token_counts(openai_client, anthropic_client):
    chat = openai_client.chat.completions.create(model="m", messages=PROMPT)
    response = openai_client.responses.create(model="m", input="Write.", max_output_tokens=5)
    message = anthropic_client.messages.create(model="m", max_tokens=5, messages=PROMPT)

    assert TEXT == chat.choices[0].message.content
    assert (said(0, 5), "incomplete") == (response.output_text, response.status)
    assert (said(0, 5), "max_tokens") == (message.content[0].text, message.stop_reason)
    assert 6 == anthropic_client.messages.count_tokens(model="m", messages=PROMPT).input_tokens
    assert "claude-sonnet-5" in {model.id for model in openai_client.models.list()}
    assert "claude-sonnet-5" in {model.id for model in anthropic_client.models.list()}
    assert "sim" == openai_client.models.retrieve("sim").id


def test_the_sdks_retry_until_the_gateway_recovers(sim):
    with openai.OpenAI(
        base_url=f"{sim.url}/fault/http-429-ms,http-429-ms,ok/v1", api_key="retrying"
    ) as client:
        answer: Any = client.chat.completions.create(model="m", messages=PROMPT, stream=True)
        assert TEXT == "".join(c.choices[0].delta.content or "" for c in answer if c.choices)


def test_errors_arrive_as_the_sdks_classes(sim, openai_client, anthropic_client):
    with pytest.raises(openai.RateLimitError):
        openai_client.chat.completions.create(
            model="m", messages=PROMPT, stream=True, extra_headers={"X-Harness-Fault": "http-429"}
        )
    with pytest.raises(anthropic.InternalServerError):
        anthropic_client.messages.create(
            model="m", max_tokens=9, messages=PROMPT, extra_headers={"X-Harness-Fault": "http-529"}
        )
    with (
        openai_client.chat.completions.create(
            model="m", messages=PROMPT, stream=True, extra_headers={"X-Harness-Fault": "error-mid"}
        ) as stream,
        pytest.raises(openai.APIError, match="Response stream interrupted"),
    ):
        list(stream)


def test_the_verdict_says_that_the_sdk_waited_as_long_as_told(launch):
    sim = launch("--tokens", "2", "--first-token", "1ms", "--verdict")
    with openai.OpenAI(base_url=f"{sim.url}/fault/http-429-ms,ok/v1", api_key="k") as client:
        list(client.chat.completions.create(model="m", messages=PROMPT, stream=True))
    sim.process.terminate()
    lines = sim.process.stdout.read().splitlines()

    assert "client: 1 requests, 2 attempts (1 took 2)" == lines[0]
    assert "Retry-After: obeyed 1 of 1 times" == lines[2]

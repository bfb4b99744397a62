"""In-stream errors in the shapes of every vendor and engine, whichever gateway is played."""

from collections.abc import Callable
from typing import Any

from harness.sim.dialogues import ErrorFacts
from harness.sim.dialogues.base import DONE, data_event, named_event
from harness.sim.faults.registry import fault
from harness.sim.plan import EVENT, TERMINAL, Plan
from harness.sim.script import Script
from harness.sim.vendor import official_error

_TEXT = "The engine broke off."
_STOP = named_event("message_stop", {"type": "message_stop"})
_ANTHROPIC = named_event("error", {"type": "error", "error": {"type": "api_error", "message": _TEXT}})

Shape = Callable[[Script], tuple[bytes, ...]]
"""Returns the error's bytes, and what follows it."""


def _plan(shape: Shape) -> Callable[[Script], Plan]:
    def plan(script: Script) -> Plan:
        yield from script.opening()
        yield from script.tokens(script.half)
        due = script.next_s
        error, *after = shape(script)
        yield due, TERMINAL, error
        for event in after:
            yield due, EVENT, event

    return plan


def _data(error: Any, **beside: Any) -> bytes:
    return data_event({"error": error, **beside})


def _official(script: Script) -> tuple[bytes, ...]:
    return (script.dialogue.error(official_error(script.circumstances.protocol)),)


def _flat(script: Script) -> tuple[bytes, ...]:
    flat = {"type": "error", "code": "server_error", "message": _TEXT, "param": None, "sequence_number": 99}
    return (named_event("error", flat),)


def _nested(script: Script) -> tuple[bytes, ...]:
    error = {"type": "server_error", "code": "server_error", "message": _TEXT, "param": None}
    return (named_event("error", {"type": "error", "sequence_number": 99, "error": error}),)


def _hopbase(script: Script) -> tuple[bytes, ...]:
    return (_data({"message": _TEXT, "type": "server_error", "code": "upstream_error"}),)


def _hopbase_failed(script: Script) -> tuple[bytes, ...]:
    if script.circumstances.protocol != "responses":
        return (_ANTHROPIC,) if script.circumstances.protocol == "messages" else _hopbase(script)
    error = {"code": "rate_limit_exceeded", "message": _TEXT}
    response = {"id": "resp_hopbase_error", "object": "response", "status": "failed", "error": error}
    failed = {"type": "response.failed", "sequence_number": 0, "response": response | {"usage": None}}
    return (named_event("response.failed", failed),)


def _sabiuco(script: Script) -> tuple[bytes, ...]:
    message = "La respuesta se ha cortado. Inténtalo de nuevo."
    return (_data({"message": message, "type": "api_error", "code": "stream_interrupted"}),)


def _openrouter(script: Script) -> tuple[bytes, ...]:
    choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error", "native_finish_reason": "error"}
    chunk = {"id": "gen-1", "object": "chat.completion.chunk", "provider": "Simulated", "model": "m"}
    return (data_event(chunk | {"error": {"code": 502, "message": _TEXT}, "choices": [choice]}),)


def _litellm(script: Script) -> tuple[bytes, ...]:
    error = {"message": _TEXT, "type": "server_error", "param": None, "code": "500"}
    if script.circumstances.protocol == "messages":
        return (_ANTHROPIC,)
    if script.circumstances.protocol == "responses":
        return (named_event("error", {"type": "error", "sequence_number": 99, **error, "error": error}),)
    return _data(error), DONE


def _vllm(script: Script) -> tuple[bytes, ...]:
    if script.circumstances.protocol == "messages":
        closed = named_event("content_block_stop", {"type": "content_block_stop", "index": 0})
        return (closed + _ANTHROPIC,)
    return _data({"message": _TEXT, "type": "InternalServerError", "param": None, "code": 500}), DONE


def _sglang(script: Script) -> tuple[bytes, ...]:
    if script.circumstances.protocol == "messages":
        return _ANTHROPIC, _STOP
    error = {"object": "error", "message": _TEXT, "type": "InternalServerError", "param": None, "code": 500}
    return _data(error), DONE


def _llamacpp(script: Script) -> tuple[bytes, ...]:
    error = {"code": 500, "message": _TEXT, "type": "server_error"}
    if script.circumstances.protocol == "messages":
        return (named_event("error", error),)
    return (_data(error),)


def _fastchat(script: Script) -> tuple[bytes, ...]:
    return (data_event({"object": "error", "message": _TEXT, "code": 50001}),)


def _without_event_line(script: Script) -> tuple[bytes, ...]:
    return (data_event({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),)


def _string(script: Script) -> tuple[bytes, ...]:
    return (_data(_TEXT),)


def _data_only(script: Script) -> tuple[bytes, ...]:
    return (script.dialogue.data_error(ErrorFacts("server_error", _TEXT, "server_error")),)


def _anthropic(script: Script) -> tuple[bytes, ...]:
    return (_ANTHROPIC,)


def _as_field(script: Script) -> tuple[bytes, ...]:
    return (b'error: {"code":500,"message":"The engine broke off.","type":"server_error"}\n\n',)


_SHAPES: tuple[tuple[str, str, Shape], ...] = (
    ("error-official", "the error of the protocol's own vendor", _official),
    ("error-flat", "a flat `event: error`, as the Responses documents show it", _flat),
    ("error-nested", "a nested `event: error`, as Responses really sends it", _nested),
    ("error-data", "`data: {error}` without an event line, in any protocol", _data_only),
    ("error-string", "`data: {error: text}`", _string),
    ("error-anthropic", "Anthropic's `event: error`, in any protocol", _anthropic),
    (
        "error-without-event-line",
        "Anthropic's error without its event line: its SDK drops it",
        _without_event_line,
    ),
    ("error-hopbase", "HopBase's bare upstream error, in any protocol", _hopbase),
    (
        "error-hopbase-failed",
        "HopBase's error of its own making, in Responses with another id",
        _hopbase_failed,
    ),
    ("error-sabiuco", "Sabiuco's last event", _sabiuco),
    ("error-openrouter", "OpenRouter's chunk with an error beside its choices", _openrouter),
    ("error-litellm", "LiteLLM's error, in Chat with [DONE] after it", _litellm),
    ("error-vllm", "vLLM's error with a number as code and [DONE] after it", _vllm),
    ("error-sglang", "SGLang's error, with a terminal after it", _sglang),
    ("error-llamacpp", "llama.cpp's error, in Messages without the envelope", _llamacpp),
    ("error-fastchat", "FastChat's error object without an error key", _fastchat),
)
for _name, _about, _shape in _SHAPES:
    fault(_name, f"half of the answer, then {_about}", outcome="error_event")(_plan(_shape))

fault(
    "error-as-field",
    "half of the answer, then old llama.cpp's `error:` field, which no parser sees",
    "truncated",
)(_plan(_as_field))

"""What the official SDKs make of a stream, in a few words."""

from __future__ import annotations

from typing import Any

import anthropic
import gevent
import openai

READ_S = 0.6
# A stream that comments keep alive never lets a read time out: this is when we stop watching the SDK wait.
PATIENCE_S = 2.5
ASK: Any = [{"role": "user", "content": "hello"}]

WAITS = "still waiting"


def client(protocol: str, url: str, key: str = "k") -> Any:
    make: Any = anthropic.Anthropic if protocol == "messages" else openai.OpenAI
    base = url if protocol == "messages" else f"{url}/v1"
    timeout = (anthropic if protocol == "messages" else openai).Timeout(READ_S, connect=5.0)
    return make(base_url=base, api_key=key, max_retries=0, timeout=timeout)


def seen_by_sdk(protocol: str, url: str, model: str, headers: dict[str, str], key: str = "k") -> str:
    """Return ``complete``, ``partial`` (no finish), ``nothing``, `WAITS`, or the exception's name."""
    patience = gevent.Timeout(PATIENCE_S)
    patience.start()
    try:
        with client(protocol, url, key) as sdk:
            return _read(protocol, sdk, model, headers)
    except gevent.Timeout:
        return WAITS
    except Exception as error:  # noqa: BLE001 - what the SDK raises is what the test is about
        kind = type(error)
        return (
            kind.__name__ if kind.__module__.startswith(("openai", "anthropic")) else f"raw {kind.__name__}"
        )
    finally:
        patience.close()


def _read(protocol: str, sdk: Any, model: str, headers: dict[str, str]) -> str:
    events, finish = 0, False
    if protocol == "chat":
        for chunk in sdk.chat.completions.create(
            model=model, messages=ASK, stream=True, extra_headers=headers
        ):
            events += 1
            finish = finish or any(choice.finish_reason for choice in chunk.choices or ())
    elif protocol == "responses":
        for event in sdk.responses.create(model=model, input="hello", stream=True, extra_headers=headers):
            events += 1
            finish = finish or event.type in ("response.completed", "response.incomplete")
    else:
        stream = sdk.messages.create(
            model=model, messages=ASK, max_tokens=64, stream=True, extra_headers=headers
        )
        for event in stream:
            events += 1
            finish = finish or event.type == "message_stop"
    return "complete" if finish else "partial" if events else "nothing"

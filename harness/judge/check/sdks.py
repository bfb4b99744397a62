"""What readers that people use make of recorded bytes: our parser, and the official SDKs where installed.

The SDKs read from memory: their HTTP client is given a transport that answers with the recording.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib import import_module, metadata
from typing import Any

from harness.judge.check.observation import Case, Observation
from harness.judge.check.verdict import Seen, Verdict, fine, wrong
from harness.wire.sse import Event, SseParser

_SDK_OF = {"chat": "openai", "responses": "openai", "messages": "anthropic"}
_ASK: list[dict[str, str]] = [{"role": "user", "content": "hello"}]


def version_of(protocol: str) -> str | None:
    """Return name and version of the protocol's official SDK; None if it is not installed."""
    try:
        return f"{_SDK_OF[protocol]} {metadata.version(_SDK_OF[protocol])}"
    except metadata.PackageNotFoundError:
        return None


# Several statements are about what a reader makes of the same stream.
_KEPT = 256


@lru_cache(maxsize=_KEPT)
def events_of(protocol: str, body: bytes) -> dict[str, list[str] | str]:
    """Return what each reader sees in *body*: its events, or the name of the exception it raises."""
    parser = SseParser()
    items = parser.feed(body)
    found: dict[str, list[str] | str] = {
        "our parser": [f"{i.type}:{i.data}" for i in items if isinstance(i, Event)]
    }
    if sdk := version_of(protocol):
        found[sdk] = _tried(lambda: [repr(event) for event in raw_iterator(protocol, body)])
    return found


def _tried(read: Callable[[], list[str]]) -> list[str] | str:
    try:
        return read()
    except Exception as error:  # noqa: BLE001 - whatever a foreign reader raises is the observation
        return f"{type(error).__name__}: {str(error)[:100]}"


def _client(protocol: str, body: bytes) -> Any:
    """Return an SDK client that gets *body* as the answer to everything."""
    sdk = import_module(_SDK_OF[protocol])
    http = import_module(sdk.DefaultHttpxClient.__mro__[1].__module__.partition(".")[0])

    def answer(request: Any) -> Any:
        return http.Response(200, headers={"content-type": "text/event-stream"}, content=body)

    client = http.Client(transport=http.MockTransport(answer), base_url="http://recording.invalid/v1")
    make = sdk.OpenAI if _SDK_OF[protocol] == "openai" else sdk.Anthropic
    return make(api_key="none", http_client=client, max_retries=0, base_url="http://recording.invalid/v1")


def raw_iterator(protocol: str, body: bytes) -> Iterator[Any]:
    """Yield what the SDK's plain iterator yields for *body*."""
    with _client(protocol, body) as client:
        if protocol == "chat":
            yield from client.chat.completions.create(model="m", messages=_ASK, stream=True)
        elif protocol == "responses":
            yield from client.responses.create(model="m", input="hello", stream=True)
        else:
            yield from client.messages.create(model="m", messages=_ASK, max_tokens=64, stream=True)


def helper_text(protocol: str, body: bytes) -> str:
    """Return the text of the final object that the SDK's helper builds from *body*."""
    with _client(protocol, body) as client:
        if protocol == "chat":
            with client.chat.completions.stream(model="m", messages=_ASK) as stream:
                choice = stream.get_final_completion().choices[0]
                return str(choice.message.content or "")
        if protocol == "responses":
            with client.responses.stream(model="m", input="hello") as stream:
                return str(stream.get_final_response().output_text)
        with client.messages.stream(model="m", messages=_ASK, max_tokens=64) as stream:
            return "".join(block.text for block in stream.get_final_message().content if block.type == "text")


def sdks_work(case: Case) -> Verdict:
    """Iterator and helper of the official SDKs read the stream, and the final object is complete."""
    missing = {_SDK_OF[p] for p in case.profile.endpoints if version_of(p) is None}
    if missing:
        return Verdict("not testable here", f"not installed: {', '.join(sorted(missing))}")

    def test(stream: Observation) -> Seen | None:
        if stream.record.outcome != "completed":
            return None
        sdk = str(version_of(stream.protocol))
        seen = events_of(stream.protocol, stream.body)[sdk]
        if isinstance(seen, str):
            return wrong(f"{sdk}, iterator: {seen}")
        built = _built(stream.protocol, stream.body)
        if isinstance(built, str):
            return wrong(f"{sdk}, helper: {built}")
        if stream.record.finish == "stop" and built[0] != stream.text:
            return wrong(f"{sdk}, helper: {len(built[0])} of {len(stream.text)} characters")
        return fine(f"{sdk}: iterator and helper, {len(stream.text)} characters")

    return case.each(("healthy", "thinking"), test)


@lru_cache(maxsize=_KEPT)
def _built(protocol: str, body: bytes) -> list[str] | str:
    return _tried(lambda: [helper_text(protocol, body)])


def python_example(case: Case) -> Verdict:
    """The documented loop prints the text."""
    if version_of("chat") is None:
        return Verdict("not testable here", "not installed: openai")

    def test(stream: Observation) -> Seen | None:
        if stream.record.outcome != "completed":
            return None
        printed = ""
        try:
            for trozo in raw_iterator("chat", stream.body):
                if trozo.choices and trozo.choices[0].delta.content:
                    printed += trozo.choices[0].delta.content
        except Exception as error:  # noqa: BLE001 - whatever the example raises is the observation
            return wrong(f"{version_of('chat')}: {type(error).__name__}: {str(error)[:100]}")
        return Seen(printed == stream.text, f"{version_of('chat')}: {len(printed)} characters printed")

    return case.each(("healthy", "thinking"), test, protocol="chat")


def javascript_example(case: Case) -> Verdict:
    """`trozo.choices[0]?.delta?.content` finds a list in every chunk: judged by the rules of the language."""

    def test(stream: Observation) -> Seen | None:
        if stream.record.outcome != "completed":
            return None
        for event in stream.events:
            if (event.block.data or b"").startswith(b"[DONE]"):
                break
            if event.body is None:
                return wrong("SyntaxError: a chunk that is no JSON", event.block.raw, event.block.at_s)
            if event.body.get("choices") is None:
                return wrong("TypeError: a chunk without choices", event.block.raw, event.block.at_s)
        return fine(f"{len(stream.events)} chunks: `choices` is a list in each of them")

    return case.each(("healthy", "thinking"), test, protocol="chat")

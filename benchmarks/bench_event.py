"""What a session takes for one event of output, in a loop of its own: memory is warm and no socket is read.

And what it takes where the process slept before it: a reader of few streams is woken for nearly every event,
and then finds its memory cold.

    python benchmarks/bench_event.py
"""

from __future__ import annotations

import time
from statistics import median

from harness.gateways import load
from harness.stream import Session
from harness.wire import grammar_for

EVENTS, TIMES = 20_000, 5
SLEEP_S = 50e-6

CHAT = (
    b'data: {"id":"c1","object":"chat.completion.chunk","created":1796062972,"model":"m",'
    b'"system_fingerprint":"f","choices":[{"index":0,"delta":{%s},"logprobs":null,"finish_reason":null}]}\n\n'
)


def event(name: str, fields: str) -> bytes:
    """Return a named event whose data has its type and *fields*."""
    return f'event: {name}\ndata: {{"type":"{name}",{fields}}}\n\n'.encode()


def streams() -> dict[str, tuple[list[bytes], list[bytes]]]:
    """Return, by protocol, what a stream begins with and its events of output."""
    place = '"output_index":0,"content_index":0,"item_id":"i1"'
    return {
        "chat": ([CHAT % b'"role":"assistant","content":""'], [CHAT % b'"content":"The "'] * EVENTS),
        "messages": (
            [
                event("message_start", '"message":{"id":"m1","usage":{"input_tokens":3,"output_tokens":1}}'),
                event("content_block_start", '"index":0,"content_block":{"type":"text","text":""}'),
            ],
            [event("content_block_delta", '"index":0,"delta":{"type":"text_delta","text":"The "}')] * EVENTS,
        ),
        "responses": (
            [
                event(
                    "response.created", '"sequence_number":0,"response":{"id":"r1","status":"in_progress"}'
                ),
                event(
                    "response.output_item.added",
                    '"sequence_number":1,"output_index":0,"item":{"type":"message","id":"i1"}',
                ),
                event(
                    "response.content_part.added",
                    f'"sequence_number":2,{place},"part":{{"type":"output_text","text":""}}',
                ),
            ],
            [
                event(
                    "response.output_text.delta",
                    f'"sequence_number":{number + 3},{place},"delta":"The ","logprobs":[]',
                )
                for number in range(EVENTS)
            ],
        ),
    }


def cost(protocol: str, opening: list[bytes], events: list[bytes]) -> float:
    """Return the µs per event of the fastest of some rounds."""
    best = float("inf")
    for _ in range(TIMES):
        session = begun(protocol, opening)
        t, began = 0.0, time.perf_counter()
        for data in events:
            t += 0.02
            session.feed(data, t, t)
        best = min(best, (time.perf_counter() - began) / len(events) * 1e6)
        if session.progress_count != len(events) or session.grammar.facts.violations:
            raise SystemExit(f"{protocol}: not what was meant: {session.grammar.facts.violations}")
    return best


def cost_after_sleep(protocol: str, opening: list[bytes], events: list[bytes]) -> float:
    """Return the median µs of an event for which the process was woken, as a reader of few streams is."""
    session, t = begun(protocol, opening), 0.0
    costs = []
    for data in events[:2000]:
        t += 0.02
        time.sleep(SLEEP_S)
        before = time.perf_counter()
        session.feed(data, t, t)
        costs.append(time.perf_counter() - before)
    return median(costs) * 1e6


def begun(protocol: str, opening: list[bytes]) -> Session:
    """Return a session whose stream has begun."""
    session = Session(grammar_for(protocol), load("generic").limits, 0.0)
    session.sent(0.0)
    session.headers(200, {"content-type": "text/event-stream"}, 0.0)
    for data in opening:
        session.feed(data, 0.0, 0.0)
    return session


def main() -> None:
    """Print a line per protocol."""
    for protocol, (opening, events) in streams().items():
        alone, woken = cost(protocol, opening, events), cost_after_sleep(protocol, opening, events)
        print(
            f"{protocol:<10}{alone:6.2f} µs per event{woken:8.2f} µs after a sleep of {SLEEP_S * 1e6:.0f} µs"
        )


if __name__ == "__main__":
    main()

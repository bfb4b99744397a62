"""Two made-up runs whose every number is known, as the exporter would have shown them.

Each of the 200 seconds of a run begins one request per protocol. What becomes of it depends on the second's
last digit and on the protocol:

| digit | chat | responses | messages |
| --- | --- | --- | --- |
| 0–7 | completed | completed | completed |
| 8 | stalled, keepalives only | error inside the stream | 429, then completed (7 tokens wasted) |
| 9 | completed after a stall that was watched | truncated | 500 |

So of 620 attempts that count, 520 complete. First tokens come after the `TTFT` of the digit, in run r2
(another gateway, real) half a second later; whatever answers with an HTTP error has none. Three streams per
protocol stay open; every tenth arrival is dropped on top.
"""

from __future__ import annotations

import io
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from harness.gateways.profile import Keepalive
from harness.observe.aggregate import Aggregate
from harness.observe.labels import Labels
from harness.observe.openmetrics import Backfill
from harness.observe.state import Nodes, Observed, Reason, RunState
from harness.stream.record import (
    Attempt,
    ErrorRecord,
    KeepaliveRecord,
    Progress,
    RequestSummary,
    Retry,
    Stall,
    Tokens,
)
from tests.records import make_keepalive, make_record

T1, T2, SECONDS = 1_700_000_000, 1_700_000_400, 200
RUNS = (("r1", "sim:hopbase", T1), ("r2", "hopbase", T2))
PROTOCOLS = ("chat", "responses", "messages")
TTFT = (0.22, 0.22, 0.22, 0.22, 0.22, 0.45, 0.45, 0.45, 0.9, 3.0)
PROMISE = Keepalive("x", 10.0, "periodic", 16.0, 22.0)
TICK = 5


@dataclass
class Session:
    """What the aggregate reads of an open or ended stream."""

    phase: str = "mid_stream"
    opened: float = 0.0
    t0: float | None = 0.0
    last_byte: float | None = None
    last_progress: float | None = None
    slow_after_s: float | None = 90.0
    gaps: array[float] = field(default_factory=lambda: array("d"))
    keepalive_gaps: list[tuple[str, float]] = field(default_factory=list)
    thinking_s: float = 0.0
    dead_s: float = 0.0
    uncertainties: list[float] = field(default_factory=list)
    soft_stall_counts: dict[str, int] = field(default_factory=dict)
    first_token_window_s: float = 0.0


@dataclass(frozen=True)
class Dataset:
    """The OpenMetrics text, and one exposition of the last moment in Prometheus's own format."""

    text: str
    last: Observed

    starts: tuple[int, int] = (T1, T2)


def attempt(labels: Labels, second: int, **changed: Any) -> Attempt:
    """A completed stream with its first token after what the second's last digit says."""
    ttft = TTFT[second % 10] + (0.5 if labels.run == "r2" else 0.0)
    outcome = changed.get("outcome", "completed")
    number = changed.get("attempt", 1)
    retried = changed.pop("retried", "not_needed" if outcome == "completed" else "not_retryable")
    wasted = changed.pop("wasted", 0)
    fields: dict[str, Any] = {
        "run": labels.run,
        "request": f"q{second}",
        "attempt": number,
        "protocol": labels.protocol,
        "gateway": labels.gateway,
        "simulated": True,
        "scenario": labels.scenario,
        "model": labels.model,
        "scheduled_at": 0.0,
        "sent_at": 0.0,
        "connect_s": 0.001,
        "first_byte_s": 0.06,
        "first_event_s": 0.06,
        "first_token_s": ttft,
        "first_content_s": ttft,
        "last_token_s": 4.0,
        "last_byte_s": 4.0,
        "terminal_s": 4.0,
        "end_s": 4.0,
        "events": 100,
        "bytes": 9000,
        "reads": 100,
        "tokens": Tokens(10, 50, 5, None, "usage"),
        "progress": Progress(50, 0.02, 0.03, 0.03, 1.0),
        "keepalive": KeepaliveRecord(1, 0, 1.0, 10.0, 10.0, 10.0, 0, 0, None),
        "finish": "stop" if outcome == "completed" else None,
        "request_summary": RequestSummary(
            number, outcome, retried, ttft, ttft, 4.0, wasted, "usage" if wasted else None
        ),
    }
    return make_record(**{**fields, **changed})


NO_STREAM: dict[str, Any] = {
    "headers_s": 0.05,
    "first_byte_s": 0.06,
    "first_event_s": None,
    "first_token_s": None,
    "first_content_s": None,
    "last_token_s": None,
    "terminal_s": None,
    "end_s": 0.1,
    "silence_max_s": None,
    "tokens": Tokens(None, None, None, None, "events"),
    "keepalive": make_keepalive(),
}


def happens(labels: Labels, second: int) -> Iterator[Attempt]:
    """What becomes of the request that *second* begins."""
    digit, protocol = second % 10, labels.protocol
    if digit == 8 and protocol == "chat":
        stall = Stall("keepalive_only_mid", "mid_stream", 165.0, 4.0, 169.0, True)
        late = KeepaliveRecord(16, 0, 1.0, 10.0, 10.5, 23.0, 1, 1, None)
        yield attempt(labels, second, outcome="stalled", stall=stall, end_s=169.0, keepalive=late)
    elif digit == 8 and protocol == "responses":
        error = ErrorRecord("stream", "server_error", "upstream_error", "please retry", True, "data")
        yield attempt(labels, second, outcome="error_event", error=error)
    elif digit == 8:
        yield attempt(
            labels,
            second,
            outcome="http_error",
            status=429,
            final=False,
            **NO_STREAM,
            retry=Retry("retry", "http_429", 1.5),
        )
        yield attempt(labels, second, attempt=2, retried="recovered", wasted=7)
    elif digit == 9 and protocol == "chat":
        watched = Stall("keepalive_only_mid", "mid_stream", 165.0, 4.0, 171.0, False)
        yield attempt(labels, second, soft_stalls=[watched], violations={"chat.usage_missing": 2})
    elif digit == 9 and protocol == "responses":
        yield attempt(labels, second, outcome="truncated")
    elif digit == 9:
        yield attempt(labels, second, outcome="http_error", status=500, **NO_STREAM)
    else:
        yield attempt(labels, second)


def play(aggregate: Aggregate, labels: Labels, second: int) -> None:
    """One second of one protocol."""
    aggregate.arrival(labels, started=True, lag_s=0.0004)
    if second % 10 == 0:
        aggregate.arrival(labels, started=False, lag_s=0.0)
    for record in happens(labels, second):
        session = Session(
            keepalive_gaps=[("comment", 10.02)], thinking_s=1.5, dead_s=0.5, uncertainties=[0.007]
        )
        if record.attempt == 1:
            aggregate.request_started(labels)
        aggregate.attempt_started(labels, session)
        if record.first_token_s is not None:
            aggregate.gaps(labels, [0.018] * 48 + [0.035])
        aggregate.attempt_ended(labels, session, record)
    aggregate.read_lags([0.0003] * 9 + [0.004])
    aggregate.hub_lag(0.0003)


def make() -> Dataset:
    """Play both runs, one after the other, and take the numbers every five seconds."""
    aggregate, backfill = Aggregate("w1"), Backfill()
    aggregate.cpu_ratio, aggregate.open_sockets = 0.35, 40
    states: list[RunState] = []
    scrapes, observed = [], Observed(aggregate.snapshot(0.0))
    for run, gateway, start in RUNS:
        aggregate.begin_run(run, started_at=start)
        states.append(RunState(run, gateway, "0.1.0", gateway.startswith("sim:"), start, keepalive=PROMISE))
        for protocol in PROTOCOLS:
            labels = Labels(run, protocol, gateway, "default", "m1")
            for phase, byte, progress in (
                ("before_first_token", None, None),
                ("mid_stream", 0.0, 0.0),
                ("mid_stream", 0.0, -200.0),
            ):
                aggregate.attempt_started(
                    labels,
                    Session(
                        phase,
                        start,
                        start,
                        None if byte is None else start + byte,
                        None if progress is None else start + progress,
                    ),
                )
        for second in range(SECONDS + 1 + 30):
            if second < SECONDS:
                for protocol in PROTOCOLS:
                    play(aggregate, Labels(run, protocol, gateway, "default", "m1"), second)
            if second == SECONDS:
                states[-1].ended_at = start + SECONDS
                states[-1].valid = run == "r1"
                states[-1].reasons = () if run == "r1" else (Reason("late_arrivals", "late"),)
            if second % TICK == 0:
                observed = look(aggregate, states, start + second, second)
                backfill.add(start + second, observed)
                scrapes.append(
                    f'scrape_duration_seconds{{instance="x",job="harness"}} 0.004 {start + second}'
                )
    text = io.StringIO()
    backfill.write(text)
    own = ["# TYPE scrape_duration_seconds gauge", *scrapes, "# EOF\n"]
    return Dataset(text.getvalue().replace("# EOF\n", "\n".join(own)), observed)


def look(aggregate: Aggregate, states: list[RunState], now: float, second: int) -> Observed:
    """What a scrape would see, with the capacity search's steps: 4 and 8 requests/s held, 16 did not."""
    steps = ((1, 4.0, 4.0), (2, 8.0, 7.9), (3, 16.0, 9.0))
    states[-1].capacity_steps, states[-1].capacity_knee = steps[: 1 + second // 60], (2, 8.0)
    snapshot = aggregate.snapshot(now)
    return Observed(snapshot, states, Nodes(60, {"running": 2, "missing": 0}, {"w1": 0.5, "w2": 1.5}))

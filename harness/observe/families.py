"""Every metric by name, kind, labels and meaning: the one list that counting, merging and exposition share.

The help texts are written for the person who meets the metric in Prometheus for the first time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.observe import buckets
from harness.observe.labels import STREAM_LABELS

PREFIX = "harness_"


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """One metric. `name` has no prefix; `bounds` are those at time scale 1 (see `scales`)."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    help: str
    bounds: buckets.Bounds = ()
    scales: bool = False  # its bounds follow the run's time scale

    def bounds_at(self, time_scale: float) -> buckets.Bounds:
        """Return the bounds in a run whose profile's durations were multiplied by *time_scale*."""
        return buckets.scaled(self.bounds, time_scale) if self.scales else self.bounds


FAMILIES: dict[str, Family] = {}


def _family(
    name: str, kind: Literal["counter", "gauge", "histogram"], labels: tuple[str, ...], text: str,
    bounds: buckets.Bounds = (), scales: bool = False,
) -> Family:  # fmt: skip
    made = Family(name, kind, labels, text, bounds, scales)
    FAMILIES[name] = made
    return made


def _counter(name: str, *extra: str, text: str) -> Family:
    return _family(name, "counter", (*STREAM_LABELS, *extra), text)


def _histogram(name: str, bounds: buckets.Bounds, *extra: str, text: str, scales: bool = False) -> Family:
    return _family(name, "histogram", (*STREAM_LABELS, *extra), text, bounds, scales)


REQUESTS = _counter(
    "requests_total",
    "outcome",
    "retry_outcome",
    text="Requests that ended, as their user saw them: one request is one prompt, answered or not, over "
    "one or more attempts. retry_outcome is 'none' where retries had no say (aborted, abandoned).",
)
ATTEMPTS = _counter(
    "attempts_total",
    "outcome",
    "finish",
    "status",
    text="HTTP exchanges that ended, each with exactly one outcome. Only outcome='completed' is a "
    "success: errors inside HTTP 200, cut and stalled streams are not. status is the HTTP status, "
    "or 'none' if no answer came.",
)
HEADERS = _histogram(
    "time_to_headers_seconds",
    buckets.FIRST_TOKEN,
    text="From the moment before the request was written to the last byte of the response headers.",
)
FIRST_BYTE = _histogram(
    "time_to_first_byte_seconds",
    buckets.FIRST_TOKEN,
    text="From the moment before the request was written to the first byte of the body; a keepalive "
    "comment counts, so a gateway that sends one at once has a small value here whatever its model "
    "does.",
)
FIRST_TOKEN = _histogram(
    "time_to_first_token_seconds",
    buckets.FIRST_TOKEN,
    text="TTFT: from the moment before the request was written to the first visible output of any kind "
    "(text, reasoning, tool arguments). Streams that never got that far are not in it: look at "
    "attempts_total.",
)
FIRST_CONTENT = _histogram(
    "time_to_first_content_seconds",
    buckets.FIRST_TOKEN,
    text="As time_to_first_token_seconds, but to the first visible text or refusal: for a reasoning "
    "model this is when the answer begins, and the difference is how long it thought aloud.",
)
INTER_TOKEN = _histogram(
    "inter_token_latency_seconds",
    buckets.GAP,
    text="Time between two consecutive events that carry output, pooled over all streams. Gaps whose "
    "ends this process read too late to place are left out.",
)
STREAM_DURATION = _histogram(
    "stream_duration_seconds",
    buckets.DURATION,
    text="From the moment before the request was written to the end of the stream, for every stream "
    "that sent a byte. Streams that the client ended (aborted, abandoned) are left out: they would "
    "have lasted longer.",
)
LONGEST_SILENCE = _histogram(
    "longest_silence_seconds",
    buckets.SILENCE,
    text="The longest time without any byte in each stream, counted from its first one; keepalives "
    "break a silence.",
)
KEEPALIVE_INTERVAL = _histogram(
    "keepalive_interval_seconds",
    buckets.KEEPALIVE,
    "kind",
    scales=True,
    text="What the gateway's keepalive promise is about: with a periodic promise the time since the "
    "previous keepalive, with an idle promise the time since the last byte. The bounds follow the "
    "run's time scale.",
)
KEEPALIVE_PROMISED = _family(
    "keepalive_promised_seconds",
    "gauge",
    STREAM_LABELS,
    "The keepalive interval that the gateway's profile promises, time scale applied; absent if it "
    "promises none.",
)
KEEPALIVES = _counter(
    "keepalives_total",
    "kind",
    text="Signs of life without output: SSE comments, and pings (events that carry none).",
)
KEEPALIVE_DEVIATIONS = _counter(
    "keepalive_deviations_total",
    "severity",
    text="Keepalive intervals beyond what the profile promises: 'late' past its tolerance, 'violation' "
    "past the bound that it calls broken.",
)
STALLS = _counter(
    "stalls_total",
    "stall_class",
    "fatal",
    text="Output or bytes that were overdue beyond a limit. fatal='true' ended the stream; 'false' is a "
    "warning, or a stream that was watched on.",
)
STALL_DURATION = _histogram(
    "stall_duration_seconds",
    buckets.STALL,
    "stall_class",
    "fatal",
    text="How long a stall lasted, from the last thing that counted to its end. A fatal one ends at the "
    "limit: the true stall was at least as long.",
)
WAIT = _counter(
    "wait_seconds_total",
    "kind",
    text="Seconds that streams waited for output: 'thinking' while keepalives kept coming, 'dead' while "
    "nothing came at all. A wedged stream behind a gateway that sends keepalives for ever counts "
    "as thinking until a limit fires.",
)
ERROR_EVENTS = _counter(
    "error_events_total",
    "error_type",
    "phase",
    text="Errors that arrived inside a stream, that is inside HTTP 200, by the type that the gateway named.",
)
RETRIES = _counter(
    "retries_total",
    "reason",
    text="Attempts that were followed by another one, by why.",
)
RETRY_WAIT = _histogram(
    "retry_wait_seconds",
    buckets.RETRY_WAIT,
    "reason",
    text="How long the client waited before a retry.",
)
REQUEST_ATTEMPTS = _histogram(
    "request_attempts",
    buckets.ATTEMPTS,
    text="How many attempts a request took.",
)
TOKENS = _counter(
    "tokens_total",
    "kind",
    text="Tokens as the gateway reported them; where it did not, output is the number of output events. "
    "'wasted' was generated, billed and thrown away by a retry.",
)
VIOLATIONS = _counter(
    "protocol_violations_total",
    "rule",
    text="Breaches of the protocol that did not change the outcome, by rule.",
)
OPEN_STREAMS = _family(
    "open_streams",
    "gauge",
    (*STREAM_LABELS, "phase"),
    "Attempts that are open right now: 'connecting', 'waiting' for the first output, 'streaming', or "
    "'silent' (output began and is now overdue beyond the warning limit).",
)
OLDEST_SILENCE = _family(
    "oldest_silence_seconds",
    "gauge",
    STREAM_LABELS,
    "The longest time without any byte among the open streams right now; before the first byte it "
    "counts from the request. Rises by one per second while a stream is dead.",
)
OLDEST_PROGRESS_GAP = _family(
    "oldest_progress_gap_seconds",
    "gauge",
    STREAM_LABELS,
    "The longest time without output among the open streams right now; before the first output it "
    "counts from the request. High while oldest_silence_seconds is low: keepalives only, thinking or "
    "stuck.",
)
ARRIVALS = _counter(
    "arrivals_total",
    "result",
    text="Planned starts of requests: 'started', or 'dropped' because no user was free. Dropped ones "
    "were never sent.",
)
ARRIVAL_LAG = _histogram(
    "arrival_lag_seconds",
    buckets.LAG,
    text="How much later than planned a request started. This is the load generator's doing, not the "
    "gateway's.",
)

GENERATOR_LAG = _family(
    "generator_lag_seconds",
    "histogram",
    ("worker",),
    "How long bytes lay in the kernel before this process read them. Measured times do not include it "
    "where the kernel's time stamps are used.",
    buckets.LAG,
)
GENERATOR_UNCERTAINTY = _family(
    "generator_uncertainty_seconds",
    "histogram",
    ("worker",),
    "Width of the window in which an event arrived, for the events that late reads made uncertain "
    "(wider than 5 ms).",
    buckets.LAG,
)
HUB_LAG = _family(
    "hub_lag_seconds",
    "histogram",
    ("worker",),
    "How much later than asked the event loop of this process came round. If it is high, the load "
    "generator is short of CPU.",
    buckets.LAG,
)
CPU_RATIO = _family(
    "generator_cpu_ratio",
    "gauge",
    ("worker",),
    "CPU seconds per second of this process; 1 is one core.",
)
OPEN_SOCKETS = _family(
    "generator_open_sockets",
    "gauge",
    ("worker",),
    "Sockets that this process has open.",
)
USERS = _family(
    "users",
    "gauge",
    (),
    "Simulated users that are running.",
)
WORKERS = _family(
    "workers",
    "gauge",
    ("state",),
    "Worker processes by state; none in a run of one process.",
)
REPORT_AGE = _family(
    "worker_report_age_seconds",
    "gauge",
    ("worker",),
    "Seconds since a worker's last report: its counters are that old.",
)
RUN_INFO = _family(
    "run_info",
    "gauge",
    ("run", "gateway", "version", "simulated"),
    "Always 1; its labels say what the run is. simulated='true': the gateway was played, not real.",
)
RUN_VALID = _family(
    "run_valid",
    "gauge",
    ("run", "gateway", "reason"),
    "Whether the run's numbers can be trusted: 1 with reason 'none', or 0 once for each reason why not "
    "(the load generator was late, records were lost, a worker died). Absent until it was judged.",
)
RUN_START = _family(
    "run_start_timestamp_seconds",
    "gauge",
    ("run", "gateway"),
    "Unix time at which the run began.",
)
RUN_END = _family(
    "run_end_timestamp_seconds",
    "gauge",
    ("run", "gateway"),
    "Unix time at which the run ended; absent while it runs.",
)

# A capacity search measures whole mixes: where a step is not about one protocol, scenario or model the
# label says "all".
CAPACITY_LOAD = _family(
    "capacity_step_load",
    "gauge",
    (*STREAM_LABELS, "step"),
    "Load that a step of a capacity search offered: requests per second, or users where it searched over "
    "those.",
)
CAPACITY_GOODPUT = _family(
    "capacity_step_goodput",
    "gauge",
    (*STREAM_LABELS, "step"),
    "Requests per second of a step of a capacity search that met every objective.",
)
CAPACITY_KNEE = _family(
    "capacity_knee",
    "gauge",
    (*STREAM_LABELS, "step"),
    "The highest load so far that held every objective, in the unit of capacity_step_load; step says which "
    "one it was. Absent until a step has held.",
)

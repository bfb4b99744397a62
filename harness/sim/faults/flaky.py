"""A gateway that recovers: failures first, then a healthy answer."""

from harness.sim.faults.registry import sequence

sequence(
    "flaky", "a client's first two attempts get 503, the third is healthy", ("http-503", "http-503", "ok")
)
sequence(
    "flaky-stream",
    "a client's first attempt breaks off with an error, the second is healthy",
    ("error-mid", "ok"),
)

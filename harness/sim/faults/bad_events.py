"""Events that are not the protocol."""

from harness.sim.faults.registry import fault
from harness.sim.plan import PART, TERMINAL, Plan
from harness.sim.script import Script

# Above the 16 MiB that a careful reader accepts in one event.
_MEBIBYTES = 17


@fault("bad-json", "half of the answer, then an event that is no JSON, and the end", outcome="protocol_error")
def bad_json(script: Script) -> Plan:
    yield from script.opening()
    yield from script.tokens(script.half)
    event = script.apart(b"never told")
    yield script.next_s, TERMINAL, event[: event.rindex(b"never")].rstrip() + b"\n\n"


@fault("oversize-event", "half of the answer, then an event of 17 MiB, and the end", outcome="protocol_error")
def oversize_event(script: Script) -> Plan:
    yield from script.opening()
    yield from script.tokens(script.half)
    before, after = script.apart(b"#").split(b"#")
    due = script.next_s
    yield due, PART, before
    for _ in range(_MEBIBYTES - 1):
        yield due, PART, b"x" * 1_048_576
    # Beyond the limit the outcome is settled; a client that leaves now is right.
    yield due, TERMINAL, b"x" * 1_048_576 + after

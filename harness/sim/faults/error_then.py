"""What follows an in-stream error where it should be the last word."""

from harness.sim.dialogues.base import DONE, named_event
from harness.sim.faults.registry import fault
from harness.sim.plan import EVENT, HANG, MUTE, Plan
from harness.sim.script import Script


@fault("error-then-done", "an error, and then the terminal as if all were well", outcome="error_event")
def error_then_done(script: Script) -> Plan:
    yield from script.opening()
    yield from script.tokens(script.half)
    yield from script.breaks_off()
    stop = named_event("message_stop", {"type": "message_stop"})
    yield 0.0, EVENT, stop if script.circumstances.protocol == "messages" else DONE


@fault("error-then-hang", "an error, and then the connection stays open", outcome="error_event")
def error_then_hang(script: Script) -> Plan:
    yield from script.opening()
    yield from script.tokens(script.half)
    yield from script.breaks_off()
    yield 0.0, MUTE, b""
    yield 0.0, HANG, b""

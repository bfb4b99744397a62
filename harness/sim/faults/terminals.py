"""Terminals that are missing, come too early, or are not the last word."""

from harness.sim.faults.registry import fault
from harness.sim.plan import EVENT, HANG, HEAD, MUTE, TERMINAL, Plan
from harness.sim.script import Script


def _unterminated(script: Script) -> str:
    at = script.circumstances
    if at.protocol == "responses":
        return "truncated"  # its terminal is also what says that the answer is whole
    return "completed" if at.profile.terminator == "optional" else "unterminated"


@fault("unterminated", "a whole answer with its finish reason, but without the terminal", _unterminated)
def unterminated(script: Script) -> Plan:
    yield from script.opening()
    yield from script.tokens()
    yield from script.before_terminal()


@fault("events-after-terminal", "a healthy answer, and one more token after the terminal")
def events_after_terminal(script: Script) -> Plan:
    yield from script.whole()
    yield 0.0, EVENT, script.apart(b"late")


@fault("terminal-hang", "a healthy answer, and then the connection stays open without an end of the body")
def terminal_hang(script: Script) -> Plan:
    yield from script.whole()
    yield 0.0, MUTE, b""
    yield 0.0, HANG, b""


@fault("empty", "the terminal without any output", outcome="empty")
def empty(script: Script) -> Plan:
    yield from script.opening()
    yield from script.closing()


@fault("no-events", "a stream that ends without a single event", outcome="truncated")
def no_events(script: Script) -> Plan:
    yield 0.0, HEAD, b""


def _early_outcome(script: Script) -> str:
    # Chat alone has to announce its end. `response.completed` carries its own status, and `message_stop` is
    # the end of a message also where no `message_delta` gave a reason (the client counts violations).
    return "truncated" if script.circumstances.protocol == "chat" else "completed"


@fault("done-without-finish", "half of the answer, then the terminal without a finish reason", _early_outcome)
def done_without_finish(script: Script) -> Plan:
    yield from script.opening()
    yield from script.tokens(script.half)
    for step in script.closing():
        if step[1] == TERMINAL:
            yield step

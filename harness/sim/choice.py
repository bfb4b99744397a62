"""Which fault a request gets: what it asks for itself, else the mix."""

from __future__ import annotations

from collections import OrderedDict

from harness.sim.faults import FAULTS
from harness.sim.mix import Mix, parse_sequence
from harness.sim.request import Asked

# Enough for every request in flight of a large run; older clients begin their sequence anew.
_CLIENTS_KEPT = 200_000


class Chooser:
    """Chooses by header, base path, model name, API key, mix, in this order."""

    def __init__(self, mix: Mix) -> None:
        self._mix = mix
        self._begun: OrderedDict[str, str] = OrderedDict()
        self._attempts: OrderedDict[tuple[str, ...], int] = OrderedDict()

    def choose(self, asked: Asked) -> str:
        """Return the fault's name. Raises `UnknownFaultError` if the request names one there is not."""
        sequence = parse_sequence(asked.fault) if asked.fault else ()
        if asked.preflight:
            return "ok"
        if not sequence:
            sequence = (self._drawn(asked),)
        if len(sequence) == 1:
            sequence = FAULTS[sequence[0]].sequence or sequence
        if len(sequence) == 1:
            return sequence[0]
        # A client with its own ids has a sequence per request, one without has a sequence per key.
        client = (asked.fault or sequence[0], asked.api_key, asked.request or "")
        done = self._attempts.pop(client, 0)
        self._attempts[client] = done + 1
        if len(self._attempts) > _CLIENTS_KEPT:
            self._attempts.popitem(last=False)
        return sequence[min(done, len(sequence) - 1)]

    def _drawn(self, asked: Asked) -> str:
        """Return what the mix says."""
        if not asked.stream:
            # Only streams draw: other requests in between must not shift the sequence.
            return "ok"
        if asked.request is not None and asked.attempt > 1 and asked.request in self._begun:
            return self._begun[asked.request]
        name = self._mix.draw()
        if asked.request is not None and FAULTS[name].sequence:
            # Its next attempts go on with the sequence instead of drawing anew.
            self._begun[asked.request] = name
            if len(self._begun) > _CLIENTS_KEPT:
                self._begun.popitem(last=False)
        return name

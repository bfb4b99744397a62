"""Which fault a request gets: what it asks for itself, else the mix."""

from __future__ import annotations

from collections import OrderedDict

from harness.sim.mix import Mix, parse_sequence
from harness.sim.request import Asked

# Enough for every request in flight of a large run; older clients begin their sequence anew.
_CLIENTS_KEPT = 200_000


class Chooser:
    """Chooses by header, base path, model name, API key, mix, in this order."""

    def __init__(self, mix: Mix) -> None:
        self._mix = mix
        self._attempts: OrderedDict[tuple[str, ...], int] = OrderedDict()

    def choose(self, asked: Asked) -> str:
        """Return the fault's name. Raises `UnknownFaultError` if the request names one there is not."""
        sequence = parse_sequence(asked.fault) if asked.fault else ()
        if asked.preflight:
            return "ok"
        if not sequence:
            # Only streams draw: a client that lists models in between must not shift the sequence.
            return self._mix.draw() if asked.stream else "ok"
        if len(sequence) == 1:
            return sequence[0]
        # A client with its own ids has a sequence per request, one without has a sequence per key.
        client = (asked.fault, asked.api_key, asked.request or "")
        done = self._attempts.pop(client, 0)
        self._attempts[client] = done + 1
        if len(self._attempts) > _CLIENTS_KEPT:
            self._attempts.popitem(last=False)
        return sequence[min(done, len(sequence) - 1)]

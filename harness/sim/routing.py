"""What a path means: the fault it names, and the endpoint."""

from __future__ import annotations

from urllib.parse import unquote

from harness.gateways import Profile

MODELS = "models"
COUNT_TOKENS = "count_tokens"
HEALTH = "health"

_FAULT_PREFIX = "/fault/"

# Sabiuco's prefix works whichever gateway is played, as its clients cannot be told another one.
_ALWAYS = {
    prefix + tail: target
    for prefix in ("/v1", "/api/v1")
    for tail, target in (
        ("/chat/completions", "chat"),
        ("/responses", "responses"),
        ("/messages", "messages"),
        ("/messages/count_tokens", COUNT_TOKENS),
        ("/models", MODELS),
    )
}


class Router:
    """The endpoints of one gateway and the common ones."""

    def __init__(self, profile: Profile) -> None:
        own = {endpoint.path.partition("?")[0]: protocol for protocol, endpoint in profile.endpoints.items()}
        self._targets = {"/health": HEALTH, **_ALWAYS, **own}

    def find(self, url: str) -> tuple[str, str | None]:
        """Return the fault that the base path of *url* names ("" if none) and the target (None if none)."""
        path, fault = url.partition("?")[0], ""
        if path.startswith(_FAULT_PREFIX):
            fault, _, path = path[len(_FAULT_PREFIX) :].partition("/")
            path = "/" + path
        path = path.rstrip("/") or "/"
        target = self._targets.get(path)
        if target is None and path.rpartition("/")[0] in ("/v1/models", "/api/v1/models"):
            target = MODELS
        return unquote(fault), target

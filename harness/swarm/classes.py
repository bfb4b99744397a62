"""Which user classes take part in a run: the built-in ones by protocol, one's own as they are."""

from __future__ import annotations

from locust.env import Environment
from locust.user.users import User

from typing import Any

from harness.load.settings import Settings, UsageError
from harness.load.users import PROTOCOL_USERS

_PROTOCOL_OF: dict[type[User], str] = {user: protocol for protocol, user in PROTOCOL_USERS.items()}


class UserClasses:
    """Chooses classes for each run, and puts back what Locust had: the next run may choose others."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        available: dict[str, Any] = (
            environment.available_user_classes or {}
        )  # its type says users, not classes
        classes: list[type[User]] = [*environment.user_classes, *available.values()]
        # Locust writes the host of a run into the classes, and we the weights.
        self._hosts = {user: user.host for user in classes}
        self._weights = {user: user.weight for user in classes}
        self._before: list[type[User]] | None = None

    def host(self) -> str | None:
        """Return the host that was given, or the one that the classes of an own locustfile name."""
        if self._environment.host:
            return self._environment.host
        own = {host for user in self._all() if (host := self._hosts.get(user, user.host))}
        if len(own) > 1:
            raise UsageError(
                f"the user classes name different hosts ({', '.join(sorted(own))}): a run asks one gateway, "
                "choose it with --host"
            )
        return own.pop() if own else None

    def built_in(self) -> tuple[str, ...]:
        """Return the protocols of the built-in classes among those of the next run."""
        return tuple(_PROTOCOL_OF[user] for user in self._all() if user in _PROTOCOL_OF)

    def choose(self, settings: Settings, explicit: bool) -> None:
        """Let the built-in users share the load as the protocols say, with their weights if *explicit*."""
        self._before = list(self._environment.user_classes)
        chosen = [c for c in self._before if _PROTOCOL_OF.get(c) in (None, *settings.protocols)]
        for user in chosen:
            if user in _PROTOCOL_OF:
                weight = self._weights.get(user, 1)
                user.weight = settings.protocols[_PROTOCOL_OF[user]] if explicit else weight
        self._environment.user_classes = chosen

    def restore(self) -> None:
        """Give Locust back the classes it had before the run."""
        if self._before is not None:
            self._environment.user_classes, self._before = self._before, None

    def _all(self) -> list[type[User]]:
        return self._environment.user_classes if self._before is None else self._before

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
        self._environment.user_classes = scenario_users(settings, chosen) or chosen

    def restore(self) -> None:
        """Give Locust back the classes it had before the run."""
        if self._before is not None:
            self._environment.user_classes, self._before = self._before, None

    def _all(self) -> list[type[User]]:
        return self._environment.user_classes if self._before is None else self._before


def scenario_users(settings: Settings, chosen: list[type[User]]) -> list[type[User]]:
    """Return a class for each scenario and protocol in place of the built-in ones among *chosen*.

    Of a scenario's weight each of its protocols gets its share. Empty without scenarios.
    """
    own = [user for user in chosen if user not in _PROTOCOL_OF]
    made: list[type[User]] = []
    for name, scenario in settings.scenarios.items():
        parts = sum(scenario.protocols.values())
        for protocol, part in scenario.protocols.items():
            weight = scenario.weight * part / parts
            base = PROTOCOL_USERS[protocol]
            made.append(type(f"{name}-{protocol}", (base,), {"scenario": name, "weight": weight}))
    return [*own, *made] if made else []

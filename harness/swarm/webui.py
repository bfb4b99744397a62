"""Locust's web UI refuses what the command line would refuse: with a message, before anything starts."""

from __future__ import annotations

from locust.argument_parser import get_parser
from locust.runners import STATE_CLEANUP, STATE_RUNNING, STATE_SPAWNING
from locust.web import WebUI

import socket
from typing import Any

from flask import Response, jsonify, request
from werkzeug.datastructures import ImmutableMultiDict, MultiDict

from harness.load.settings import UsageError
from harness.swarm.node import Node
from harness.swarm.origin import refuse_foreign_origin
from harness.swarm.stopping import Stopping

# What Locust's own form sends; every other field is an option that is shown in the form.
_LOCUSTS_FIELDS = frozenset(
    {"user_count", "spawn_rate", "host", "run_time", "user_classes", "shape_class", "profile"}
)


def check_port(host: str, port: int) -> None:
    """Raise `UsageError` if the web UI's port is taken: Locust itself would show a traceback."""
    address = "0.0.0.0" if host in ("", "*") else host
    try:
        family = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((address, port))
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"cannot listen on {address}:{port} ({getattr(error, 'strerror', None) or error}): "
            "choose another port for the web UI with --web-port"
        ) from None


class WebGuard:
    """Stands before Locust's views and checks on the server what a browser enforces and a POST need not."""

    def __init__(self, node: Node, stopping: Stopping) -> None:
        self._node = node
        self._stopping = stopping
        self._shown: frozenset[str] | None = None

    def install(self, web_ui: WebUI) -> None:
        """Take the place before every view of *web_ui*."""
        assert web_ui.app is not None
        self._picks_classes = web_ui.userclass_picker_is_active
        web_ui.app.before_request(refuse_foreign_origin)

        @web_ui.app.before_request
        def check() -> Response | None:
            if request.method != "POST" or (self._node.options.web_login and not _logged_in()):
                return None  # Locust's own view sends them to the login
            if request.endpoint == "locust.swarm":
                return self._start()
            if request.endpoint == "locust.stop" and self._state == STATE_CLEANUP:
                self._stopping.cut()  # the first Stop is draining, and they do not want to wait
            return None

    @property
    def _state(self) -> str:
        runner = self._node.environment.runner
        return "" if runner is None else str(runner.state)

    def _start(self) -> Response | None:
        """Return what is wrong with the form of a start; None lets Locust's own view take it."""
        node, environment = self._node, self._node.environment
        # Werkzeug keeps a parsed form on the request: Locust's view gets only what the page may change.
        form = request.form = self._without_hidden(request.form)
        before = dict(vars(node.options)), environment.host, environment.user_classes
        try:
            if self._state == STATE_CLEANUP:
                raise UsageError("the last run is still draining its streams; Stop again cuts them")
            node.check_workers()
            _apply(vars(node.options), form)
            if form.get("host") is not None:
                environment.host = form["host"].replace("<", "").replace(">", "").strip()
            self._pick_classes(form)
            if self._state in (STATE_SPAWNING, STATE_RUNNING):
                node.check_edit()
            else:
                node.check()
        except UsageError as error:
            vars(node.options).clear()
            vars(node.options).update(before[0])
            environment.host, environment.user_classes = before[1:]
            return jsonify({"success": False, "message": str(error), "host": environment.host})
        return None

    def _without_hidden(self, form: MultiDict[str, str]) -> ImmutableMultiDict[str, str]:
        if self._shown is None:
            self._shown = _LOCUSTS_FIELDS.union(get_parser(default_config_files=[]).args_included_in_web_ui)
        return ImmutableMultiDict((k, v) for k, v in form.items(multi=True) if k in self._shown)

    def _pick_classes(self, form: MultiDict[str, str]) -> None:
        """Choose the user classes as Locust's class picker is about to."""
        if not self._picks_classes or self._state in (STATE_SPAWNING, STATE_RUNNING):
            return
        environment = self._node.environment
        available: dict[str, Any] = dict(environment.available_user_classes or {})
        names = form.getlist("user_classes") or list(available)
        if not any(name in available for name in names):
            raise UsageError(f"no such user class: {', '.join(names)} (there are: {', '.join(available)})")
        environment.user_classes = [available[name] for name in available if name in names]


def _apply(options: dict[str, Any], form: MultiDict[str, str]) -> None:
    """Take the form's values with the types of the defaults; what does not fit is the user's error."""
    for name, text in form.items():
        if name in _LOCUSTS_FIELDS or name not in options:
            continue
        known = options[name]
        if isinstance(known, bool):
            options[name] = text == "true"
        elif isinstance(known, int | float):
            try:
                options[name] = type(known)(text)
            except ValueError:
                kind = "a whole number" if isinstance(known, int) else "a number"
                raise UsageError(f"--{name.replace('_', '-')}: expected {kind}, got {text!r}") from None
        elif isinstance(known, str):
            options[name] = text


def _logged_in() -> bool:
    from flask_login import current_user  # type: ignore[import-untyped]  # only with --web-login

    return bool(current_user.is_authenticated)

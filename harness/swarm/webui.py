"""Locust's web UI refuses what the command line would refuse: with a message, before anything starts."""

from __future__ import annotations

from locust.web import WebUI

import socket
from argparse import Namespace
from typing import Any

from flask import Response, jsonify, request

from harness.load.settings import UsageError
from harness.swarm.node import Node


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


def guard_start(web_ui: WebUI, node: Node) -> None:
    """Check the form of a start on the server: what a browser enforces, a POST need not respect."""

    assert web_ui.app is not None

    @web_ui.app.before_request
    def check() -> Response | None:
        if request.endpoint != "locust.swarm" or request.method != "POST":
            return None
        if node.options.web_login and not _logged_in():
            return None  # Locust's own view sends them to the login
        before = dict(vars(node.options)), node.environment.host
        try:
            _apply(node.options, request.form)
            node.environment.host = request.form.get("host", node.environment.host)
            if node.environment.runner is None or node.environment.runner.user_count == 0:
                node.check()
        except UsageError as error:
            vars(node.options).update(before[0])
            node.environment.host = before[1]
            return jsonify({"success": False, "message": str(error), "host": node.environment.host})
        return None


def _apply(options: Namespace, form: Any) -> None:
    """Take the form's values with the types of the defaults; what does not fit is the user's error."""
    for name, text in form.items():
        known = getattr(options, name, None)
        if isinstance(known, bool):
            setattr(options, name, text == "true")
        elif isinstance(known, int | float) and name != "run_time":
            try:
                setattr(options, name, type(known)(text))
            except ValueError:
                kind = "a whole number" if isinstance(known, int) else "a number"
                raise UsageError(f"--{name.replace('_', '-')}: expected {kind}, got {text!r}") from None
        elif isinstance(known, str) and name != "host":
            setattr(options, name, text)


def _logged_in() -> bool:
    from flask_login import current_user  # type: ignore[import-untyped]  # only with --web-login

    return bool(current_user.is_authenticated)

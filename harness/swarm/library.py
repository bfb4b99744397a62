"""The harness in a Locust environment of one's own, made in a script or a test instead of by `locust`."""

from __future__ import annotations

from locust.argument_parser import LocustArgumentParser, get_empty_argument_parser, setup_parser_arguments
from locust.env import Environment

import atexit
from typing import Any

from harness.load.settings import UsageError
from harness.swarm.listeners import listen, quiet_loggers
from harness.swarm.node import Node
from harness.swarm.options import add_options
from harness.swarm.stopping import Stopping


def attach(environment: Environment, **options: Any) -> Node:
    """Connect the harness to *environment*; call it before a runner starts users.

    *options* are those of the command line with underscores (``host="sim"``, ``time_scale=0.02``,
    ``results="…"``); there is no exporter unless ``metrics_port`` is given. After each run the returned
    node's `summary` holds its numbers and `keeper.folder.path` its files; `close` ends the simulator.
    Raises `UsageError` for a wrong option.
    """
    parser: LocustArgumentParser = get_empty_argument_parser(default_config_files=[])
    setup_parser_arguments(parser)
    add_options(parser)
    known = parser.parse_args([])
    for name, value in {"metrics_port": 0, "metrics_linger": "0s", **options}.items():
        if name not in vars(known):
            raise UsageError(f"unknown option {name!r}")
        setattr(known, name, value)
    environment.parsed_options = known
    environment.host = known.host or environment.host
    environment.stop_timeout = float(known.stop_timeout) or environment.stop_timeout
    quiet_loggers()
    node = Node(environment)
    environment.harness = node  # type: ignore[attr-defined]
    listen(environment.events, node, Stopping(node), show=False)
    try:
        node.open()
    except UsageError:
        node.close()
        raise
    atexit.register(node.close)
    return node

"""Where the harness hooks into Locust: options, start and end of process and run."""

from __future__ import annotations

from locust import events
from locust.argument_parser import LocustArgumentParser
from locust.env import Environment
from locust.runners import WorkerRunner

import logging
import sys
import traceback
from typing import Any, NoReturn

import gevent

from harness.load.settings import UsageError
from harness.swarm.ending import show_run
from harness.swarm.node import Node
from harness.swarm.options import add_options
from harness.swarm.webui import check_port, guard_start

# What argparse uses for the same: the command line is wrong, nothing was tried.
USAGE_EXIT = 2


def connect() -> None:
    """Register the listeners with Locust's global events; once per process."""
    events.init_command_line_parser.add_listener(_add_options)
    events.init.add_listener(_init)
    events.test_start.add_listener(_test_start)
    events.test_stop.add_listener(_test_stop)
    events.quitting.add_listener(_quitting)
    events.quit.add_listener(_quit)


def _add_options(parser: LocustArgumentParser, **_: Any) -> None:
    add_options(parser)


def _init(environment: Environment, web_ui: Any = None, **_: Any) -> None:
    # httpx reports each request at INFO, which a load test cannot afford.
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)
    node = Node(environment)
    environment.harness = node  # type: ignore[attr-defined]
    _nodes.append(node)
    try:
        if web_ui is not None:
            check_port(node.options.web_host, node.options.web_port)
            guard_start(web_ui, node)
        node.open()
    except UsageError as error:
        _give_up(node, error)


def _test_start(environment: Environment, **_: Any) -> None:
    _node(environment).begin_run()


def _test_stop(environment: Environment, **_: Any) -> None:
    node = _node(environment)
    node.end_run()
    if not node.options.headless and not node.is_worker:
        _show(node)


def _quitting(environment: Environment, **_: Any) -> None:
    """Stop and drain before Locust reads its exit code: on Ctrl-C it would do so only after."""
    runner = environment.runner
    if runner is None or isinstance(runner, WorkerRunner):
        return
    node = _node(environment)
    if runner.state in ("spawning", "running"):
        open_streams = 0 if node.run is None else node.aggregate.conservation(node.run.name).open
        if open_streams:
            print(
                f"harness: draining {open_streams} open streams, up to {environment.stop_timeout:g} s; "
                "Ctrl-C again cuts them",
                file=sys.stderr,
                flush=True,
            )
        try:
            runner.stop()
        except KeyboardInterrupt:
            environment.stop_timeout = 0.0
            runner.user_greenlets.kill(block=True)
            node.end_run()


def _quit(exit_code: int, **_: Any) -> None:
    for node in _nodes:
        if node.options.headless and not node.is_worker:
            _show(node)
        node.close()


def _show(node: Node) -> None:
    if node.summary is not None and node.keeper is not None:
        # Locust's own --json owns stdout.
        show_run(node.keeper, node.summary, sys.stderr if node.options.json else sys.stdout)


def _node(environment: Environment) -> Node:
    node: Node = environment.harness  # type: ignore[attr-defined]
    return node


def _give_up(node: Node, error: UsageError) -> NoReturn:
    if node.options.debug:
        traceback.print_exc()
    print(f"harness: {error}", file=sys.stderr, flush=True)
    node.close()
    gevent.sleep(0)  # let the log's greenlets write what they have
    sys.exit(USAGE_EXIT)


_nodes: list[Node] = []

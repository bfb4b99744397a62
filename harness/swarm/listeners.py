"""Where the harness hooks into Locust: options, start and end of process and run."""

from __future__ import annotations

import locust
from locust.argument_parser import LocustArgumentParser
from locust.env import Environment
from locust.event import Events
from locust.runners import MasterRunner, WorkerRunner

import atexit
import logging
import sys
import traceback
from typing import Any, NoReturn

import gevent

from harness.load.settings import UsageError
from harness.swarm.ending import show_run
from harness.swarm.exposed import exposures
from harness.swarm.master_node import MasterNode
from harness.swarm.node import USAGE_EXIT, Node
from harness.swarm.options import add_options
from harness.swarm.saying import say
from harness.swarm.search_report import show_search
from harness.swarm.stopping import Stopping, take_interrupts
from harness.swarm.tab import Tab
from harness.swarm.webui import WebGuard, check_port
from harness.swarm.worker_node import WorkerNode

INTERRUPTED_EXIT = 130

# How long a process may take from the connection to its master until Locust says that it begins.
_INIT_S = 30.0


def connect() -> None:
    """Register the listeners with Locust's global events; once per process."""
    locust.events.init_command_line_parser.add_listener(_add_options)
    locust.events.init.add_listener(_init)
    locust.events.test_start.add_listener(_join_late)


def listen(events: Events, node: Node, stopping: Stopping, *, show: bool = True) -> None:
    """Let *node* take part in the life of the process and its runs; *show* prints each one's summary."""

    def test_start(**_: Any) -> None:
        node.begin_run()

    def test_stopping(**_: Any) -> None:
        stopping.announce()
        node.drain_elsewhere()

    def test_stop(**_: Any) -> None:
        if not node.end_run():
            return
        if node.gating is not None:
            node.gating.end_run()
        # Headless, Locust prints its own tables after this: ours come last.
        if show and not node.options.headless:
            _show(node)

    def quitting(**_: Any) -> None:
        if node.environment.runner is None:
            return
        stopping.leave()
        if node.gating is not None:
            node.environment.process_exit_code = node.gating.exit_code()

    def quit_(**_: Any) -> None:
        if show and node.options.headless:
            _show(node)
        node.close()
        if node.gating is not None:
            node.gating.run_again()

    events.test_start.add_listener(test_start)
    events.test_stopping.add_listener(test_stopping)
    events.test_stop.add_listener(test_stop)
    events.quitting.add_listener(quitting)
    events.quit.add_listener(quit_)


def _add_options(parser: LocustArgumentParser, **_: Any) -> None:
    add_options(parser)


def _join_late(environment: Environment, **_: Any) -> None:
    """Hold back the users of a worker that joins a run before Locust has said that its process begins."""
    if getattr(environment, "harness", None) is not None:
        return  # the node listens itself
    with gevent.Timeout(_INIT_S, False):  # type: ignore[arg-type]  # False: no exception
        while getattr(environment, "harness", None) is None:
            gevent.sleep(0.01)
        environment.harness.begin_run()  # type: ignore[attr-defined]


def _init(environment: Environment, web_ui: Any = None, **_: Any) -> None:
    quiet_loggers()
    node = node_of(environment)
    environment.harness = node  # type: ignore[attr-defined]
    stopping = Stopping(node)
    listen(environment.events, node, stopping)
    runner = environment.runner
    try:
        if web_ui is not None:
            check_port(node.options.web_host, node.options.web_port)
            WebGuard(node, stopping).install(web_ui)
            Tab(node).attach(web_ui)
        _say_who_can_listen(node, has_page=web_ui is not None)
        node.open()
    except UsageError as error:
        _give_up(node, error)
    except KeyboardInterrupt:
        node.hurried = True
        node.close()
        sys.exit(INTERRUPTED_EXIT)
    if runner is None:  # run_single_user: Locust never says that it ends
        atexit.register(_end_single, node)
    else:
        take_interrupts()


def node_of(environment: Environment) -> Node:
    """Return the node for the role that Locust's runner has in *environment*."""
    runner = environment.runner
    if isinstance(runner, MasterRunner):
        return MasterNode(environment, runner)
    if isinstance(runner, WorkerRunner):
        return WorkerNode(environment, runner)
    return Node(environment)


def quiet_loggers() -> None:
    """Silence what would be a line per request: httpx reports each at INFO."""
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)


def _say_who_can_listen(node: Node, *, has_page: bool) -> None:
    runner = node.environment.runner
    if isinstance(runner, WorkerRunner):
        return  # neither page nor exporter
    is_master = isinstance(runner, MasterRunner)
    for line in exposures(node.options, has_page=has_page, is_master=is_master):
        say(line)


def _end_single(node: Node) -> None:
    if node.end_run():
        _show(node)
    node.close()


def _show(node: Node) -> None:
    if node.summary is not None and node.keeper is not None:
        # Locust's own --json owns stdout.
        file = sys.stderr if node.options.json else sys.stdout
        show_run(node.keeper, node.summary, file)
        if node.search is not None:
            show_search(node.search.to_plain(), file)
        if node.gating is not None:
            node.gating.show(file)


def _give_up(node: Node, error: UsageError) -> NoReturn:
    if node.options.debug:
        traceback.print_exc()
    if not isinstance(node.environment.runner, WorkerRunner):  # or --processes would say it once per process
        say(str(error))
    node.close()
    sys.exit(getattr(error, "exit_code", USAGE_EXIT))

"""What listens, and for whom: this machine alone, unless told otherwise, and then a line says so.

Whoever reaches the page can start load with the keys of this process, and whoever reaches the master's port
can take part in the run; neither asks for a password by itself.
"""

from __future__ import annotations

from locust.argument_parser import LocustArgumentParser

import ipaddress
from argparse import Namespace
from collections.abc import Iterator

LOOPBACK = "127.0.0.1"


def stay_local(parser: LocustArgumentParser) -> None:
    """Let Locust's page listen on this machine alone by default; Locust itself listens everywhere."""
    parser.set_defaults(web_host=LOOPBACK)
    for action in parser._actions:
        if action.dest == "web_host":
            action.help = f"Host to bind the web interface to. Default: {LOOPBACK}; '*' is every interface."


def exposures(options: Namespace, *, has_page: bool, is_master: bool) -> Iterator[str]:
    """Yield a line for each port of this process that other machines can reach."""
    if has_page and _is_open(options.web_host):
        login = "" if options.web_login else "; whoever reaches it can start load with your keys"
        yield (
            f"warning: the web UI listens on {_name(options.web_host)}:{options.web_port} for other machines "
            f"too{login} (--web-host {LOOPBACK} keeps it here, --web-login asks who they are)"
        )
    if options.metrics_port and _is_open(options.metrics_host):
        yield (
            f"warning: metrics listen on {_name(options.metrics_host)}:{options.metrics_port} for other "
            f"machines too, without a password (--metrics-host {LOOPBACK} keeps them here)"
        )
    if is_master and _is_open(options.master_bind_host):
        yield (
            f"warning: the master listens on {_name(options.master_bind_host)}:{options.master_bind_port} "
            "for workers of other machines; whoever reaches it can take part in the run "
            f"(--master-bind-host {LOOPBACK} if all workers are on this one)"
        )


def _is_open(host: str) -> bool:
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host != "localhost"  # "" and "*" are every interface; of another name nobody knows


def _name(host: str) -> str:
    return host if host not in ("", "*") else "0.0.0.0"

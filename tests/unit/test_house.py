"""The arrows between the rooms: who may import whom, and what the core must never know.

`faults(path, source)` judges one module; every rule is seen red below, on sources made for it.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]

# Along the way a stream takes: a room imports only itself and rooms before it.
ROOMS = ("gateways", "wire", "stream", "transport", "observe", "judge", "load", "swarm", "sim", "cli")
# The simulator is the truth that the rest is measured against, so it shares nothing with it but the profiles.
SIM_MAY_IMPORT = {"gateways", "sim"}
# Modules outside a folder, and the folder of commands, are entry points: all of them live in the last room.
ENTRY_POINTS = {"__main__", "cli", "commands", "demo", "locustfile"}

CORE = {"gateways", "wire", "stream"}
# Time, randomness and I/O come into the core as arguments.
NEVER_IN_CORE = {
    *(
        "asyncio",
        "concurrent",
        "multiprocessing",
        "os",
        "select",
        "selectors",
        "signal",
        "socket",
        "socketserver",
    ),
    *("ssl", "subprocess", "threading", "time", "random", "secrets", "uuid", "httpx"),
}
ONLY_IN = {
    "locust": {"load", "swarm", "cli"},
    "gevent": {"transport", "load", "swarm", "cli"},
    "prometheus_client": {"observe"},
}
LONGEST_MODULE = 500
NAMES_THAT_SAY_NOTHING = {"util", "utils", "helper", "helpers", "common", "misc"}


def room_of(module: str) -> str | None:
    """The room of a dotted module; `""` for the package itself, None for a module that lives nowhere."""
    parts = module.split(".")
    if len(parts) == 1:
        return ""
    if parts[1] in ENTRY_POINTS:
        return "cli"
    return parts[1] if parts[1] in ROOMS else None


def module_of(path: str) -> str:
    """`harness/wire/sse.py` is `harness.wire.sse`; a package is named by its folder."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imports(tree: ast.Module, path: str) -> Iterator[tuple[int, str]]:
    """Line and dotted name of every import: also in functions, for type checkers, relative and by call."""
    package = module_of(path) if path.endswith("/__init__.py") else module_of(path).rpartition(".")[0]
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                if level:
                    base = ".".join(package.split(".")[: len(package.split(".")) - level + 1])
                    module = f"{base}.{module}" if module else base
                if module == "harness":  # `from harness import wire` imports a room, `… __version__` none
                    for alias in names:
                        known = room_of(f"harness.{alias.name}")
                        yield node.lineno, f"harness.{alias.name}" if known else "harness"
                else:
                    yield node.lineno, module or ""
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node.lineno, name


def fault_of_import(room: str, name: str) -> str | None:
    """Why `room` may not import `name`, or None."""
    top = name.partition(".")[0]
    if top == "harness":
        target = room_of(name)
        if target is None:
            return f"imports {name}, which lives in no room"
        if target == "" or target == room:
            return None
        if room == "":
            return f"the package itself imports {name}: `import harness` must do nothing"
        if room == "sim" and target not in SIM_MAY_IMPORT:
            return f"sim imports {name}: it knows nothing but gateways"
        if ROOMS.index(target) > ROOMS.index(room):
            return f"{room} imports {name}: a wrong arrow"
        return None
    if top in ONLY_IN and room not in ONLY_IN[top]:
        return (
            f"{room or 'the package itself'} imports {top}, allowed only in {', '.join(sorted(ONLY_IN[top]))}"
        )
    if room in CORE and top in NEVER_IN_CORE:
        return f"{room} imports {top}: the core has no clock, chance or I/O of its own"
    if room in ("", "gateways") and top not in sys.stdlib_module_names:
        return f"{room or 'the package itself'} imports {top}: nothing but the standard library"
    return None


def faults(path: str, source: str) -> list[str]:
    """Everything that is wrong in one module, each as `path:line: what`; empty if it is at home."""
    room = room_of(module_of(path))
    if room is None:
        return [f"{path}:1: lives in no room of {', '.join(ROOMS)}"]
    found: list[tuple[int, str]] = []
    silent = [part for part in module_of(path).split(".") if part.strip("_") in NAMES_THAT_SAY_NOTHING]
    if silent:
        found.append((1, f"the name {silent[0]} says nothing"))
    lines = source.count("\n")
    if lines > LONGEST_MODULE:
        found.append((1, f"{lines} lines, more than {LONGEST_MODULE}"))
    tree = ast.parse(source, path)
    for line, name in imports(tree, path):
        if fault := fault_of_import(room, name):
            found.append((line, fault))
    if room in CORE:
        calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
        found += ((c.lineno, f"{room} prints") for c in calls if ast.unparse(c.func) == "print")
    return [f"{path}:{line}: {what}" for line, what in sorted(found)]


MODULES = sorted(path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / "harness").rglob("*.py"))


def test_the_walk_finds_the_house():
    """An empty walk would keep every rule."""
    assert {"harness/__init__.py", "harness/__main__.py", "harness/gateways/__init__.py"} <= set(MODULES)


@pytest.mark.parametrize("path", MODULES)
def test_every_module_is_at_home(path):
    assert [] == faults(path, (REPOSITORY / path).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("path", "source"),
    [
        # a room before it, one's own room, the package
        ("harness/stream/session.py", "from harness.wire.sse import Parser"),
        (
            "harness/stream/session.py",
            "from . import stall\nfrom .record import Attempt\nfrom ..wire import sse",
        ),
        ("harness/swarm/listeners.py", "from harness import __version__, load, observe"),
        ("harness/sim/server.py", "import asyncio, time\nfrom harness.gateways import load_profile"),
        ("harness/wire/chat.py", "import json\nimport msgspec"),
        # who may use the three big libraries
        ("harness/load/users.py", "import locust\nimport gevent"),
        ("harness/transport/client.py", "import gevent.socket\nimport httpx, time, ssl"),
        ("harness/observe/exporter.py", "from prometheus_client.core import GaugeMetricFamily"),
        ("harness/commands/run.py", "import locust\nfrom harness.sim import server\nfrom harness import cli"),
        ("harness/locustfile.py", "import locust\nfrom harness.load import ChatUser"),
        # names that only look like the forbidden ones
        ("harness/wire/sse.py", "from .timeline import time\nlog.print('x')\nimport socketlike"),
        ("harness/observe/commonness.py", ""),
        ("harness/wire/sse.py", "x = 1\n" * LONGEST_MODULE),
    ],
)
def test_what_the_house_allows(path, source):
    assert [] == faults(path, source)


@pytest.mark.parametrize(
    ("path", "source", "fault"),
    [
        # wrong arrows, in every way to write one
        ("harness/wire/chat.py", "import harness.stream", "wire imports harness.stream: a wrong arrow"),
        (
            "harness/wire/chat.py",
            "\nimport harness.stream.session as s",
            "chat.py:2: wire imports harness.stream.session",
        ),
        ("harness/wire/chat.py", "from harness.stream.stall import X", "wire imports harness.stream.stall"),
        ("harness/wire/chat.py", "from harness import stream", "wire imports harness.stream"),
        ("harness/wire/chat.py", "from ..stream import stall", "wire imports harness.stream"),
        ("harness/wire/chat.py", "from .. import stream", "wire imports harness.stream"),
        ("harness/wire/__init__.py", "from ..stream import stall", "wire imports harness.stream"),
        (
            "harness/wire/chat.py",
            "def f():\n    from harness.observe import aggregate",
            "chat.py:2: wire imports",
        ),
        ("harness/wire/chat.py", "if TYPE_CHECKING:\n    import harness.load", "wire imports harness.load"),
        ("harness/wire/chat.py", "import_module('harness.judge')", "wire imports harness.judge"),
        ("harness/wire/chat.py", "importlib.import_module('harness.judge')", "wire imports harness.judge"),
        ("harness/wire/chat.py", "__import__('harness.judge')", "wire imports harness.judge"),
        ("harness/gateways/loader.py", "from harness.wire import sse", "a wrong arrow"),
        ("harness/judge/gates.py", "from harness.load import shapes", "a wrong arrow"),
        ("harness/swarm/options.py", "from harness.sim import server", "a wrong arrow"),
        ("harness/swarm/options.py", "from harness.cli import main", "a wrong arrow"),
        ("harness/swarm/options.py", "from harness.commands.show import main", "a wrong arrow"),
        # the simulator shares nothing with what it tests
        ("harness/sim/server.py", "from harness.wire import sse", "sim imports harness.wire"),
        ("harness/sim/faults/reset.py", "from ...stream import outcome", "sim imports harness.stream"),
        # `import harness` does nothing
        ("harness/__init__.py", "from harness.load import StreamUser", "`import harness` must do nothing"),
        ("harness/__init__.py", "import locust", "the package itself imports locust"),
        ("harness/__init__.py", "import httpx", "the package itself imports httpx"),
        # libraries in the wrong room
        *((f"harness/{room}/x.py", "import locust.env", f"{room} imports locust") for room in ROOMS[:6]),
        ("harness/sim/x.py", "from locust import User", "sim imports locust"),
        *(
            (f"harness/{room}/x.py", "from gevent import pool", f"{room} imports gevent")
            for room in ("gateways", "wire", "stream", "observe", "judge", "sim")
        ),
        *(
            (f"harness/{room}/x.py", "import prometheus_client", f"{room} imports prometheus_client")
            for room in ROOMS[:-1]
            if room != "observe"
        ),
        ("harness/cli.py", "import prometheus_client", "cli imports prometheus_client"),
        ("harness/gateways/loader.py", "import msgspec", "nothing but the standard library"),
        # the core has no clock, chance or I/O
        *(
            (f"harness/{room}/x.py", f"import {name}", f"{room} imports {name}")
            for room in sorted(CORE)
            for name in sorted(NEVER_IN_CORE)
        ),
        ("harness/stream/session.py", "from time import monotonic", "stream imports time"),
        ("harness/stream/session.py", "import os.path", "stream imports os"),
        ("harness/wire/sse.py", "def f():\n    print('x')", "sse.py:2: wire prints"),
        # size, names, homelessness
        ("harness/observe/exporter.py", "x = 1\n" * (LONGEST_MODULE + 1), "501 lines, more than 500"),
        ("harness/observe/utils.py", "", "the name utils says nothing"),
        ("harness/observe/_helpers.py", "", "the name _helpers says nothing"),
        ("harness/sim/common/__init__.py", "", "the name common says nothing"),
        ("harness/tools/x.py", "", "lives in no room"),
        ("harness/stray.py", "", "lives in no room"),
        ("harness/cli.py", "from harness.tools import x", "imports harness.tools, which lives in no room"),
    ],
)
def test_what_the_house_forbids(path, source, fault):
    found = faults(path, source)

    assert 1 == len(found), found
    assert fault in found[0]

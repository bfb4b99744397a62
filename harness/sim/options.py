"""The arguments of `harness sim`, shared by the command and `python -m harness.sim`."""

from __future__ import annotations

import argparse
import ssl
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from harness.gateways import DurationError, GatewayFileError, load, parse_duration
from harness.sim.capacity import Capacity
from harness.sim.dialects import NAMES, DialectError, dialect
from harness.sim.faults import FAULTS
from harness.sim.gateway import Setup
from harness.sim.mix import MixError, UnknownFaultError, parse_mix
from harness.sim.pace import Pace
from harness.sim.replay import ENDS, ReplayError, enter, read_recording
from harness.sim.replay import NAME as REPLAY
from harness.sim.serve import Listening, serve

USAGE_ERROR = 2
T = TypeVar("T")


@dataclass
class _UsageError(Exception):
    message: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give *parser* the options of the simulated gateway."""
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    add("--port", type=int, default=8000, help="port to listen on, 0 for any free one (default: %(default)s)")
    add(
        "--gateway",
        default="generic",
        metavar="NAME|FILE",
        help="whose promises it plays (default: %(default)s)",
    )
    add(
        "--dialect",
        default="official",
        metavar="NAME[,NAME…]",
        help=f"how it spells streams: {', '.join(NAMES)}",
    )
    add(
        "--mix",
        default="ok=100",
        metavar="FAULT=WEIGHT,…",
        help="what requests get that ask for nothing themselves",
    )
    add("--seed", type=int, default=1, help="seed of the mix and of the jitter (default: %(default)s)")
    add("--time-scale", type=float, default=1.0, metavar="X", help="multiplies the durations of the profile")
    add("--truth", metavar="FILE", help="append one JSON line per streaming request, when it ends")
    add("--slots", type=int, metavar="N", help="concurrent generations (default: no limit)")
    beyond = parser.add_mutually_exclusive_group()
    beyond.add_argument("--reject", action="store_true", help="answer 429 beyond the slots (the default)")
    beyond.add_argument(
        "--queue", action="store_true", help="let requests wait for a slot, in order of arrival"
    )
    add(
        "--first-token",
        default="200ms",
        metavar="DURATION",
        help="when the first token is due (default: %(default)s)",
    )
    add("--gap", default="20ms", metavar="DURATION", help="time between tokens (default: %(default)s)")
    add("--tokens", type=int, default=60, metavar="N", help="tokens of an answer (default: %(default)s)")
    add(
        "--jitter", type=float, default=0.0, metavar="PART", help="how irregular tokens come, 0 to 1 of a gap"
    )
    add("--tls-cert", metavar="FILE", help="serve HTTPS with this certificate (PEM)")
    add("--tls-key", metavar="FILE", help="the certificate's key (PEM), if it is a file of its own")
    add("--parent", type=int, metavar="PID", help="stop when that process is gone")
    add("--verdict", action="store_true", help="say at the end how the clients retried")
    add(
        "--replay", metavar="FILE", help="play this captured stream (as `harness read` reads it) to everybody"
    )
    add(
        "--replay-end",
        choices=ENDS,
        default="eof",
        help="how its connection ends: properly (default), broken, never",
    )
    add("--list", action="store_true", help="list the faults and exit")


def run(args: argparse.Namespace) -> int:
    """Serve until told to stop; return the exit code."""
    if args.list:
        print(listing())
        return 0
    try:
        listening = _listening(args)
    except _UsageError as error:
        print(f"harness sim: {error.message}", file=sys.stderr)
        return USAGE_ERROR
    return serve(listening)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the simulated gateway with the arguments *argv* and return its exit code."""
    parser = argparse.ArgumentParser(prog="harness sim", description="The simulated gateway.")
    add_arguments(parser)
    return run(parser.parse_args(argv))


def listing() -> str:
    """Return the faults, one line each, `ok` first."""
    width = max(map(len, FAULTS))
    names = sorted(FAULTS, key=lambda name: (name != "ok", name))
    return "\n".join(f"{name:<{width}}  {FAULTS[name].about}" for name in names)


def _listening(args: argparse.Namespace) -> Listening:
    """Check *args* and return what to serve. Raises `_UsageError`."""
    if args.time_scale <= 0:
        raise _UsageError(f"--time-scale: expected a number above 0, got {args.time_scale:g}")
    if not 0 <= args.port <= 65535:
        raise _UsageError(f"--port: expected 0 to 65535, got {args.port}")
    if args.tokens < 1:
        raise _UsageError(f"--tokens: expected 1 or more, got {args.tokens}")
    if not 0.0 <= args.jitter <= 1.0:
        raise _UsageError(f"--jitter: expected 0 to 1, got {args.jitter:g}")
    if args.slots is not None and args.slots < 1:
        raise _UsageError(f"--slots: expected 1 or more, got {args.slots}")
    if args.slots is None and (args.queue or args.reject):
        raise _UsageError("--queue and --reject need --slots N")
    profile = _checked("--gateway", load, args.gateway).scaled(args.time_scale)
    _checked("--dialect", dialect, args.dialect)
    if args.replay is not None:
        enter(_checked("--replay", read_recording, args.replay), args.replay_end)
        args.mix = f"{REPLAY}=100"
    pace = Pace(
        _checked("--first-token", parse_duration, args.first_token),
        _checked("--gap", parse_duration, args.gap),
        args.tokens,
        args.jitter,
    )
    return Listening(
        host=args.host,
        port=args.port,
        setup=Setup(profile, args.dialect, args.seed, pace),
        mix=_checked("--mix", parse_mix, args.mix),
        capacity=Capacity(args.slots, args.queue),
        truth_path=args.truth,
        parent=args.parent,
        tls=_tls(args.tls_cert, args.tls_key),
        verdict=args.verdict,
    )


def _tls(certificate: str | None, key: str | None) -> ssl.SSLContext | None:
    """Return what to serve HTTPS with, None for plain HTTP."""
    if certificate is None:
        if key is not None:
            raise _UsageError("--tls-key belongs to --tls-cert FILE")
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:  # an SSLError is one too
        why = "not a certificate with its key" if isinstance(error, ssl.SSLError) else error.strerror
        raise _UsageError(f"--tls-cert: cannot use {certificate}: {why}") from None
    return context


def _checked(option: str, read: Callable[[str], T], text: str) -> T:
    try:
        return read(text)
    except (DialectError, DurationError, GatewayFileError, MixError, ReplayError, UnknownFaultError) as error:
        raise _UsageError(f"{option}: {error}") from None

"""``harness read``: judges a captured stream offline."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from harness.gateways import PROTOCOLS, DurationError, GatewayFileError, Profile, load, parse_duration
from harness.judge.captures import Capture, CaptureError, judge_capture, read_capture
from harness.observe.story import tell
from harness.observe.table import console_for, safe
from harness.stream.describe import describe
from harness.stream.record import to_json

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

EXIT_COMPLETED, EXIT_USAGE, EXIT_OTHER = 0, 2, 10


class _UsageError(ValueError):
    pass


def add_parser(subparsers: Subparsers) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "read",
        help="judge a captured stream offline",
        description="Judges a captured stream: raw bytes (`curl -N`, also with -i), lines with times "
        "(`curl -N … | ts '%.s'`, ISO times), or timelines.jsonl of a run. "
        "Exit code 0: all completed, 10: another outcome, 2: wrong usage.",
    )
    add = parser.add_argument
    add("file", metavar="FILE", help="the capture; - reads standard input")
    add("--protocol", choices=PROTOCOLS, help="needed unless the file is a timelines.jsonl")
    add("--gateway", default="generic", metavar="NAME|FILE", help="whose limits hold (default: %(default)s)")
    add("--limit", action="append", default=[], metavar="NAME=DURATION", help="override a limit")
    add("--end", default="eof", choices=("eof", "cut", "open"),
        help="how the connection ended after the last byte: well (default), broken, not at all")  # fmt: skip
    add("--waited", default="0s", metavar="DURATION", help="how long after the last byte the capture went on")
    add(
        "--on-stall",
        default="close",
        choices=("close", "watch"),
        help="at a hard limit: end there, or read on",
    )
    add("--json", action="store_true", help="print one record per stream and nothing else")
    add("--brief", action="store_true", help="one line per stream, no timeline")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Read and return the exit code."""
    try:
        profile = _profile(args)
        waited_s = _seconds(args.waited, "--waited")
        captures = read_capture(_bytes(args.file))
        return max(_show(capture, profile, waited_s, args) for capture in captures)
    except (_UsageError, CaptureError) as error:
        place = f"{args.file}: " if isinstance(error, CaptureError) else ""
        print(f"harness read: {place}{error}", file=sys.stderr)
        return EXIT_USAGE


def _show(capture: Capture, profile: Profile, waited_s: float, args: argparse.Namespace) -> int:
    protocol = capture.protocol or args.protocol
    if protocol is None:
        raise _UsageError(
            f"--protocol is needed: the file does not say which of {', '.join(PROTOCOLS)} it is"
        )
    record, timeline = judge_capture(
        capture, profile, protocol, end=args.end, waited_s=waited_s, on_stall=args.on_stall
    )
    if args.json:
        print(to_json(record).decode())
    elif args.brief:
        name = f"{capture.name}-{capture.attempt} " if capture.told else ""
        print(safe(f"{name}{record.outcome}: {describe(record)}"))
    else:
        console_for().print(tell(record, timeline))
        if not capture.timed:
            print("The capture has no times: limits and gaps were not judged.")
    return EXIT_COMPLETED if record.success else EXIT_OTHER


def _profile(args: argparse.Namespace) -> Profile:
    try:
        profile = load(args.gateway)
    except GatewayFileError as error:
        raise _UsageError(f"--gateway: {error}") from None
    for entry in args.limit:
        name, _, text = entry.partition("=")
        try:
            profile = profile.with_limit(name, _seconds(text, f"--limit {name}"))
        except KeyError:
            raise _UsageError(f"--limit: unknown limit {name!r}") from None
    return profile


def _seconds(text: str, option: str) -> float:
    try:
        return parse_duration(text)
    except DurationError as error:
        raise _UsageError(f"{option}: {error}") from None


def _bytes(path: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise _UsageError(f"cannot read {path}: {error.strerror}") from None

"""``harness check``: does this gateway keep what its documents promise?"""

from __future__ import annotations

import locust  # noqa: F401  # patches the standard library, so it has to come first

import argparse
import json
import sys
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING

from harness.commands.asking import Asker
from harness.gateways import Profile, format_duration
from harness.judge.check import (
    SITUATIONS,
    Case,
    Observation,
    Promise,
    Step,
    UnknownPromiseError,
    judge,
    promises_of,
    steps_for,
)
from harness.judge.check.report import as_dict, counts, render, tickets, total
from harness.judge.check.situations import SHORT_PROMPT, cost
from harness.load.prompts import Prompt
from harness.load.run import SIMULATOR_HEADER
from harness.load.settings import Settings, UsageError
from harness.observe.table import console_for
from harness.swarm.configure import transport_of
from harness.swarm.target import check_url, headers_of, keys_of, models_of, profile_of, secrets_of

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

EXIT_NONE_BROKEN, EXIT_USAGE, EXIT_BROKEN, EXIT_INTERRUPTED = 0, 2, 11, 130

# What is asked for where neither the user nor the profile names a model.
_NO_MODEL = "default"


def add_parser(subparsers: Subparsers) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "check",
        help="check what a gateway promises",
        description="Plays what a gateway's documents promise and says of each statement if it was kept. "
        "Exit code 0: none broken, 11: some broken, 2: wrong usage.",
    )
    add = parser.add_argument
    add("url", metavar="URL", nargs="?", default="", help="base URL of the gateway, or one whole endpoint")
    add("--gateway", required=True, metavar="NAME|FILE", help="whose promises")
    add("--only", default="", metavar="ID,…", help="only these statements, by id or name")
    add("--list", action="store_true", help="list the statements and ask nothing")
    add("--dry-run", action="store_true", help="say what it would take and ask nothing")
    add("--json", action="store_true", help="print the findings as JSON and nothing else")
    add(
        "--protocols", default="", metavar="NAME,…", help="only these protocols (default: all of the profile)"
    )
    add("--model", default="", metavar="M|chat=X,…", help="default: the profile's")
    add("--runs", type=int, default=None, metavar="N", help="how often to measure speed (default: 30)")
    add("--parallel", type=int, default=3, metavar="N", help="requests at a time (default: %(default)s)")
    add("--provoke", default="auto", choices=("auto", "header", "model", "no"),
        help="how an upstream that is our simulator is told what to play; auto: by header, if the answer "
        "says that it is simulated")  # fmt: skip
    add("--play", action="append", default=[], metavar="SITUATION=FAULT",
        help=f"what a simulated upstream plays for one of {', '.join(SITUATIONS)} (repeatable)")  # fmt: skip
    add("--time-scale", type=float, default=1.0, metavar="X",
        help="multiplies the profile's durations; loopback only")  # fmt: skip
    add("--limit", action="append", default=[], metavar="NAME=DURATION", help="override a limit")
    add("--header", action="append", default=[], metavar="NAME=VALUE|NAME=env:VAR", help="extra header")
    add("--api-key-env", default="", metavar="VAR", help="variable with the key (default: the profile's)")
    add("--ca-file", default="", metavar="FILE", help="certificate authorities (PEM)")
    add("--client-cert", default="", metavar="FILE[,KEYFILE]", help="client certificate with its key (PEM)")
    add("--insecure", action="store_true", help="verify no certificate")
    add("--connect-to", default="", metavar="HOST:PORT", help="dial this, keep SNI and Host")
    add("--debug", action="store_true", help="show tracebacks of errors")
    parser.set_defaults(run=run, connection="per-user")


def run(args: argparse.Namespace) -> int:
    """Check and return the exit code."""
    try:
        return _check(args)
    except UsageError as error:
        if args.debug:
            traceback.print_exc()
        print(f"harness check: {error}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def _check(args: argparse.Namespace) -> int:
    profile = profile_of(args.gateway, args.time_scale, ",".join(args.limit), args.url)
    try:
        promises = promises_of(profile, _words(args.only))
    except UnknownPromiseError as error:
        raise UsageError(str(error)) from None
    if args.list:
        for promise in promises:
            print(
                f"{promise.id if promise.id != promise.check.name else '':<4} {promise.check.name:<26} "
                f"{promise.check.statement}"
            )
        return EXIT_NONE_BROKEN
    settings = _settings(args, profile)
    asker = Asker(settings, _provoke(args.provoke), _plays(args.play), args.parallel)
    steps = _steps(asker, promises, args.runs)
    _announce(asker, promises, steps)
    if args.dry_run:
        return EXIT_NONE_BROKEN
    started, began = datetime.now(UTC), monotonic()
    _ask(asker, promises, steps, args)
    findings = judge(promises, Case(profile, tuple(asker.seen), asker.provoke is not None, asker.simulated))
    about = {
        "gateway": f"sim:{profile.name}" if asker.simulated else profile.name,
        "url": settings.base_url,
        "simulated": asker.simulated,
        "time_scale": args.time_scale,
        "started_at": started.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "seconds": round(monotonic() - began, 3),
        "requests": len(asker.seen),
        "output_tokens": sum(seen.record.tokens.output or 0 for seen in asker.seen),
    }
    if args.json:
        print(json.dumps(as_dict(findings, asker.seen, about), ensure_ascii=False))
    else:
        console_for().print(render(findings, about))
        print("\n".join([*tickets(findings), total(findings, about)]))
    return EXIT_BROKEN if counts(findings)["broken"] else EXIT_NONE_BROKEN


def _ask(asker: Asker, promises: Sequence[Promise], steps: list[Step], args: argparse.Namespace) -> None:
    """Make the requests; the first one alone: it shows if anybody answers, and if it is a simulator."""
    if not steps:
        return
    steps = sorted(steps, key=lambda step: step.situation.name != "healthy")
    _refuse_nobody(asker.ask(steps[0]), asker.settings)
    rest = steps[1:]
    if asker.simulated and args.provoke == "auto":
        asker.provoke = "header"
        asked = [(step.situation.name, step.protocol, step.run) for step in steps]
        told = _simulator(asker)
        if "healthy" in asker.plays:  # the first one did not get what it should
            asker.seen.clear()
            asked = []
        every = _steps(asker, promises, args.runs)
        more = [s for s in every if (s.situation.name, s.protocol, s.run) not in asked]
        rest = [*rest, *more] if asked else more
        _say(f"{told}: it is told what to play. {_price(rest, asker)}")
    asker.ask_all(rest, console_for(sys.stderr))


def _simulator(asker: Asker) -> str:
    """Return what the answer says of itself; a simulator may well play another gateway than the one meant."""
    plays, meant = asker.seen[0].headers.get(SIMULATOR_HEADER, ""), asker.settings.profile.name
    other = f" and plays {plays}, not {meant}" if plays and plays != meant else ""
    return f"{asker.settings.base_url} says that it is simulated{other}"


def _refuse_nobody(first: Observation, settings: Settings) -> None:
    """Raise `UsageError` if the first answer says that nothing can be found out here."""
    record = first.record
    words = record.error.message if record.error is not None else ""
    if record.outcome in ("connect_error", "no_response") or (
        record.stall and record.stall.class_ == "no_connect"
    ):
        raise UsageError(f"no answer from {settings.base_url}: {words or record.outcome}; check the URL")
    if record.status in (401, 403):
        raise UsageError(f"HTTP {record.status} ({words}): check the key (--api-key-env VAR)")


def _steps(asker: Asker, promises: Sequence[Promise], runs: int | None) -> list[Step]:
    settings = asker.settings
    names = {name for promise in promises for name in promise.check.asks}
    return steps_for(
        names, settings.profile, settings.protocols, upstream=asker.provoke is not None, runs=runs
    )


def _announce(asker: Asker, promises: Sequence[Promise], steps: Sequence[Step]) -> None:
    """Say on stderr what the check will take, before it takes anything."""
    profile = asker.settings.profile
    untestable = sum(not promise.check.asks for promise in promises)
    told = f"{len(promises)} statements of {profile.title}"
    if untestable:
        told += f", {untestable} of which are about documents alone"
    _say(f"{told}. {_price(steps, asker)}")


def _price(steps: Sequence[Step], asker: Asker) -> str:
    seconds, tokens = cost(steps, asker.settings.profile, asker.parallel)
    return (
        f"{len(steps)} requests, {asker.parallel} at a time: about {format_duration(round(seconds, 1))} "
        f"and at most {tokens:,} output tokens."
    )


def _say(text: str) -> None:
    print(f"harness check: {text}", file=sys.stderr, flush=True)


def _settings(args: argparse.Namespace, profile: Profile) -> Settings:
    url = check_url(args.url, "URL")
    for name, number in (("--parallel", args.parallel), ("--runs", args.runs)):
        if number is not None and number < 1:
            raise UsageError(f"{name}: expected a whole number of at least 1, got {number}")
    protocols = _words(args.protocols) or list(profile.endpoints)
    for protocol in protocols:
        if protocol not in profile.endpoints:
            have = ", ".join(profile.endpoints)
            raise UsageError(f"--protocols: {profile.name} has no endpoint for {protocol!r} (it has: {have})")
    models = dict.fromkeys(profile.endpoints, _NO_MODEL) | models_of(args.model, profile, simulated=False)
    return Settings(
        base_url=url,
        profile=profile,
        protocols=dict.fromkeys(protocols, 1),
        models=models,
        prompts=(Prompt.of(SHORT_PROMPT),),
        keys=keys_of(args.api_key_env, profile, simulated=False),
        headers=headers_of("\n".join(args.header)),
        secrets=secrets_of(profile, protocols),
        time_scale=args.time_scale,
        transport=transport_of(args),
    )


def _provoke(choice: str) -> str | None:
    """Return how the upstream is told what to play; with ``auto`` the first answer decides."""
    return choice if choice in ("header", "model") else None


def _plays(entries: Sequence[str]) -> dict[str, str]:
    plays = {}
    for entry in entries:
        situation, equals, fault = entry.partition("=")
        if not equals or not fault or situation not in SITUATIONS:
            known = ", ".join(SITUATIONS)
            raise UsageError(f"--play: expected SITUATION=FAULT with one of {known}, got {entry!r}")
        plays[situation] = fault
    return plays


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]

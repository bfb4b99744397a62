"""``harness probe``: one request, watched live on a terminal, or one record per attempt as JSON."""

from __future__ import annotations

import locust  # noqa: F401  # patches the standard library, so it has to come first

import argparse
import sys
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harness.commands.live import LiveView
from harness.gateways import PROTOCOLS, Profile
from harness.load.exchange import Call, new_request_id, open_session, perform, prepare
from harness.load.prompts import Prompt
from harness.load.run import Run
from harness.load.settings import Settings, UsageError
from harness.observe.aggregate import Aggregate
from harness.observe.story import tell
from harness.observe.table import console_for
from harness.stream import Attempt
from harness.stream.record import to_json
from harness.swarm.configure import transport_of
from harness.swarm.stopping import take_interrupts
from harness.swarm.target import check_url, headers_of, keys_of, profile_of, secrets_of
from harness.swarm.values import choice
from harness.transport import HarnessTransport

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

EXIT_COMPLETED, EXIT_USAGE, EXIT_OTHER, EXIT_INTERRUPTED = 0, 2, 10, 130

PROMPT = "Explain in three sentences what a streaming response is and why people like it."

# What a probe asks for where neither the user nor the profile names a model.
NO_MODEL = "default"


def add_parser(subparsers: Subparsers) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "probe",
        help="make one request and watch its stream",
        description="One request, watched live. Exit code 0: completed, 10: another outcome, 2: wrong usage.",
    )
    add = parser.add_argument
    add("url", metavar="URL", help="base URL of the gateway, or one whole endpoint")
    add("--protocol", choices=PROTOCOLS, help="default: the profile's first")
    add(
        "--gateway",
        default="generic",
        metavar="NAME|FILE",
        help="whose limits hold (default: %(default)s)",
    )
    add("--model", default="", help="default: the profile's")
    add("--prompt", default=PROMPT, metavar="TEXT", help="what to ask")
    add("--max-tokens", type=int, default=256, metavar="N", help="0 leaves it to the gateway (default: 256)")
    add("--body", metavar="FILE", help="send this JSON file as the request body, as it is")
    add(
        "--header",
        action="append",
        default=[],
        metavar="NAME=VALUE|NAME=env:VAR",
        help="extra header (repeatable)",
    )
    add(
        "--api-key-env",
        default="",
        metavar="VAR",
        help="variable with the key (default: the profile's)",
    )
    add("--limit", action="append", default=[], metavar="NAME=DURATION", help="override a limit")
    add("--on-stall", default="close", choices=("close", "watch"), help="at a hard limit: close, or watch on")
    add(
        "--time-scale",
        type=float,
        default=1.0,
        metavar="X",
        help="multiplies the profile's durations; loopback only",
    )
    add("--repeat", type=int, default=1, metavar="N", help="make N requests, one after the other")
    add("--json", action="store_true", help="print one record per attempt and nothing else")
    add("--ca-file", default="", metavar="FILE", help="certificate authorities (PEM)")
    add("--client-cert", default="", metavar="FILE[,KEYFILE]", help="client certificate with its key (PEM)")
    add("--insecure", action="store_true", help="verify no certificate")
    add(
        "--connect-to",
        default="",
        metavar="HOST:PORT",
        help="dial this, keep SNI and Host",
    )
    add("--debug", action="store_true", help="show tracebacks of errors")
    parser.set_defaults(run=run, connection="per-user")


def run(args: argparse.Namespace) -> int:
    """Probe and return the exit code."""
    take_interrupts()
    try:
        return _probe(args)
    except UsageError as error:
        if args.debug:
            traceback.print_exc()
        print(f"harness probe: {error}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def _probe(args: argparse.Namespace) -> int:
    if args.repeat < 1:
        raise UsageError(f"--repeat: expected a whole number of at least 1, got {args.repeat}")
    if args.max_tokens < 0:
        raise UsageError(f"--max-tokens: expected a whole number of at least 0, got {args.max_tokens}")
    settings, protocol = settings_of(args)
    key = settings.keys[0] if settings.keys else None
    body = _body(args.body)
    one_run = Run(time.strftime("probe-%Y%m%d-%H%M%S"), settings, Aggregate())
    transport = HarnessTransport(settings.transport)
    worst = EXIT_COMPLETED
    try:
        for _ in range(args.repeat):
            call = prepare(
                settings, protocol, Prompt.of(args.prompt), request=new_request_id(), key=key, nonce=None
            )
            record = _attempt(one_run, transport, call if body is None else with_body(call, body), args.json)
            if not record.success:
                worst = EXIT_OTHER
    finally:
        transport.close()
    return worst


def _attempt(one_run: Run, transport: HarnessTransport, call: Call, as_json: bool) -> Attempt:
    """Make one attempt and print it, also when Ctrl-C ends it."""
    session = open_session(one_run.settings, call, on_headers=one_run.answered)
    request = one_run.begin(call, "default", session.opened)
    labels = one_run.labels(request)
    one_run.aggregate.attempt_started(labels, session)
    view = LiveView(session, call, quiet=as_json)
    try:
        with view:
            perform(transport, call, 1, session)
    finally:
        record = one_run.finish(request, 1, session, labels, None)
        if as_json:
            sys.stdout.write(to_json(record).decode() + "\n")
            sys.stdout.flush()
        else:
            console_for().print(tell(record, session.timeline()))
    return record


def settings_of(args: argparse.Namespace) -> tuple[Settings, str]:
    """Return the settings of a probe and its protocol. Raises `UsageError`."""
    url = check_url(args.url, "URL")
    profile = profile_of(args.gateway, args.time_scale, ",".join(args.limit), url)
    protocol = args.protocol or profile.default_protocols[0]
    if protocol not in profile.endpoints:
        have = ", ".join(profile.endpoints)
        raise UsageError(
            f"--protocol: gateway {profile.name} has no endpoint for {protocol} (it has: {have})"
        )
    return (
        Settings(
            base_url=url,
            profile=profile,
            protocols={protocol: 1},
            models={protocol: _model(args.model, profile, protocol)},
            prompts=(Prompt.of(args.prompt),),
            keys=keys_of(args.api_key_env, profile, simulated=False),
            headers=headers_of("\n".join(args.header)),
            secrets=secrets_of(profile, (protocol,)),
            max_tokens=args.max_tokens,
            on_stall=choice(args.on_stall, ("close", "watch"), "--on-stall"),
            time_scale=args.time_scale,
            transport=transport_of(args),
        ),
        protocol,
    )


def _model(name: str, profile: Profile, protocol: str) -> str:
    return name or profile.endpoints[protocol].model or NO_MODEL


def with_body(call: Call, body: bytes) -> Call:
    """Return *call* with *body* sent as it is; what it says of model and usage is what is expected then."""
    try:
        data = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        data = None
    if not isinstance(data, dict):  # to see what a gateway says to that is a reason to probe it
        return replace(call, body=body)
    model, options = data.get("model"), data.get("stream_options")
    return replace(
        call,
        body=body,
        model=model if isinstance(model, str) and model else call.model,
        asks_usage=isinstance(options, dict) and bool(options.get("include_usage")),
    )


def _body(path: str | None) -> bytes | None:
    if path is None:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"--body: cannot read {path}: {error.strerror}") from None

"""``make run``: simulated gateway, Locust's web UI and the exporter, with everything prefilled."""

from __future__ import annotations

from locust.main import main as locust_main  # isort: skip  # patches the standard library, so it comes first

import argparse
import signal
import socket
import sys
from pathlib import Path

import harness

UI_PORT = 8089
METRICS_PORT = 9646

# A twentieth of real time: HopBase's 10 s keepalive comes every 0.5 s and its 165 s limit after 8.25 s, so
# that every fault of the mix has shown its outcome within a minute.
TIME_SCALE = "0.05"
MIX = (
    "ok=60,slow-first-token=5,stall-pre=4,stall-mid=4,stall-pre-dead=4,stall-mid-dead=4,error-mid=5,truncate=4,"
    "reset=4,http-429=2,http-500=2,not-a-stream=2"
)
USERS, RATE = "30", "5"


def main() -> int:
    """Run the demo until Ctrl-C. Returns 2 if a port is taken; more arguments are Locust's."""
    ports = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    ports.add_argument("--web-port", type=int, default=UI_PORT)
    ports.add_argument("--metrics-port", type=int, default=METRICS_PORT)
    chosen, more = ports.parse_known_args()
    for port, name, option in (
        (chosen.web_port, "web UI", "--web-port"),
        (chosen.metrics_port, "metrics", "--metrics-port"),
    ):
        if not _is_free(port):
            print(
                f"make run: port {port} for the {name} is in use: end what holds it, or run "
                f"`harness run --host sim {option} PORT`",
                file=sys.stderr,
            )
            return 2
    print(f"open   http://127.0.0.1:{chosen.web_port}  (Locust's web UI; users and rate are filled in)")
    print("press  START, watch the streams; STOP ends the run with a summary here; Ctrl-C ends everything")
    print(
        f"scrape http://127.0.0.1:{chosen.metrics_port}/metrics  (Prometheus); records are kept in results/",
        flush=True,
    )
    sys.argv = [
        "locust", "-f", str(Path(harness.__file__).with_name("locustfile.py")),
        "--host", "sim", "--gateway", "hopbase", "--time-scale", TIME_SCALE, "--sim-mix", MIX,
        "--users", USERS, "--spawn-rate", RATE, "--web-host", "127.0.0.1", "--web-port", str(chosen.web_port),
        "--metrics-port", str(chosen.metrics_port), "--metrics-linger", "0s", "--think", "200ms-1s",
        "--loglevel", "WARNING", "--exit-code-on-error", "0", *more,
    ]  # fmt: skip
    # Started in the background by a shell, a process ignores Ctrl-C; this one must always end.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    locust_main()
    return 0


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


if __name__ == "__main__":
    sys.exit(main())

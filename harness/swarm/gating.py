"""Gates at the end of a Locust run: the same verdict as ``harness gate``, and it decides the exit code.

A run that is hopeless ends early (`abort`), an invalid one may be run once more (``--retry-invalid``), and
a regression has to show itself twice (``--confirm``) before it counts. A rerun takes the place of the
process: Locust's runner ends with its run.
"""

from __future__ import annotations

import os
import sys
import time
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import gevent

from harness.judge.abort import AbortWatch, Stop
from harness.judge.baseline import BaselineError
from harness.judge.confirming import confirm
from harness.judge.gatefile import GateFileError, read_gates
from harness.judge.gates import Gates
from harness.judge.judging import judge_run
from harness.judge.outputs import tell_github, write_outputs
from harness.judge.show import print_verdict
from harness.judge.trust import threshold_s
from harness.judge.verdict import EXIT_GATES_WRONG, EXIT_INVALID, Verdict
from harness.load.settings import UsageError
from harness.observe.results import ResultsError
from harness.stream import Attempt
from harness.swarm.saying import say

if TYPE_CHECKING:
    from harness.swarm.node import Node

_LOOK_S = 2.0

# Set for a rerun to the folder of the first run; a rerun must not start another.
_RERUN = "HARNESS_RERUN"


class WrongGatesError(UsageError):
    """The gate file cannot be used; the message names file, line and the nearest right word."""

    exit_code = EXIT_GATES_WRONG


def gates_of(options: Namespace) -> Gates | None:
    """Return the gates of ``--gates``, None without. Raises `WrongGatesError`."""
    if not options.gates:
        if options.baseline or options.retry_invalid or options.confirm:
            raise UsageError("--baseline, --retry-invalid and --confirm belong to --gates FILE")
        return None
    try:
        return read_gates(options.gates)
    except GateFileError as error:
        raise WrongGatesError(str(error)) from None


def tolerance_of(gates: Gates | None) -> float:
    """Return by how many seconds a time may be off: 5 ms, or 5 % of the tightest limit among *gates*."""
    return 0.0 if gates is None else threshold_s(gates)


class Gating:
    """Watches the runs of *node* and judges them by *gates*."""

    def __init__(self, node: Node, gates: Gates) -> None:
        self._node = node
        self._gates = gates
        self._watch: AbortWatch | None = None
        self._stopped: Stop | None = None
        self._looker: gevent.Greenlet[..., object] | None = None
        self._files: list[Path] = []
        self.verdict: Verdict | None = None

    def begin_run(self) -> None:
        """Begin to watch a run that has just begun."""
        self.verdict = self._stopped = None
        watch = AbortWatch(self._gates, time.monotonic)
        keeper = self._node.keeper
        if watch.watches and keeper is not None:
            self._watch = watch
            before = keeper.watch

            def both(record: Attempt) -> None:
                watch.add(record)
                if before is not None:
                    before(record)

            keeper.watch = both
            self._looker = gevent.spawn(self._look)

    def end_run(self) -> Verdict | None:
        """Judge the run that has just ended; the files are written and the verdict is printed."""
        if self._looker is not None:
            self._looker.kill()
        node = self._node
        if node.keeper is None or node.summary is None:
            return None
        folder = node.keeper.folder.path
        stopped = None if self._stopped is None else (self._stopped.gate_id, self._stopped.reason)
        self.verdict = self._judge(folder, stopped)
        if self.verdict is not None:
            self._write(folder, self.verdict)
        return self.verdict

    def show(self, file: TextIO) -> None:
        """Print the verdict to *file*; on GitHub its log lines too."""
        if self.verdict is not None:
            print_verdict(self.verdict, [str(path) for path in self._files], file)
            try:
                for line in tell_github(self.verdict):
                    print(line, file=file)
            except ResultsError as error:
                say(str(error))

    def exit_code(self) -> int:
        """Return the exit code that the verdict asks for, in a rerun in the light of the first run."""
        verdict, first = self.verdict, os.environ.get(_RERUN)
        if verdict is None:
            return EXIT_INVALID
        if first and self._node.options.confirm:
            before = self._judge(Path(first), None)
            if before is not None and before.regressed:
                self._write(before.folder, confirm(before, verdict))
                return self.verdict.exit_code if self.verdict is not None else EXIT_INVALID
        return verdict.exit_code

    def run_again(self) -> None:
        """Put a rerun in the place of this process, if one was asked for and is due; call it last of all."""
        verdict, options = self.verdict, self._node.options
        if verdict is None or os.environ.get(_RERUN) or not options.headless:
            return
        if not (options.retry_invalid and verdict.invalid) and not (options.confirm and verdict.regressed):
            return
        say("running once more: " + ("the run is invalid" if verdict.invalid else "is it a regression?"))
        sys.stdout.flush()
        # In place of this process, so that the rerun finds every port free.
        command = [sys.executable, "-m", "harness", "run", *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, _RERUN: str(verdict.folder)})

    def _judge(self, folder: Path, stopped: tuple[str, str] | None) -> Verdict | None:
        options = self._node.options
        try:
            return judge_run(
                folder,
                self._gates,
                options.baseline or None,
                machine_class=options.machine_class or None,
                stopped=stopped,
            )
        except (BaselineError, ResultsError) as error:
            say(str(error))
            return None

    def _write(self, folder: Path, verdict: Verdict) -> None:
        self.verdict = verdict
        try:
            self._files = write_outputs(folder, verdict)
        except ResultsError as error:
            say(str(error))

    def _look(self) -> None:
        """Ask every two seconds whether the run is hopeless."""
        watch = self._watch
        assert watch is not None
        while True:
            gevent.sleep(_LOOK_S)
            self._stopped = watch.check(self._waiting())
            if self._stopped is not None:
                self._node.end_early(f"gate {self._stopped.reason}")
                return

    def _waiting(self) -> list[tuple[tuple[str, str, str, str], float]]:
        """The streams that have no token yet, and for how long."""
        now = time.monotonic()
        return [
            (
                (labels.protocol, labels.gateway, labels.scenario, labels.model),
                now - (session.t0 or session.opened),
            )
            for labels, session in self._node.aggregate.open_sessions()
            if session.last_progress is None
        ]

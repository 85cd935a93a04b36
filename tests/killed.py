"""Ends a cycle at any step of its publishing, for the tests of what the next one makes of that.

Every call of a port is two steps: just before it, and just after it. `stopping` wraps the ports of
a cycle, so that production code has no hook for it. In this process a test raises; a process of its
own kills itself:

    python -m tests.killed --config sharectl.yaml --list      # the steps, one a line
    python -m tests.killed --config sharectl.yaml --at N      # a cycle that gets SIGKILL at step N

With ``--fine`` a step is also whatever is about to happen to a file (opened to write, renamed,
removed, made), as Python's own audit events tell: so also between a temporary file and its rename.

It runs the cycle that ``sharectl cycle`` runs, under the same lock, with the configuration given;
CONDOR_CONFIG tells where the pool is. Exit code -9 (137 in a shell): killed. 0: the cycle had fewer
steps, and ended by itself.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Callable

from sharectl.cli import wiring
from sharectl.cli.wiring import ports_of
from sharectl.config.load import load
from sharectl.cycle.cycle import run_cycle
from sharectl.cycle.ports import Ports
from sharectl.files.files import only_one

OUTSIDE = ("publish", "save", "changed", "switched", "record", "enable_after")
"""Methods of ports by which a cycle changes anything outside of itself."""


FILE_EVENTS = ("os.rename", "os.remove", "os.mkdir", "os.truncate")
WRITING = os.O_WRONLY | os.O_RDWR


@dataclass
class Steps:
    """Counts the steps of a cycle, and stops it at one of them."""

    stop_at: int
    """Number of that step, from 0; -1 for none."""
    stop: Callable[[], None]
    seen: list[str] = field(default_factory=list)

    def step(self, name: str) -> None:
        """Count one."""
        self.seen.append(name)
        if len(self.seen) - 1 == self.stop_at:
            self.stop()


class Stepping:
    """A port whose calls are steps."""

    def __init__(self, name: str, port: object, steps: Steps) -> None:
        self._name, self._port, self._steps = name, port, steps

    def __getattr__(self, attribute: str) -> Any:
        real = getattr(self._port, attribute)
        if attribute not in OUTSIDE:
            return real

        def called(*arguments: Any, **named: Any) -> Any:
            self._steps.step(f"before {self._name}.{attribute}")
            answer = real(*arguments, **named)
            self._steps.step(f"after {self._name}.{attribute}")
            return answer

        return called


def stopping(ports: Ports, steps: Steps) -> Ports:
    """``ports``, each call of which is two steps."""
    one: Any = {
        name: Stepping(name, getattr(ports, name), steps)
        for name in ("state", "switch", "audit", "history")
    }
    many: Any = [
        Stepping(f"publisher[{number}]", to, steps) for number, to in enumerate(ports.publishers)
    ]
    return replace(ports, publishers=many, **one)


def step_at_files(steps: Steps) -> None:
    """Make each change of a file a step too, from now on and until this process ends."""
    process = os.getpid()

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        writes = event in FILE_EVENTS or (event == "open" and arguments[2] & WRITING)
        if (
            writes and os.getpid() == process
        ):  # the questions to daemons are forked off, with this hook
            steps.step(f"before {event} {arguments[0]}")

    sys.addaudithook(hook)


def main(argv: Sequence[str]) -> int:
    """Run one cycle as the module's text says."""
    parser = argparse.ArgumentParser(prog="python -m tests.killed")
    parser.add_argument("--config", type=Path, required=True)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--at", type=int, metavar="N", help="step at which this process kills itself"
    )
    which.add_argument("--list", action="store_true", help="run a whole cycle and print its steps")
    parser.add_argument("--fine", action="store_true", help="each change of a file is a step too")
    arguments = parser.parse_args(argv)
    config = load(arguments.config)
    steps = Steps(
        -1 if arguments.list else arguments.at, lambda: os.kill(os.getpid(), signal.SIGKILL)
    )
    with only_one(config.state_directory / "lock", config.lock_wait_seconds):
        ports = stopping(ports_of(config), steps)
        if arguments.fine:
            step_at_files(steps)
        result = run_cycle(wiring.plan_config(config), ports, int(time.time()))
    for problem in result.problems:
        print(problem, file=sys.stderr)
    if arguments.list:
        print("\n".join(steps.seen))
    return 1 if result.problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

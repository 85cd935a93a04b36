"""Ends a cycle at any step of its publishing, for the tests of what the next one makes of that.

Every call of a port is two steps: just before it, and just after it. `python -m tests.killed` reads
lines with a configuration, a kind of step and its number, runs the cycle that ``sharectl cycle``
runs, under the same lock, and prints its exit code: -9 if it was killed, 0 if it had fewer steps.
There a step is also whatever is about to happen to a file (opened to write, renamed, removed,
made). ``advertise`` is a kind by itself: the process that sends the ads dies with the cycle.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Callable

import htcondor2

from sharectl.cli import wiring
from sharectl.cli.wiring import ports_of
from sharectl.config.load import load
from sharectl.cycle.cycle import run_cycle
from sharectl.cycle.ports import Ports
from sharectl.files.files import only_one
from sharectl.publish import collector, https  # noqa: F401  # loaded before cycles are forked off

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


def die_at_advertise(number: int) -> None:
    """Have the process that sends ads, and its parent, die once so many were sent."""
    send = htcondor2.Collector.advertise
    sent: list[object] = []

    def advertise(*ads: Any) -> None:
        if number:
            send(*ads)
            sent.append(ads)
        if len(sent) == number:
            os.kill(os.getppid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)

    htcondor2.Collector.advertise = advertise


def run(path: Path, kind: str, number: int) -> int:
    """Exit code of a cycle that is killed there, unless it ends before."""
    config = load(path)
    if kind == "advertise":
        die_at_advertise(number)
    at = number if kind == "step" else -1
    steps = Steps(at, lambda: os.kill(os.getpid(), signal.SIGKILL))
    with only_one(config.state_directory / "lock", config.lock_wait_seconds):
        ports = stopping(ports_of(config), steps)
        step_at_files(steps)
        result = run_cycle(wiring.plan_config(config), ports, int(time.time()))
    for problem in result.problems:
        print(problem, file=sys.stderr)
    return 1 if result.problems else 0


def main() -> None:
    """Run cycles as the module's text says.

    Each is forked off a process that has loaded everything: it takes tenths of a second, not
    seconds.
    """
    for line in sys.stdin:
        path, kind, number = line.split()
        pid = os.fork()
        if pid == 0:
            os._exit(run(Path(path), kind, int(number)))
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


if __name__ == "__main__":
    main()

"""Simulations side by side, each in a process; results in the order of the tasks.

Ctrl-C lets each running task return what it has. A process whose parent is gone ends at its next
progress, so that none stays.
"""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import fsum
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import FrameType
from typing import Callable, Generic, Optional, TypeVar

from sharectl.errors import SharectlError

Result = TypeVar("Result")
Progress = Callable[[float], object]
"""Takes the part of a task that is done; raises KeyboardInterrupt where it is to end."""
Task = Callable[[Progress], Result]
"""Returns what it has where progress raises KeyboardInterrupt. It is pickled: a `partial` of a
function of a module."""

LOOK_SECONDS = 0.2
"""Time between two looks at interrupts, and least time between two reports of a task."""
STOP_SECONDS = 60.0
"""Time that an interrupted task has to return what it has."""


@dataclass
class _State(Generic[Result]):
    """Tasks of a call, with their results so far."""

    results: list[Optional[Result]]
    parts: list[float]
    progress: Progress
    done: Callable[[int, Result], object]
    interrupts: list[int]
    running: dict[Connection, tuple[int, SpawnProcess]] = field(default_factory=dict)

    def report(self, number: int, part: float) -> None:
        """Note the part of a task that is done, and report the part of all."""
        self.parts[number] = part
        self.progress(fsum(self.parts) / len(self.parts))

    def end(self, number: int, result: Result) -> None:
        """Keep the result of a task."""
        self.results[number] = result
        self.done(number, result)
        self.report(number, 1.0)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def run_many(
    tasks: Sequence[Task[Result]],
    processes: int,
    progress: Progress,
    done: Callable[[int, Result], object] = lambda _number, _result: None,
) -> list[Optional[Result]]:
    """Result of each task; None of those that had none when Ctrl-C was pressed.

    ``done`` gets the number of a task and its result as soon as there is one.

    Raises SharectlError of the first task that failed; a second Ctrl-C raises KeyboardInterrupt.
    """
    with _interrupts() as interrupts:
        state: _State[Result] = _State(
            [None] * len(tasks), [0.0] * len(tasks), progress, done, interrupts
        )
        if min(processes, len(tasks)) <= 1:
            _run_here(tasks, state)
        else:
            _run_beside(tasks, processes, state)
        return state.results


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Interrupts so far; the second one raises KeyboardInterrupt."""
    seen: list[int] = []

    def note(number: int, _frame: Optional[FrameType]) -> None:
        seen.append(number)
        if len(seen) > 1:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, before)


def _run_here(tasks: Sequence[Task[Result]], state: _State[Result]) -> None:
    for number, task in enumerate(tasks):
        if state.interrupts:
            return

        def progress(part: float, number: int = number) -> None:
            if state.interrupts:
                raise KeyboardInterrupt
            state.report(number, part)

        state.end(number, task(progress))


def _run_beside(tasks: Sequence[Task[Result]], processes: int, state: _State[Result]) -> None:
    waiting = deque(enumerate(tasks))
    stop_at: Optional[float] = None
    try:
        while waiting or state.running:
            while waiting and len(state.running) < processes and not state.interrupts:
                _start(*waiting.popleft(), state)
            if state.interrupts and stop_at is None:
                waiting.clear()
                stop_at = time.monotonic() + STOP_SECONDS
                for connection in state.running:
                    _send(connection, None)
            ready = wait([*state.running], LOOK_SECONDS)
            for connection in [*state.running]:
                if connection in ready:
                    _receive(connection, state)
            if stop_at is not None and time.monotonic() > stop_at:
                return
    finally:
        for connection, (_number, process) in state.running.items():
            process.kill()
            process.join()
            connection.close()


def _start(number: int, task: Task[Result], state: _State[Result]) -> None:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_child, args=(theirs, task), daemon=True)
    # Its first start would lift the mask.
    resource_tracker.ensure_running()
    # The child inherits the mask: Ctrl-C on the terminal is for its parent alone.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
        state.running[ours] = (number, process)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    theirs.close()


def _receive(connection: Connection, state: _State[Result]) -> None:
    """Take a report, a result or an error of a child."""
    number, process = state.running[connection]
    try:
        kind, value = connection.recv()
    except (EOFError, OSError):
        kind, value = "killed", None
    if kind == "part":
        state.report(number, value)
        return
    process.join()
    del state.running[connection]
    connection.close()
    if kind == "result":
        state.end(number, value)
    elif kind == "error":
        lines, code = value
        failure = SharectlError(*lines)
        failure.exit_code = code
        raise failure
    elif kind == "fault":
        raise RuntimeError(value)
    else:
        raise SharectlError(
            f"a simulation's process has ended with {process.exitcode}; if memory was short "
            "(-9), run fewer at once with --jobs"
        )


def _child(connection: Connection, task: Task[Result]) -> None:
    """Run a task, and send its result; the process ends where nobody receives it."""
    reported = 0.0

    def progress(part: float) -> None:
        nonlocal reported
        now = time.monotonic()
        if now - reported >= LOOK_SECONDS:
            reported = now
            _send(connection, ("part", part))
            if connection.poll():
                raise KeyboardInterrupt

    try:
        answer: object = ("result", task(progress))
    except SharectlError as error:
        answer = ("error", (error.problems, error.exit_code))
    except Exception as error:
        if os.environ.get("SHARECTL_TRACEBACK"):
            raise
        answer = ("fault", f"{type(error).__name__}: {error}")
    _send(connection, answer)


def _send(connection: Connection, message: object) -> None:
    try:
        connection.send(message)
    except OSError:
        # The other end is gone; a child has nobody to work for.
        if get_context("spawn").parent_process() is not None:
            os._exit(1)

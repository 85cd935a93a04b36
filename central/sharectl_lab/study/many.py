"""Simulations side by side, each in a process; results in the order of the tasks.

Ctrl-C lets each running task return what it has. A process whose parent is gone ends at once, so
that none stays.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, MutableSequence, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from math import fsum
from multiprocessing import active_children, get_context, parent_process, resource_tracker
from multiprocessing.synchronize import Event
from types import FrameType
from typing import Callable, NamedTuple, Optional, TypeVar, Union

from sharectl.errors import SharectlError

Result = TypeVar("Result")
Progress = Callable[[float], object]
"""Takes the part of a task that is done; raises KeyboardInterrupt where it is to end."""
Task = Callable[[Progress], Result]
"""Returns what it has where progress raises KeyboardInterrupt. It is pickled: a `partial` of a
function of a module."""
Done = Callable[[int, Result], object]
"""Takes the number of a task and its result."""

LOOK_SECONDS = 0.2
"""Time between two looks at interrupts and at the progress of tasks."""
STOP_SECONDS = 60.0
"""Time that an interrupted task has to return what it has."""


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def run_many(
    tasks: Sequence[Task[Result]],
    processes: int,
    progress: Progress,
    done: Done[Result] = lambda _number, _result: None,
) -> list[Optional[Result]]:
    """Result of each task; None of those that had none when Ctrl-C was pressed.

    ``done`` gets the number of a task and its result as soon as there is one.

    Raises SharectlError of the first task that failed; a second Ctrl-C raises KeyboardInterrupt.
    """
    results: list[Optional[Result]] = [None] * len(tasks)

    def keep(number: int, result: Result) -> None:
        results[number] = result
        done(number, result)

    with _interrupts() as interrupts:
        if min(processes, len(tasks)) > 1:
            _run_beside(tasks, processes, progress, keep, interrupts)
        else:
            _run_here(tasks, progress, keep, interrupts)
    return results


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


def _run_here(
    tasks: Sequence[Task[Result]], progress: Progress, keep: Done[Result], interrupts: list[int]
) -> None:
    for number, task in enumerate(tasks):
        if interrupts:
            return

        def report(part: float, number: int = number) -> None:
            if interrupts:
                raise KeyboardInterrupt
            progress((number + part) / len(tasks))

        keep(number, task(report))
        progress((number + 1) / len(tasks))


def _run_beside(
    tasks: Sequence[Task[Result]],
    processes: int,
    progress: Progress,
    keep: Done[Result],
    interrupts: list[int],
) -> None:
    context = get_context("spawn")
    stop, parts = context.Event(), context.Array("d", len(tasks), lock=False)
    others = {child.pid for child in active_children()}
    # Its first start would lift the mask.
    resource_tracker.ensure_running()
    with ProcessPoolExecutor(processes, context, _begin, (stop, parts)) as pool:
        # Children inherit the mask: Ctrl-C on the terminal is for their parent alone.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            futures = {pool.submit(_run, n, task): n for n, task in enumerate(tasks)}
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        waiting, stop_at = set(futures), float("inf")
        try:
            while waiting and time.monotonic() < stop_at:
                ended, waiting = wait(waiting, LOOK_SECONDS, FIRST_COMPLETED)
                for number, future in sorted((futures[future], future) for future in ended):
                    result = future.result()
                    if isinstance(result, _Failure):
                        failure = SharectlError(*result.problems)
                        failure.exit_code = result.exit_code
                        raise failure
                    if result is not None:
                        keep(number, result)
                progress(fsum(parts) / len(tasks))
                if interrupts and not stop.is_set():
                    stop.set()
                    stop_at = time.monotonic() + STOP_SECONDS
        except BrokenProcessPool:
            raise SharectlError(
                "a simulation's process was killed; if memory was short, run fewer at once with "
                "--jobs"
            ) from None
        finally:
            # Without them the pool ends at once.
            for child in active_children() if any(not one.done() for one in futures) else ():
                if child.pid not in others:
                    child.kill()


# ---- in a child


class _Failure(NamedTuple):
    """Error of a task: its lines and exit code."""

    problems: tuple[str, ...]
    exit_code: int


class _Parent:
    """Memory that a child shares with its parent."""

    stop: Event
    parts: MutableSequence[float]


def _begin(stop: Event, parts: MutableSequence[float]) -> None:
    _Parent.stop, _Parent.parts = stop, parts
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)


def _run(number: int, task: Task[Result]) -> Union[Result, _Failure, None]:
    """Result of a task; None if it was interrupted before it had one."""

    def progress(part: float) -> None:
        _Parent.parts[number] = part
        if _Parent.stop.is_set():
            raise KeyboardInterrupt

    try:
        progress(0.0)
        result = task(progress)
    except SharectlError as error:
        return _Failure(tuple(error.problems), error.exit_code)
    except KeyboardInterrupt:
        return None
    _Parent.parts[number] = 1.0
    return result

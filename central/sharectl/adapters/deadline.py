"""Questions asked at once, each in a process of its own, each answered or given up by its deadline.

HTCondor's bindings hold Python's global lock during a query, so a daemon that hangs would freeze every
thread, the one that watches the clock included.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Any, Callable, Optional

from sharectl.core.model import Source

# Fork: the child starts with the bindings loaded, in a millisecond instead of a hundred.
_CONTEXT = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Question:
    """Something to ask one daemon."""

    ask: Callable[[], Any]
    """Returns the answer, which can be pickled, or raises."""
    deadline_seconds: float


@dataclass(frozen=True)
class Answer:
    """What came back."""

    source: Source
    value: Any = None
    """None if there is a problem."""


@dataclass
class _Child:
    process: ForkProcess
    pipe: Connection
    began: float
    deadline: float


def ask_all(questions: Mapping[str, Question]) -> dict[str, Answer]:
    """Answers to all questions by name, in their order; none takes longer than its deadline.

    A process that did not answer is killed: none is left behind.
    """
    children = {name: _start(question) for name, question in questions.items()}
    answers: dict[str, Answer] = {}
    try:
        while len(answers) < len(children):
            waiting = {name: child for name, child in children.items() if name not in answers}
            now = time.monotonic()
            nearest = min(child.deadline for child in waiting.values())
            ready = wait([child.pipe for child in waiting.values()], timeout=max(0.0, nearest - now))
            now = time.monotonic()
            for name, child in waiting.items():
                if child.pipe in ready:
                    answers[name] = _received(name, child, now)
                elif child.deadline <= now:
                    answers[name] = _given_up(name, child, now)
    finally:
        for child in children.values():
            _end(child)
    return {name: answers[name] for name in questions}


def _start(question: Question) -> _Child:
    receiving, sending = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=_answer, args=(question.ask, sending), daemon=True)
    began = time.monotonic()
    process.start()
    sending.close()
    return _Child(process, receiving, began, began + question.deadline_seconds)


def _answer(ask: Callable[[], Any], pipe: Connection) -> None:
    try:
        result: tuple[Any, Optional[str]] = (ask(), None)
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent reports it with the daemon's name
        result = (None, f"{type(error).__name__}: {error}")
    pipe.send(result)
    pipe.close()


def _received(name: str, child: _Child, now: float) -> Answer:
    try:
        value, problem = child.pipe.recv()
    except EOFError:
        child.process.join()
        value, problem = None, f"the query ended without an answer (exit code {child.process.exitcode})"
    return Answer(Source(name, now - child.began, problem), value)


def _given_up(name: str, child: _Child, now: float) -> Answer:
    return Answer(Source(name, now - child.began, f"no answer within {child.deadline - child.began:g} s"))


def _end(child: _Child) -> None:
    child.pipe.close()
    if child.process.is_alive():
        child.process.kill()
    child.process.join()
    child.process.close()

"""Questions asked at once, each in a child, answered or given up by its deadline.

HTCondor's bindings hold Python's global lock during a query, so a daemon that hangs would freeze
every thread, the one that watches the clock included.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import resource
import select
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Callable, NamedTuple, NoReturn, Optional

from sharectl.condor.service import become_service
from sharectl.model import Source

MARK = "SHARECTL_LOADS"
"""Environment variable of the commands that a configuration of HTCondor runs."""

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


def words(error: Exception) -> str:
    """Text of an error. HTCondor's library has one class of errors, which tells nothing."""
    message, kind = str(error).rstrip(". \n"), type(error).__name__
    return message if message and kind == "HTCondorException" else f"{kind}: {message}"


class Question(NamedTuple):
    """Something to ask one daemon."""

    ask: Callable[[], Any]
    """Returns the answer, which can be pickled, or raises."""
    deadline_seconds: float
    why: Callable[[Exception], str] = words
    """What went wrong, in words; called in the process that has asked."""
    more_bytes: Optional[int] = None
    """Memory that the child may take beside its parent's; None for any."""


class Answer(NamedTuple):
    """Answer to a question."""

    source: Source
    value: Any = None
    """None if there is a problem."""


class _Child(NamedTuple):
    pid: int
    pipe: int
    """It ends with the child."""
    result: int
    """File in memory; a full pipe would keep the child waiting."""
    began: float


def ask_all(questions: Mapping[str, Question]) -> dict[str, Answer]:
    """Answers to all questions by name, in their order; a child that is late is killed."""
    children: dict[str, _Child] = {}
    try:
        with _ctrl_c_later():
            for name, question in questions.items():
                children[name] = _start(question)
        return {name: _answer_of(name, questions[name], child) for name, child in children.items()}
    finally:
        for child in children.values():
            os.close(child.pipe)
            os.close(child.result)
            os.kill(child.pid, signal.SIGKILL)
            os.waitpid(child.pid, 0)


def end_with(parent: int) -> None:
    """Let the kernel end this process, or the program that it becomes, once ``parent`` is gone."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:  # it was gone before
        os._exit(1)


def end_marked(mark: str) -> None:
    """Kill all processes that began with ``mark``, a ``NAME=value``, in their environment."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)


def limit_memory(more_bytes: int) -> None:
    """Limit this process to its memory and ``more_bytes``; beyond that is a MemoryError."""
    now = int(Path("/proc/self/statm").read_bytes().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = now + more_bytes if hard == resource.RLIM_INFINITY else min(now + more_bytes, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))


@contextlib.contextmanager
def _ctrl_c_later() -> Iterator[None]:
    """Let Ctrl-C act after the body: Python drops what callbacks of libraries raise at a fork."""
    former = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)


def _start(question: Question) -> _Child:
    """Child that works on a question."""
    # Not multiprocessing, whose import takes as long as a query; this process has the bindings.
    receiving, sending = os.pipe()
    result = os.memfd_create("answer")
    began = time.monotonic()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        _answer(question, result, parent)
    os.close(sending)
    return _Child(pid, receiving, result, began)


def _answer(question: Question, file: int, parent: int) -> NoReturn:
    """Write the answer or its problem, and end this process without its parent's clean-up."""
    exit_code = 1
    try:
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT,))
            become_service()
            end_with(parent)  # the kernel forgets it where a process gets another user
            if question.more_bytes is not None:
                limit_memory(question.more_bytes)
            result: tuple[Any, Optional[str]] = (question.ask(), None)
        except Exception as error:  # noqa: BLE001 - whatever it is, the parent reports it with the daemon's name
            result = (None, question.why(error))
        with os.fdopen(file, "wb") as written:
            pickle.dump((*result, time.monotonic()), written, pickle.HIGHEST_PROTOCOL)
        exit_code = 0
    finally:
        os._exit(exit_code)


def _answer_of(name: str, question: Question, child: _Child) -> Answer:
    """Answer of a child, which is waited for up to its deadline."""
    poll = select.poll()
    poll.register(child.pipe)
    left_seconds = child.began + question.deadline_seconds - time.monotonic()
    if not poll.poll(1000 * max(0.0, left_seconds)):
        problem = f"no answer within {question.deadline_seconds:g} s"
        return Answer(Source(name, time.monotonic() - child.began, problem))
    try:
        with os.fdopen(os.dup(child.result), "rb") as file:
            file.seek(0)
            value, problem, ended = pickle.load(file)  # noqa: S301 - from a process that this one forked
    except (EOFError, pickle.UnpicklingError):
        end = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        code = 0 if end is None else end.si_status * (1 if end.si_code == os.CLD_EXITED else -1)
        problem = f"the query ended without an answer (exit code {code})"
        return Answer(Source(name, time.monotonic() - child.began, problem))
    return Answer(Source(name, ended - child.began, problem), value)

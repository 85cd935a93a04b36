"""Installed laws, each in a separate process: a law cannot end, stop or change a cycle."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import socket
import sys
import time
import weakref
from collections.abc import Mapping
from typing import Any, Callable, NoReturn

from sharectl.condor.deadline import end_with, limit_memory
from sharectl.control.laws import LawStep, Move, Reading, checked, words_of

PATIENCE_SECONDS = 20.0
"""Time that a law may take in all, without steps of less than `STEP_SECONDS`."""
STEP_SECONDS = 0.1
MORE_BYTES = 2**31
"""Memory of a law."""
_MOST_BYTES = 2**20


class LawProcess:
    """Step of a law that a child loads and runs, as `LawStep`.

    The child leads a process group, and has no file of its parent but the channel. After it ended,
    or answered too late, every step fails. A process that is forked later starts its own.
    """

    def __init__(self, load: Callable[[], LawStep]) -> None:
        """Load the law; raises ValueError if that fails."""
        self._load = load
        self._start()

    def _start(self) -> None:
        self._problem, self._patience_seconds = "", PATIENCE_SECONDS
        self._channel, far = socket.socketpair()
        self._owner = os.getpid()
        pid = os.fork()
        if pid == 0:
            _serve(self._load, far, self._owner)
        far.close()
        self._end = weakref.finalize(self, _end, pid, self._owner, self._channel)
        self._ask(b"")

    def __call__(self, state: Mapping[str, float], reading: Reading, dt_seconds: float) -> Move:
        """Answer of the law; raises ValueError if it failed."""
        if self._owner != os.getpid():
            self._start()
        return Move(*self._ask(pickle.dumps((dict(state), reading, dt_seconds))))

    def _ask(self, question: bytes) -> Any:
        began, answer = time.monotonic(), b""
        try:
            self._channel.settimeout(max(0.001, self._patience_seconds))
            self._channel.sendall(question)
            while not answer.endswith(b"\n") and len(answer) < _MOST_BYTES:
                left_seconds = began + self._patience_seconds - time.monotonic()
                self._channel.settimeout(max(0.001, left_seconds))
                answer += self._channel.recv(_MOST_BYTES) or b"\n"
            value, problem = json.loads(answer)
        except Exception as error:
            late = isinstance(error, socket.timeout)
            words = f"no answer in {PATIENCE_SECONDS:g} s" if late else "its process ended"
            self._problem = self._problem or words
            self._end()
            raise ValueError(self._problem) from error
        seconds = time.monotonic() - began
        self._patience_seconds -= seconds if seconds > STEP_SECONDS else 0.0
        if problem:
            raise ValueError(problem)
        return value


def _serve(load: Callable[[], LawStep], channel: socket.socket, parent: int) -> NoReturn:
    """Load the law and answer questions in the child, until the parent ends it."""
    try:
        os.setpgid(0, 0)
        end_with(parent)
        limit_memory(MORE_BYTES)
        nothing = os.open(os.devnull, os.O_RDWR)
        for standard in range(3):
            os.dup2(nothing, standard)
        os.closerange(3, channel.fileno())
        os.closerange(channel.fileno() + 1, 2**16)
        sys.stdout = sys.stderr = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        questions = channel.makefile("rb")
        laws: list[LawStep] = []
        answer: Any = None
        problem = ""
        while not problem or laws:
            answer, problem = None, ""
            try:
                if laws:
                    answer = checked(laws[0](*pickle.load(questions)))  # noqa: S301 - of the parent
                else:
                    laws.append(load())
            except BaseException as error:  # noqa: BLE001 - a stranger's code may raise anything
                problem = words_of(error)
            channel.sendall(json.dumps((answer, problem)).encode() + b"\n")
    finally:
        os._exit(1)


def _end(pid: int, owner: int, channel: socket.socket) -> None:
    """End the child and all that it started in its group."""
    channel.close()
    if owner == os.getpid():
        os.kill(pid, signal.SIGKILL)  # it may not lead its group yet
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

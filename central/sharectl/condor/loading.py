"""HTCondor's library, loaded behind a deadline, and with a message where it ends the process.

It reads this machine's configuration while it is loaded: files that may never answer, and commands.
Python's global lock is held meanwhile, so no thread and no signal handler of Python acts. A faulty
configuration ends the process by exit(), which calls `_ended`.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import re
import select
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, NoReturn

from sharectl.condor.deadline import MARK, end_marked
from sharectl.errors import INTERRUPTED, LAST_WORDS, ConfigError
from sharectl.words import printable

LOAD_SECONDS = 30
"""Honest commands of a configuration take some seconds; monitors give up after 60."""
EXPANDED = ("COLLECTOR_HOST", "SCHEDD_HOST", "UID_DOMAIN")
"""Macros that are expanded outside of children: where they form a circle, that takes for ever."""

_GRACE_SECONDS = 2
"""For the message that a load is too late."""
_CLOCK_MONOTONIC, _SIGEV_THREAD = 1, 2
_LIBC, _LIBRT = ctypes.CDLL(None), ctypes.CDLL("librt.so.1")


class _Event(ctypes.Structure):
    """Of Linux's timer_create(2): ``function`` is called with ``value`` in another thread."""

    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("function", ctypes.c_void_p),
        ("rest", ctypes.c_char * 40),
    )


def library() -> Any:
    """Module htcondor2; raises ConfigError if there is no configuration.

    This process ends with `LAST_WORDS` where the configuration is faulty, or not read by
    `LOAD_SECONDS`.
    """
    _load()
    import htcondor2

    return htcondor2


@cache
def _load() -> None:
    import classad2  # noqa: F401 - HTCondor's code, whose clean-up is then after `_ended`

    _LIBC["__cxa_atexit"](_ENDED, None, _PROCESS)
    atexit.register(_forget)
    _PROCESS.value = os.getpid()
    with _watched(), _captured():
        import htcondor2

        if "FULL_HOSTNAME" not in htcondor2.param:
            _printed()  # the advice of HTCondor, which this problem replaces
            problem = "HTCondor finds no such file, or it is a folder"
            raise ConfigError([f"{_configuration()}: {problem}; {_REMEDY}, or unset that"])
        for name in EXPANDED:
            htcondor2.param.get(name)


# ---- exit() within the library

_PROCESS = ctypes.c_int()
"""Process that has loaded the library; not a child, whose end its parent reports."""
_OUTPUT: list[int] = []
"""Standard error while the library is loaded, and the file in its place."""
_REMEDY = "correct it, or name another configuration of HTCondor in CONDOR_CONFIG"
_READ = "give this user the right to read it"
_UNREAD = re.compile(r"Can't read (?:\w+ )?config source (?P<file>.+)")
_SILENT = "HTCondor's library has ended this process: see its message, and HTCondor's configuration"


def _configuration() -> str:
    named = os.environ.get("CONDOR_CONFIG", "/etc/condor/condor_config")
    return named or "CONDOR_CONFIG is empty"


def _ended(_argument: object) -> None:
    """Report that the library ends this process, with what it has printed while it was loaded."""
    if os.getpid() != _PROCESS.value:
        return
    from sharectl.condor.library import refusal  # for a broken configuration alone

    why = refusal(_printed(), os.devnull)
    problem, remedy = _SILENT, _REMEDY
    if why is not None:
        reason = str(why).removeprefix("ERROR: ")
        problem = f"{why.place or _configuration()}: HTCondor cannot use it: {reason}"
        unread = _UNREAD.match(reason)
        access = [os.access(unread["file"], kind) for kind in (os.F_OK, os.R_OK)] if unread else []
        if access == [True, False]:
            remedy = f"{_READ}, or {_REMEDY.partition(', or ')[2]}"
    try:
        LAST_WORDS.get().say(f"{problem}; {remedy}")
    finally:
        os._exit(LAST_WORDS.get().exit_code)


_ENDED = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_ended)


def _forget() -> None:
    """Have Python not called at this process's end, when it is gone."""
    _PROCESS.value = 0
    _LIBC["__cxa_finalize"](_PROCESS)


@contextmanager
def _captured() -> Iterator[None]:
    """Keep what the library prints to standard error, for `_ended`; else print it at the end."""
    _OUTPUT[:] = os.dup(2), os.memfd_create("condor")
    os.dup2(_OUTPUT[1], 2)
    try:
        yield
    finally:
        os.write(2, _printed().encode())


def _printed() -> str:
    if not _OUTPUT:
        return ""
    error, file = _OUTPUT
    os.dup2(error, 2)
    text = os.pread(file, 2**16, 0).decode(errors="replace")
    os.close(error)
    os.close(file)
    _OUTPUT.clear()
    return text


# ---- a configuration that does not answer


def _interrupted(_number: int) -> None:
    """End this process at Ctrl-C; called at once, by this thread, which has Python's lock."""
    os.write(_OUTPUT[0] if _OUTPUT else 2, b"sharectl: interrupted\n")
    os._exit(INTERRUPTED)


_INTERRUPTED = ctypes.CFUNCTYPE(None, ctypes.c_int)(_interrupted)


@contextmanager
def _watched() -> Iterator[None]:
    """End this process after `LOAD_SECONDS` in the body; Ctrl-C ends it too.

    A child prints the message and ends the commands of the configuration. A timer of the C library
    ends this process, also while it waits for a file system that no signal interrupts.
    """
    reading, alive = os.pipe()
    code, mark = LAST_WORDS.get().exit_code, str(os.getpid())
    child = os.fork()
    if child == 0:
        os.close(alive)
        _watch(reading, f"{MARK}={mark}")
    os.close(reading)
    os.environ[MARK] = mark
    interrupt = signal.getsignal(signal.SIGINT)
    takes_ctrl_c = callable(interrupt) and threading.current_thread() is threading.main_thread()
    if takes_ctrl_c:
        _LIBC["signal"](signal.SIGINT, _INTERRUPTED)
    timer = _exit_later(code)
    try:
        yield
    finally:
        _LIBRT.timer_delete(timer)
        if takes_ctrl_c:
            signal.signal(signal.SIGINT, interrupt)
        del os.environ[MARK]
        with suppress(BrokenPipeError):
            os.write(alive, b"\n")
        os.close(alive)
        if os.waitpid(child, 0)[1]:
            os._exit(code)  # it was too late


def _watch(reading: int, mark: str) -> NoReturn:
    """Wait in the child for the end of a load, or of the process that loads."""
    is_late = False
    try:
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            is_late = not select.select([reading], [], [], LOAD_SECONDS)[0]
        except KeyboardInterrupt:  # of a terminal, for both; only SIGKILL ends some waits
            if not select.select([reading], [], [], _GRACE_SECONDS)[0]:
                os.kill(os.getppid(), signal.SIGKILL)
        if is_late or not os.read(reading, 1):
            commands = end_marked(mark)
        if is_late:
            waits = f" in `{printable(commands[0], 200)}`" if commands else ""
            LAST_WORDS.get().say(
                f"{_configuration()}: HTCondor has not read it within {LOAD_SECONDS} s{waits}: a "
                "pipe, a file system that does not answer, a command that does not end, or macros "
                "in a circle are in it; `strace -f condor_config_val -dump` shows where it waits; "
                f"{_REMEDY}"
            )
    finally:
        os._exit(is_late)


def _exit_later(code: int) -> ctypes.c_void_p:
    """Timer that calls _exit() in a thread after `LOAD_SECONDS` and `_GRACE_SECONDS`."""
    event = _Event(code, 0, _SIGEV_THREAD, ctypes.cast(_LIBC["_exit"], ctypes.c_void_p))
    timer = ctypes.c_void_p()
    _LIBRT.timer_create(_CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(timer))
    seconds = (ctypes.c_long * 4)(0, 0, LOAD_SECONDS + _GRACE_SECONDS, 0)
    _LIBRT.timer_settime(timer, 0, seconds, None)
    return timer

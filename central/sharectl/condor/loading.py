"""HTCondor's library, loaded here only after a child could load it.

It reads this machine's configuration while it is loaded: files that may never answer, and commands.
Python's global lock is held meanwhile, so no thread and no signal handler of Python acts. A faulty
configuration ends the process by exit(). A child has a deadline, and its end is a message.
"""

from __future__ import annotations

import os
from contextvars import Context
from functools import cache, partial
from typing import Any, Optional

from sharectl.condor.deadline import MARK, Question, ask_all, end_marked
from sharectl.errors import ConfigError

LOAD_SECONDS = 30
"""Honest commands of a configuration take some seconds; monitors give up after 60."""
EXPANDED = ("COLLECTOR_HOST", "SCHEDD_HOST", "UID_DOMAIN")
"""Macros that are expanded outside of children: where they form a circle, that takes for ever."""
_MOST_BYTES = 2**16
"""Part of the library's messages that is read."""
_REMEDY = (
    "correct it, give this user the right to read it, or name another configuration of HTCondor in "
    "CONDOR_CONFIG"
)


def library() -> Any:
    """Module htcondor2; raises ConfigError if the configuration is missing, faulty or silent."""
    if (problem := _problem()) is not None:
        raise ConfigError([problem])
    import htcondor2

    return htcondor2


@cache
def _problem() -> Optional[str]:
    """Problem of this machine's configuration, which is tried once; None if it can be loaded."""
    mark = f"{MARK}={os.getpid()}"
    output = os.memfd_create("condor")
    try:
        os.environ[MARK] = str(os.getpid())
        question = Question(partial(_try, output), LOAD_SECONDS)
        # An empty context: the child acts as this user, not as the service's.
        answer = Context().run(ask_all, {"library": question})["library"]
        printed = os.pread(output, _MOST_BYTES, 0).decode(errors="replace")
    except BaseException:
        end_marked(mark)
        raise
    finally:
        os.close(output)
        del os.environ[MARK]
    if answer.source.problem is None:
        absent = "HTCondor finds no such file, or it is a folder"
        return None if answer.value else f"{_configuration()}: {absent}; {_REMEDY}, or unset that"
    end_marked(mark)
    if answer.source.seconds >= LOAD_SECONDS:
        return (
            f"{_configuration()}: HTCondor has not read it within {LOAD_SECONDS} s: a pipe, a file "
            "system that does not answer, a command that does not end, or macros in a circle are "
            "in it; `strace -f condor_config_val -dump` shows where it waits; "
            f"{_REMEDY}"
        )
    return _fault(printed, answer.source.problem)


def _try(output: int) -> bool:
    """Load the library in a child; False if it has no configuration."""
    os.dup2(output, 2)
    import htcondor2

    for name in EXPANDED:
        htcondor2.param.get(name)
    return "FULL_HOSTNAME" in htcondor2.param


def _configuration() -> str:
    return os.environ.get("CONDOR_CONFIG", "/etc/condor/condor_config") or "CONDOR_CONFIG is empty"


def _fault(printed: str, end: str) -> str:
    """Problem of a library that has ended its process, by what it ``printed``."""
    from sharectl.condor.library import refusal  # for a broken configuration alone

    why = refusal(printed, os.devnull)
    if why is None:
        return f"{_configuration()}: HTCondor's library has ended: {end}; {_REMEDY}"
    reason = str(why).removeprefix("ERROR: ")
    return f"{why.place or _configuration()}: HTCondor cannot use it: {reason}; {_REMEDY}"

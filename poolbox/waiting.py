"""Waiting with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from poolbox.errors import BoxFailedError, DeadlineError, PoolboxError

Seen = TypeVar("Seen")

POLL_SECONDS, LONGEST_POLL_SECONDS = 0.1, 1.0
# Most questions are a process: a wait of t seconds may last a twentieth of t longer.
POLL_SHARE = 0.05


HANG_SECONDS = 500.0
"""Limit of a wait. It is for hangs: a busy machine is many times slower than an idle one.

Targets of tests are valid for 600 s: a wait for their withdrawal must end before.
"""


def wait_for(
    predicate: Callable[[], Seen], event: str, timeout_seconds: float = HANG_SECONDS
) -> Seen:
    """First true value of the predicate. Raises DeadlineError.

    A predicate that fails for the pool's sake (`PoolboxError`) counts as not yet, except when the
    whole box has ended (`BoxFailedError`): nothing more can be awaited of it.
    """
    began = time.monotonic()
    deadline = began + timeout_seconds
    while True:
        problem = ""
        try:
            seen = predicate()
            if seen:
                return seen
        except BoxFailedError:
            raise
        except PoolboxError as not_yet:
            problem = f"\n{not_yet}"
        now = time.monotonic()
        if now > deadline:
            raise DeadlineError(f"waited {timeout_seconds:g} s in vain: {event}{problem}")
        time.sleep(min(LONGEST_POLL_SECONDS, max(POLL_SECONDS, POLL_SHARE * (now - began))))

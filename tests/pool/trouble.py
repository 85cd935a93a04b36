"""Daemons that hang or die as long as a test wants it."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator

from poolbox import Box


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    """A process that does nothing while the body runs."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def hung(box: Box, host: str, daemon: str) -> Iterator[None]:
    """A daemon that accepts connections and says nothing; its master does not mend it."""
    with stopped(box.daemon_pid(host, "MASTER")), stopped(box.daemon_pid(host, daemon)):
        yield


@contextlib.contextmanager
def dead(box: Box, host: str, daemon: str) -> Iterator[None]:
    """A daemon killed where it stood; afterwards its master starts another."""
    pid = box.daemon_pid(host, daemon)
    with stopped(box.daemon_pid(host, "MASTER")):
        os.kill(pid, signal.SIGKILL)
        yield

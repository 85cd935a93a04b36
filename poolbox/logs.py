"""The daemons' logs of a box, for people who look into a failure."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

TAIL_BYTES = 65536
STARTER_LOGS = 2
# Where the daemon is named otherwise in the name of its log.
IRREGULAR_LOG_NAMES = {
    "JOB_ROUTER": "JobRouterLog",
    "SCHEDD": "SchedLog",
    "STARTD": "StartLog",
}
# Snapshots of the process table, and a starter's search for Java and containers.
NOISE = {"ProcLog", "StarterLog.testing"}


def log_name(daemon: str) -> str:
    """Name of a daemon's log file: the ``NEGOTIATOR`` writes ``NegotiatorLog``."""
    return IRREGULAR_LOG_NAMES.get(daemon.upper(), f"{daemon.capitalize()}Log")


def tail(path: Path, lines: int) -> list[str]:
    """The last lines of a file, of its last 64 KiB."""
    with path.open("rb") as log:
        log.seek(0, os.SEEK_END)
        log.seek(max(0, log.tell() - TAIL_BYTES))
        return log.read().decode(errors="replace").splitlines()[-lines:]


def log_files(hosts: Path) -> Iterator[Path]:
    """Yield the daemons' logs that hold anything, by host; of its starters' the newest two."""
    for folder in sorted(hosts.glob("*/log")):
        starters = sorted(folder.glob("StarterLog.*"), key=lambda path: path.stat().st_mtime)
        for path in (
            *sorted(folder.glob("*Log")),
            *starters[-STARTER_LOGS:],
            *folder.glob("*.stderr"),
        ):
            if path.name not in NOISE and path.stat().st_size:
                yield path


def log_tails(hosts: Path, lines: int) -> str:
    """The last lines of every daemon's log, under a heading each."""
    parts = []
    for path in log_files(hosts):
        parts.append(f"--- {path.parent.parent.name} {path.name}")
        parts.extend(tail(path, lines))
    return "\n".join(parts)

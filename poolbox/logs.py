"""The daemons' logs of a box, for people who look into a failure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

TAIL_BYTES = 65536


def tail(path: Path, lines: int) -> list[str]:
    """The last lines of a file, of its last 64 KiB."""
    with path.open("rb") as log:
        log.seek(0, 2)
        log.seek(max(0, log.tell() - TAIL_BYTES))
        return log.read().decode(errors="replace").splitlines()[-lines:]


def log_files(hosts: Path) -> Iterator[Path]:
    """Yield every host's daemon logs that hold anything, by host."""
    for folder in sorted(hosts.glob("*/log")):
        for path in sorted([*folder.glob("*Log"), *folder.glob("*.stderr"), *folder.glob("StarterLog.*")]):
            if path.is_file() and path.stat().st_size:
                yield path


def log_tails(hosts: Path, lines: int) -> str:
    """The last lines of every daemon's log, under a heading each."""
    parts = []
    for path in log_files(hosts):
        parts.append(f"--- {path.parent.parent.name} {path.name}")
        parts.extend(tail(path, lines))
    return "\n".join(parts)

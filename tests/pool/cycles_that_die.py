"""Cycles on a full disk, and cycles that get SIGKILL."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Callable

from poolbox import Box
from poolbox.waiting import HANG_SECONDS
from tests.pool.sharectl_command import CHECKOUT

LEFTOVER = re.compile(r"\..+\.[a-z0-9_]{8}")


@contextlib.contextmanager
def small_disk(folder: Path, kib: int) -> Iterator[Path]:
    """Mount a tmpfs of that size in another mount namespace; yields its path here.

    SQLite follows links itself and finds nothing there: what keeps a ledger on it is to run
    `within` the namespace.
    """
    place = folder / "disk"
    place.mkdir()
    script = 'mount -t tmpfs -o size="$2"k none "$1" && echo mounted && exec sleep 600'
    shell = ("sh", "-c", script, "sh", str(place), str(kib))
    holder = subprocess.Popen(
        ["unshare", "--map-root-user", "--mount", *shell], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "mounted\n", "no tmpfs could be mounted"
        yield Path(f"/proc/{holder.pid}/root{place}")
    finally:
        holder.kill()
        holder.communicate()


def within(disk: Path) -> tuple[str, ...]:
    """Command that runs another one in the namespace of a small disk."""
    holder = disk.parts[2]
    return ("nsenter", f"--target={holder}", "--user", "--mount", "--preserve-credentials", "--")


def fill(disk: Path, free_pages: int) -> None:
    """Leave so many pages free on a disk."""
    filler = disk / "filler"
    with filler.open("ab", buffering=0) as file:
        with contextlib.suppress(OSError):
            while file.write(b"x" * 4096):
                pass
        os.ftruncate(file.fileno(), max(0, filler.stat().st_size - 4096 * free_pages))


@contextlib.contextmanager
def driver(box: Box) -> Iterator[Callable[[Path, str, int], int]]:
    """Yield what runs a cycle that is killed at a step of a kind, and gives its exit code."""
    path = os.pathsep.join(sys.path)
    running = subprocess.Popen(
        [sys.executable, "-m", "tests.killed"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": path, **box.client_environment},
        cwd=CHECKOUT,
    )

    def cycle(config: Path, kind: str, number: int) -> int:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(f"{config} {kind} {number}\n")
        running.stdin.flush()
        return int(running.stdout.readline())

    try:
        yield cycle
    finally:
        running.communicate(timeout=HANG_SECONDS)


def leftovers(folder: Path) -> list[Path]:
    """What killed writers have left in a folder and below it."""
    return [path for path in folder.rglob(".*") if LEFTOVER.fullmatch(path.name)]

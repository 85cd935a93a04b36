"""Cycles on a full disk, and cycles that get SIGKILL."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from poolbox import Box
from tests.pool.sharectl_command import CHECKOUT

LEFTOVER = re.compile(r"\..+\.[a-z0-9_]{8}")
WITHOUT_END = 10_000
"""A step that no cycle has."""

# Forks each cycle from a process that has loaded everything: a cycle takes tenths of a second, not
# seconds.
DRIVER = """\
import os, signal, sys
import htcondor2
from sharectl.condor import pool
from sharectl.publish import collector, https
from tests import killed

def die_at(number):
    # Ads are sent by a process that the cycle has started: both die.
    send, seen = htcondor2.Collector.advertise, []
    def die():
        os.kill(os.getppid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
    def advertise(*given):
        if len(seen) == number:
            die()
        send(*given)
        seen.append(given)
        if len(seen) == 2 == number:
            die()
    htcondor2.Collector.advertise = advertise

for line in sys.stdin:
    config, kind, number = line.split()
    pid = os.fork()
    if pid == 0:
        if kind == "advertise":
            die_at(int(number))
        at = number if kind == "step" else "{none}"
        os._exit(killed.main(["--config", config, "--at", at, "--fine"]))
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
""".replace("{none}", str(WITHOUT_END))


@contextlib.contextmanager
def small_disk(folder: Path, kib: int) -> Iterator[Path]:
    """Mount a tmpfs of that size in another mount namespace; yields its path here.

    SQLite follows links itself and finds nothing there: what keeps a ledger on it is to run
    `within` the namespace.
    """
    place = folder / "disk"
    place.mkdir()
    script = 'mount -t tmpfs -o size="$2"k none "$1" && echo mounted && exec sleep 600'
    command = [
        "unshare",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        script,
        "sh",
        str(place),
        str(kib),
    ]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
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


def environment(box: Box) -> dict[str, str]:
    """What a process with the tests' modules needs to talk to the pool."""
    path = f"{CHECKOUT / 'central'}:{CHECKOUT}"
    return {"PATH": os.environ["PATH"], "PYTHONPATH": path, **box.client_environment}


def steps_of(box: Box, config: Path) -> list[str]:
    """The steps of a cycle, which is run for that."""
    command = [sys.executable, "-m", "tests.killed", "--config", str(config), "--list", "--fine"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment(box), timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@contextlib.contextmanager
def driver(box: Box) -> Iterator[subprocess.Popen[str]]:
    """Yield the process to which `cycle` talks."""
    running = subprocess.Popen(
        [sys.executable, "-c", DRIVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(box),
        cwd=CHECKOUT,
    )
    try:
        yield running
    finally:
        running.communicate(timeout=60)


def cycle(
    by: subprocess.Popen[str], config: Path, kind: str = "step", number: int = WITHOUT_END
) -> int:
    """Exit code of a cycle that is killed at a step or at an ``advertise``."""
    assert by.stdin is not None
    assert by.stdout is not None
    by.stdin.write(f"{config} {kind} {number}\n")
    by.stdin.flush()
    return int(by.stdout.readline())


def leftovers(folder: Path) -> list[Path]:
    """What killed writers have left in a folder and below it."""
    return [path for path in folder.rglob(".*") if LEFTOVER.fullmatch(path.name)]

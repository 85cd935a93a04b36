"""The processes of a box as this machine sees them, for tests that stop or kill one daemon."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import weakref
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class BoxProcess:
    """One process, with its pids outside and inside the box."""

    pid: int
    inner_pid: int
    parent_pid: int
    argv: tuple[str, ...]
    resident_kib: int

    @property
    def program(self) -> str:
        """Last part of the program's path, such as ``condor_startd``."""
        return Path(self.argv[0]).name if self.argv else ""


class Namespace:
    """A pid namespace, told by the pid of one of its processes.

    It stays open as long as this object lives: the kernel gives the number of a namespace that is
    gone to the next one made, and a box that has ended would be taken for another's.
    """

    def __init__(self, pid: int) -> None:
        self._descriptor = os.open(f"/proc/{pid}/ns/pid", os.O_RDONLY)
        self._number = os.fstat(self._descriptor).st_ino
        weakref.finalize(self, os.close, self._descriptor)

    def processes(self) -> list[BoxProcess]:
        """Every living process in it; zombies are not living."""
        living = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError, KeyError):
                    if (entry / "ns" / "pid").stat().st_ino == self._number:
                        living.append(_read(entry))
        return living


def _read(entry: Path) -> BoxProcess:
    lines = (line.partition(":") for line in (entry / "status").read_text().splitlines())
    status = {key: value.split() for key, _colon, value in lines}
    argv = (entry / "cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
    return BoxProcess(
        pid=int(entry.name),
        inner_pid=int(status["NSpid"][-1]),
        parent_pid=int(status["PPid"][0]),
        argv=tuple(argv),
        resident_kib=int(status["VmRSS"][0]),  # KeyError for a zombie, which has none
    )

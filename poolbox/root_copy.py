"""A copy of a suite's root in which packages are installed and removed, as on a machine."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from poolbox.errors import CommandError
from poolbox.root import cached_root, remove_tree

SECONDS = 300
CHANGED_IN_PLACE = ("etc", "var", "run", "tmp")
"""Folders whose files programs write to; elsewhere dpkg replaces files by rename."""


@contextlib.contextmanager
def root_copy(suite: str) -> Iterator[Path]:
    """Path of the copy, which is deleted at the end. Raises CannotBuildError."""
    cached = cached_root(suite)
    # In the cache too: a link to a file cannot leave its file system.
    path = Path(tempfile.mkdtemp(prefix=f".copy-{suite}-", dir=cached.parent))
    try:
        for entry in sorted(cached.iterdir()):
            link = () if entry.name in CHANGED_IN_PLACE else ("--link",)
            subprocess.run(["cp", "--archive", *link, str(entry), str(path)], check=True)
        (path / "dev").mkdir(exist_ok=True)  # where bubblewrap mounts its own
        yield path
    finally:
        remove_tree(path)


def run_as_root(
    path: Path, command: str, shown: tuple[Path, ...] = (), *, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run a shell command as root of the copy, which sees the folders ``shown`` read-only.

    It knows one user id, as a container without subordinate ids: nothing can belong to another.
    """
    done = subprocess.run(
        [*as_root(path, shown), command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    if check and done.returncode:
        raise CommandError(["sh", "-c", command], done.returncode, done.stdout, "")
    return done


def as_root(path: Path, shown: tuple[Path, ...] = ()) -> list[str]:
    """Argv, but for its last word, that runs a shell command as `run_as_root` does."""
    return [
        *("bwrap", "--unshare-user", "--uid", "0", "--gid", "0", "--cap-add", "ALL"),
        *("--unshare-pid", "--die-with-parent", "--bind", str(path), "/"),
        *("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/run"),  # noqa: S108
        *(word for folder in shown for word in ("--ro-bind", str(folder), str(folder))),
        *("--clearenv", "--setenv", "PATH", "/usr/sbin:/usr/bin:/sbin:/bin"),
        *("--setenv", "HOME", "/root"),
        *("--setenv", "DEBIAN_FRONTEND", "noninteractive", "--setenv", "LANG", "C.UTF-8"),
        *("--chdir", "/", "--", "sh", "-c"),
    ]

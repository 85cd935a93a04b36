"""Files: replaced whole, grown line by line, locked, and read without waiting for ever."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import os
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Optional, TextIO

from sharectl.errors import LockedError, StateError

MAX_LINE_BYTES = 2**16
"""Size from which a line of a log is refused."""
LEFTOVER_SECONDS = 3600
"""Age of a half-written file whose writer has been killed: no writing takes so long."""

_GIVES_WAY = (stat.S_IFREG, stat.S_IFLNK, stat.S_IFIFO)
"""Types of files that `replace` replaces; a rename would destroy /dev/null.

A link or a FIFO gives way: otherwise whoever puts one there stops the publishing. A link is not
followed.
"""
_BEGIN_BYTES = 4096
REMEDIES = {
    **dict.fromkeys((errno.EACCES, errno.EPERM), "give this user the right to write there"),
    **dict.fromkeys((errno.EEXIST, errno.ENOTDIR), "a file is in the place of a folder: name one"),
    errno.ENOENT: "make the folder",
    errno.EISDIR: "name a file",
    errno.ENOSPC: "make room",
    errno.EROFS: "mount that file system for writing",
}
"""Number of an operating system's error -> remedy."""
_POLL_SECONDS = 0.1
_descriptors: set[int] = set()
"""Descriptors of the locks that this process holds or waits for."""


# ---- writing


def replace(path: Path, chunks: Iterable[str], mode: int = 0o644) -> None:
    """Put a new file in the place of ``path``: written beside it, synced, renamed.

    Raises StateError if that fails, or a device or folder is there; the old file is untouched
    then, and nothing stays beside it.
    """
    _refuse_all_but(path, _GIVES_WAY)
    with _as_state_error(path):
        import tempfile  # few runs write

        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
                file.writelines(chunks)
                file.flush()
                os.fchmod(file.fileno(), mode)
                os.fsync(file.fileno())
                _remove_leftovers(path, os.fstat(file.fileno()).st_mtime)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        with _opened(path.parent, os.O_RDONLY | os.O_DIRECTORY) as folder:
            os.fsync(folder)


def remove_regular(path: Path) -> bool:
    """Remove a regular file or a link; True if nothing is there, in a folder that is."""
    try:
        if path.is_symlink() or path.is_file():
            path.unlink()
    except OSError:
        return False
    return path.parent.is_dir() and not os.path.lexists(path)


def refuse_unwritable(path: Path) -> None:
    """Raise StateError if no file can be made beside ``path``."""
    with _as_state_error(path):
        import tempfile  # few runs write

        tempfile.TemporaryFile(dir=path.parent).close()


def refuse_foreign(path: Path, begin: str, kind: str) -> None:
    """Raise StateError if ``path`` is a link, or a file of another ``kind``: one begins so."""
    start: Optional[bytes] = begin.encode()
    try:
        with contextlib.suppress(FileNotFoundError):
            start, _ = read_regular(path, _BEGIN_BYTES)
    except OSError as error:
        fact = f"what is there cannot be read: {error.strerror or error}"
        raise StateError(f"{path}: not written: {fact}; name another place") from error
    if path.is_symlink() or start is None or not start.lstrip().startswith(begin.encode()):
        fact = "a folder" if path.is_dir() else f"no {kind}"
        remedy = "name another place, or move it away"
        raise StateError(f"{path}: not replaced: it is {fact}; {remedy}")


def append_lines(path: Path, lines: Iterable[str], mode: int = 0o644) -> None:
    """Add lines to the end of a file; it is made if it is missing.

    Half a line of a crash or a full disk is cut off. ``lines`` have no newline, and are shorter
    than `MAX_LINE_BYTES`. Raises StateError if that fails, or something other than a regular file
    is there; nothing is added then.
    """
    _refuse_all_but(path, (stat.S_IFREG,))
    with _as_state_error(path), _opened(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, mode) as file:
        pieces = [f"{line}\n".encode() for line in lines]
        if max(map(len, pieces), default=0) > MAX_LINE_BYTES:
            raise OSError(f"a line is longer than {MAX_LINE_BYTES} bytes")
        own_as_folder(file, path.parent)
        os.fchmod(file, mode)
        end = os.lseek(file, 0, os.SEEK_END)
        tail = os.pread(file, MAX_LINE_BYTES, max(0, end - MAX_LINE_BYTES))
        start = end - len(tail) + tail.rfind(b"\n") + 1
        os.ftruncate(file, start)
        os.lseek(file, start, os.SEEK_SET)
        try:
            with open(file, "wb", closefd=False) as stream:
                stream.writelines(pieces)
            os.fsync(file)
        except BaseException:
            os.ftruncate(file, start)
            raise


LOG_BYTES, LOG_FILES = 10 * 2**20, 10
"""Size at which a log is rotated, and older files that stay: months of cycles, and 110 MiB."""


def rotate(path: Path, max_bytes: int, keep: int) -> None:
    """Rename ``path`` to ``path.1``, that to ``path.2`` and so on, if it has ``max_bytes``.

    ``keep`` old files remain. Raises StateError if a file cannot be renamed.
    """
    _refuse_all_but(path, (stat.S_IFREG,))
    with _as_state_error(path):
        if not path.exists() or path.stat().st_size < max_bytes:
            return
        names = [path, *(path.with_name(f"{path.name}.{number}") for number in range(1, keep + 1))]
        for newer, older in reversed(list(zip(names, names[1:]))):
            if newer.exists():
                newer.replace(older)


def name_aside(path: Path, now: int) -> Path:
    """Free name beside a file that is broken at Unix time ``now``."""
    stem = f"{path}.broken-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(now))}"
    names = (Path(stem if number == 0 else f"{stem}-{number}") for number in count())
    return next(name for name in names if not os.path.lexists(name))


def make_folder(folder: Path, mode: int = 0o750) -> None:
    """Make a folder if it is missing, for the owner of the one that it is in. Raises OSError."""
    if not folder.is_dir():
        folder.mkdir(mode=mode, exist_ok=True)
        with _opened(folder, os.O_RDONLY | os.O_DIRECTORY) as descriptor:
            own_as_folder(descriptor, folder.parent)


def make_state_folder(folder: Path) -> None:
    """Make ``state_directory`` if only its last part is missing: a longer path may be misspelt.

    Its mode is 0755, as systemd makes it, because nodes may read targets there.
    """
    if folder.parent.is_dir():
        make_folder(folder, 0o755)


def own_as_folder(descriptor: int, folder: Path) -> None:
    """Give a file that root writes to the owner of its folder, who has to write to it too."""
    if os.geteuid() == 0:
        facts = folder.stat()
        os.fchown(descriptor, facts.st_uid, facts.st_gid)


def _refuse_all_but(path: Path, types: Iterable[int]) -> None:
    """Raise StateError if a file of another type of `stat` is there."""
    with _as_state_error(path), contextlib.suppress(FileNotFoundError):
        if stat.S_IFMT(os.lstat(path).st_mode) not in types:
            raise StateError(
                f"{path}: not written: no regular file is there; name another path in "
                "the configuration, or remove it"
            )


def _remove_leftovers(path: Path, now: float) -> None:
    """Remove old files that killed writers of ``path`` left beside it."""
    import glob

    for leftover in path.parent.glob(f".{glob.escape(path.name)}.????????"):
        with contextlib.suppress(OSError):
            if now - leftover.lstat().st_mtime > LEFTOVER_SECONDS:
                leftover.unlink()


@contextlib.contextmanager
def _opened(path: Path, flags: int, mode: int = 0o644) -> Iterator[int]:
    descriptor = os.open(path, flags | os.O_CLOEXEC, mode)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _as_state_error(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        remedy = REMEDIES.get(error.errno or 0, "look at that file system, then try again")
        raise StateError(
            f"{path}: cannot be written: {error.strerror or error}; {remedy}"
        ) from error


# ---- locks


@contextlib.contextmanager
def only_one(path: Path, wait_seconds: float, *, is_folder: bool = False) -> Iterator[None]:
    """Hold the lock file ``path`` while the body runs; the kernel frees it if this process dies.

    The folder of a lock file is ``state_directory``, which is made as by `make_state_folder`. With
    ``is_folder`` the folder ``path`` itself is held. Raises LockedError if another process still
    holds it after ``wait_seconds``, StateError if it cannot be opened.
    """
    folder = path if is_folder else path.parent
    try:
        if is_folder:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        else:
            make_state_folder(folder)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            own_as_folder(descriptor, folder)
    except OSError as error:
        raise StateError(
            f"{path}: cannot be opened: {error.strerror}; make {folder} as the user who runs "
            "cycles, give that user the right to write there, or correct state_directory"
        ) from error
    _descriptors.add(descriptor)
    try:
        _acquire(descriptor, path, time.monotonic() + wait_seconds)
        yield
    finally:
        if descriptor in _descriptors:  # not in a child that was forked meanwhile
            _descriptors.remove(descriptor)
            os.close(descriptor)


def _acquire(descriptor: int, path: Path, deadline: float) -> None:
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise LockedError(
                    f"{path}: another cycle holds the lock; wait for it, or raise lock_wait_seconds"
                ) from None
            time.sleep(_POLL_SECONDS)


def _close_in_child() -> None:
    """Leave the locks to the parent: a child that hangs must not hold them when that dies."""
    while _descriptors:
        os.close(_descriptors.pop())


os.register_at_fork(after_in_child=_close_in_child)


# ---- reading


def read_regular(path: Path, most_bytes: int) -> tuple[Optional[bytes], os.stat_result]:
    """Up to so many bytes of a file, and its stat; None instead of bytes if it is not regular.

    Waits neither for a writer of a FIFO nor for a device. Raises OSError.
    """
    with _opened(path, os.O_RDONLY | os.O_NONBLOCK) as descriptor:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            return None, facts
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(most_bytes), facts


def content_of(path: Path, most_bytes: int) -> bytes:
    """Up to so many bytes of a file, or of standard input, ``-``. Errors as of `open_bytes`."""
    if path == Path("-"):
        return sys.stdin.buffer.read(most_bytes)
    with open_bytes(path) as file:
        return file.read(most_bytes)


def lines_of(file: TextIO, most: int) -> Iterator[str]:
    """Lines of a file, each cut to ``most`` characters: one without an end fits into memory."""
    while line := file.readline(most + 1):
        yield line[:most]
        while len(line) > most and not line.endswith("\n"):
            line = file.readline(most + 1)


def open_text(path: Path, errors: str = "strict") -> io.TextIOWrapper:
    """Open a regular file or a pipe to read UTF-8. Errors as of `open_bytes`."""
    return io.TextIOWrapper(open_bytes(path), encoding="utf-8", errors=errors)


def open_bytes(path: Path) -> io.BufferedReader:
    """Open a regular file or a pipe.

    Raises OSError if it cannot be opened or is something else, such as a device without end.
    """
    file = path.open("rb")
    mode = os.fstat(file.fileno()).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
        file.close()
        raise OSError(errno.EINVAL, "it is neither a regular file nor a pipe")
    return file

"""The ledger's file: how it is opened, what its errors mean, and what becomes of one that is broken."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from sharectl.adapters import files
from sharectl.adapters.ledger_schema import VERSION, migrate, readable, version_of
from sharectl.errors import NoLedgerError, StateError

PLACE = Path("ledger", "ledger.sqlite")
BUSY_SECONDS = 5.0
PAGE_BYTES = 16384
"""Blocks of nodes are a fourth of it: in smaller pages a fifth of the file would be ends of pages."""

_MODE = 0o640
_BESIDE = ("-wal", "-shm")
_INDEX_BYTES = 32768
_CORRUPT = ("malformed", "not a database")
_REMEDIES = {
    "locked": "another process has been writing to it for long: look for it",
    "full": "make room",
    "No space": "make room",
    "Permission denied": "run this as the user of `sharectl cycle`, or give this user the right to its folder and to it",
    "readonly": "give this user the right to write there",
    "unable to open": "make the folder, or give this user the right to write there",
    "disk I/O": "make room, or look for what is wrong with the disk",
}
"""Part of what SQLite says -> what to do."""


class CorruptError(StateError):
    """What is at ``path`` is no sound SQLite file. It begins with `fact`, and says what becomes of it."""

    def __init__(self, path: Path, said: str) -> None:
        self.fact = f"{path}: is broken: {said}"
        super().__init__(f"{self.fact}; {remedy_of(path)}")


def remedy_of(path: Path) -> str:
    """What becomes of a broken ledger, and what can be done about it."""
    return (
        f"the next `sharectl cycle` that meets this moves it to {path}.broken-DATE and begins a new one; docs/ledger.md "
        "tells how to get out of it what can be read"
    )


def open_to_write(path: Path, busy_seconds: float = BUSY_SECONDS) -> sqlite3.Connection:
    """Connection to a ledger with all its tables, which is made if it is not there. Raises StateError."""
    with errors_of(path):
        _make(path)
        connection = _connect(path, "rw", busy_seconds)
        try:
            if version_of(connection, path) == 0:
                # Before the first table, or it has no effect.
                connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
                connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("PRAGMA journal_mode = WAL")
            # With WAL a power cut loses the last cycles at worst, never the file.
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA journal_size_limit = 16777216")
            migrate(connection, path)
        except BaseException:
            connection.close()
            _sweep(path)
            raise
        return connection


def open_to_read(
    path: Path, busy_seconds: float = BUSY_SECONDS, *, at_once: bool = False, oldest: int = VERSION
) -> sqlite3.Connection:
    """Connection that can change nothing. Raises StateError, also if there is no ledger yet.

    Parameters
    ----------
    at_once
        Whether it is closed again in a moment: then, while nobody writes, not even an index of the log is made, which a
        full disk has no room for.
    oldest
        As for `sharectl.adapters.ledger_schema.readable`.
    """
    with errors_of(path):
        try:
            _refuse_what_is_no_file(path)
        except FileNotFoundError:
            raise NoLedgerError(f"{path}: there is no ledger yet: `sharectl cycle` begins it") from None
        # Whoever may write tidies up on leaving; one who only reads leaves the files of the write-ahead log behind.
        mode = "rw" if os.access(path, os.W_OK) else "ro"
        if at_once and not path.with_name(f"{path.name}-wal").exists():
            mode = "ro&immutable=1"
        connection = _connect(path, mode, busy_seconds)
        try:
            connection.execute("PRAGMA query_only = ON")
            readable(connection, path, oldest)
        except BaseException:
            connection.close()
            _sweep(path)
            raise
        return connection


@contextlib.contextmanager
def errors_of(path: Path) -> Iterator[None]:
    """SQLite's errors as StateError, with what to do."""
    try:
        yield
    except (sqlite3.Error, OverflowError, OSError, UnicodeError) as error:
        said = getattr(error, "strerror", None) or str(error)
        if any(part in said for part in _CORRUPT):
            raise CorruptError(path, said) from error
        remedy = next((remedy for part, remedy in _REMEDIES.items() if part in said), "see docs/ledger.md")
        raise StateError(f"{path}: cannot be used: {said}; {remedy}") from error


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All that is written in the body, or none of it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        # A full disk has rolled it back already.
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def set_aside(path: Path, now: int) -> Path:
    """New name of a broken ledger, beside the old one; nothing is deleted or overwritten. Raises StateError."""
    aside = files.name_aside(path, now, ("", *_BESIDE))
    with errors_of(path):
        # The write-ahead log first: left alone, it would be played into the new file.
        for end in (*_BESIDE, ""):
            with contextlib.suppress(FileNotFoundError):
                path.with_name(path.name + end).rename(path.with_name(aside.name + end))
    return aside


def _connect(path: Path, mode: str, busy_seconds: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}", uri=True, timeout=busy_seconds, isolation_level=None
    )
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _sweep(path: Path) -> None:
    """Remove the half of an index that a full disk had room for: it would take the last room from what is published.

    One in use has `_INDEX_BYTES` at least, and a log that holds something is never touched.
    """
    log, index = (path.with_name(path.name + end) for end in _BESIDE)
    with contextlib.suppress(OSError):
        if index.stat().st_size < _INDEX_BYTES and (not log.exists() or log.stat().st_size == 0):
            index.unlink()
            log.unlink(missing_ok=True)


def _make(path: Path) -> None:
    """Make the folders and an empty file, if they are not there, for the owner of the folder that they are in."""
    files.make_state_folder(path.parent.parent)
    files.make_folder(path.parent)
    try:
        _refuse_what_is_no_file(path)
    except FileNotFoundError:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, _MODE)
        try:
            files.own_as_folder(descriptor, path.parent)
            os.fchmod(descriptor, _MODE)
        finally:
            os.close(descriptor)


def _refuse_what_is_no_file(path: Path) -> None:
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise StateError(f"{path}: is no regular file: left alone; move it away")

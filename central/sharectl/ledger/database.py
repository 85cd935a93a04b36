"""The ledger's SQLite file: its tables and documents, and its errors with their remedies."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import stat
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote

from sharectl.errors import NoLedgerError, StateError
from sharectl.files import files

BUSY_SECONDS = 5.0
APPLICATION_ID = 0x73686C67
"""``shlg``: by this number `file` and sharectl recognize a ledger."""
VERSION = 1
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError)
"""Errors of content that no cycle wrote."""

_TABLES = """
CREATE TABLE cycles (
    number INTEGER PRIMARY KEY AUTOINCREMENT, taken_at INTEGER NOT NULL, seconds REAL,
    complete INTEGER NOT NULL, covered_seconds INTEGER NOT NULL, present_hs06 REAL,
    shortfall_hs06 REAL, idle_cores INTEGER, idle_target_cores INTEGER, idle_grace_cores INTEGER,
    targets INTEGER, record BLOB NOT NULL
);
CREATE INDEX cycles_by_time ON cycles (taken_at);
CREATE TABLE nodes (
    cycle INTEGER PRIMARY KEY, taken_at INTEGER NOT NULL, detail BLOB NOT NULL,
    basis BLOB NOT NULL
);
CREATE INDEX nodes_by_time ON nodes (taken_at);
CREATE TRIGGER nodes_go AFTER DELETE ON cycles
BEGIN DELETE FROM nodes WHERE cycle = OLD.number; END;
CREATE TABLE sums (start INTEGER PRIMARY KEY, groups BLOB NOT NULL);
CREATE TABLE remaining_times (
    day INTEGER NOT NULL, name TEXT NOT NULL, bin INTEGER NOT NULL,
    at_risk_seconds REAL NOT NULL, ends REAL NOT NULL,
    PRIMARY KEY (day, name, bin)
) WITHOUT ROWID;
CREATE TABLE last_jobs (
    row INTEGER PRIMARY KEY CHECK (row = 1), taken_at INTEGER NOT NULL, jobs BLOB NOT NULL
);
"""

_STATEMENTS = [text.strip() for text in _TABLES.split(";\n") if text.strip()]
_MODE = 0o640
BESIDE = ("-wal", "-shm")
"""Ends of the names of SQLite's files beside the ledger."""
_INDEX_BYTES = 32768  # of one in use, at least
_CORRUPT = ("malformed", "not a database")
_RIGHTS = "give this user the right to write there"
_REMEDIES = {  # part of SQLite's message -> remedy
    "locked": "another process has been writing to it for long: look for it",
    "full": "make room",
    "No space": "make room",
    "Permission denied": "run this as the user of `sharectl cycle`, or give this user the right "
    "to its folder and to it",
    "readonly": _RIGHTS,
    "unable to open": f"make the folder, or {_RIGHTS}, and to the files beside it (-wal, -shm)",
    "disk I/O": "make room, or look for what is wrong with the disk",
}


class CorruptError(StateError):
    """A file that SQLite finds broken. The message begins with ``fact``."""

    def __init__(self, path: Path, message: str) -> None:
        self.fact = f"{path}: is broken: {message}"
        super().__init__(f"{self.fact}; {remedy_of(path)}")


def remedy_of(path: Path) -> str:
    """Future of a broken ledger, and the remedy."""
    return (
        f"the next `sharectl cycle` that meets this moves it to {path}.broken-DATE and begins a "
        "new one"
    )


@contextlib.contextmanager
def writing(path: Path, busy_seconds: float = BUSY_SECONDS) -> Iterator[sqlite3.Connection]:
    """Connection to a ledger, which is made if it is absent. Raises StateError."""
    with errors_of(path):
        _make(path)
        with _connected(path, "rw", busy_seconds) as connection:
            begun = _is_begun(connection, path)
            connection.execute("PRAGMA journal_mode = WAL")
            # With WAL a power cut loses the last cycles at worst, never the file.
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA journal_size_limit = 16777216")
            if not begun:
                _make_tables(connection, path)
            yield connection


@contextlib.contextmanager
def reading(
    path: Path, busy_seconds: float = BUSY_SECONDS, *, at_once: bool = False
) -> Iterator[sqlite3.Connection]:
    """Connection in one transaction, which changes nothing.

    Raises StateError, also if the body cannot read what is in it; NoLedgerError without a ledger.
    ``at_once`` is for a body that ends in a moment: while nobody writes, SQLite then makes no index
    of the write-ahead log either, for which a full disk has no room.
    """
    with errors_of(path):
        none = NoLedgerError(f"{path}: there is no ledger yet: `sharectl cycle` begins it")
        try:
            _refuse_irregular(path)
            if path.stat().st_size == 0:
                raise none
        except FileNotFoundError:
            raise none from None
        # A connection that may write removes the files of the write-ahead log when it closes.
        mode = "rw" if os.access(path, os.W_OK) else "ro"
        if at_once and not path.with_name(f"{path.name}-wal").exists():
            mode = "ro&immutable=1"
        with _connected(path, mode, busy_seconds) as connection:
            connection.execute("PRAGMA query_only = ON")
            if not _is_begun(connection, path):
                raise none
            # A reader sees all of a cycle that is written meanwhile, or nothing.
            connection.execute("BEGIN")
            try:
                yield connection
            except UNREADABLE as error:
                raise StateError(
                    f"{path}: what is in it cannot be read: {error}; see `sharectl ledger check`"
                ) from error


@contextlib.contextmanager
def errors_of(path: Path) -> Iterator[None]:
    """SQLite's errors as StateError, with their remedies."""
    try:
        yield
    except (sqlite3.Error, OverflowError, OSError, UnicodeError) as error:
        message = getattr(error, "strerror", None) or str(error)
        if any(part in message for part in _CORRUPT):
            raise CorruptError(path, message) from error
        remedies = (remedy for part, remedy in _REMEDIES.items() if part in message)
        remedy = next(remedies, "see `sharectl ledger check`")
        raise StateError(f"{path}: cannot be used: {message}; {remedy}") from error


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All changes of the body, or none of them."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        # A full disk has rolled it back already.
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def packed(content: object) -> bytes:
    """Document of plain data, records and tuples. Raises ValueError for a number such as NaN."""
    return zlib.compress(_json(content))


def packed_rows(rows: Iterable[object]) -> bytes:
    """Document of a list, as of `packed`; no more than a row of it is in memory at a time."""
    press, parts, mark = zlib.compressobj(), list[bytes](), b"["
    for row in rows:
        parts.append(press.compress(mark + _json(row)))
        mark = b","
    return b"".join([*parts, press.compress(b"]" if parts else b"[]"), press.flush()])


def _json(content: object) -> bytes:
    return json.dumps(content, default=vars, allow_nan=False, separators=(",", ":")).encode("ascii")


def unpacked(document: bytes) -> bytes:
    """JSON of a document. Raises ValueError."""
    try:
        return zlib.decompress(document)
    except zlib.error as error:
        raise ValueError(str(error)) from error


def set_aside(path: Path, now: int) -> Path:
    """Rename a broken ledger, overwriting nothing; returns its new path. Raises StateError."""
    aside = files.name_aside(path, now)
    with errors_of(path):
        # The write-ahead log first: it belongs to the broken file.
        for end in (*BESIDE, ""):
            with contextlib.suppress(FileNotFoundError):
                path.with_name(path.name + end).rename(path.with_name(aside.name + end))
    return aside


@contextlib.contextmanager
def _connected(path: Path, mode: str, busy_seconds: float) -> Iterator[sqlite3.Connection]:
    uri = f"file:{quote(str(path))}?mode={mode}"
    connection = sqlite3.connect(uri, uri=True, timeout=busy_seconds, isolation_level=None)
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.row_factory = sqlite3.Row
        yield connection
    except sqlite3.Error:
        connection.close()
        _sweep(path)
        raise
    finally:
        connection.close()


def _is_begun(connection: sqlite3.Connection, path: Path) -> bool:
    """True if the file has the ledger's tables, false if it has no table.

    Raises StateError if any of them is of a newer sharectl, of another program, or was changed.
    """
    query = """SELECT user_version, application_id, (SELECT count(*) FROM sqlite_master)
        FROM pragma_user_version, pragma_application_id"""
    version, owner, tables = connection.execute(query).fetchone()
    if version > VERSION:
        raise StateError(
            f"{path}: is of schema version {version}, newer than {VERSION} of this sharectl: left "
            "alone; use the newer sharectl, or move the file away to begin a new ledger"
        )
    if tables:
        stored = connection.execute("SELECT sql FROM sqlite_master WHERE name NOT LIKE 'sqlite%'")
        statements = {statement for (statement,) in stored}
        if (owner, version, statements) != (APPLICATION_ID, VERSION, set(_STATEMENTS)):
            raise StateError(
                f"{path}: has tables, views or triggers that sharectl did not make: left alone; "
                "move the file and its -wal away: the next cycle begins a new ledger"
            )
    return bool(tables)


def _make_tables(connection: sqlite3.Connection, path: Path) -> None:
    with transaction(connection):
        # Another process may have made them while this one waited.
        if not _is_begun(connection, path):
            for statement in _STATEMENTS:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")


def _sweep(path: Path) -> None:
    """Remove an index that a full disk cut short, unless a log needs it: publishers need room."""
    log, index = (path.with_name(path.name + end) for end in BESIDE)
    with contextlib.suppress(OSError):
        if index.stat().st_size < _INDEX_BYTES and (not log.exists() or log.stat().st_size == 0):
            index.unlink()
            log.unlink(missing_ok=True)


def _make(path: Path) -> None:
    """Make the folders and an empty file where they are absent, with the owner of their folder."""
    files.make_state_folder(path.parent.parent)
    files.make_folder(path.parent)
    try:
        _refuse_irregular(path)
    except FileNotFoundError:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, _MODE)
        try:
            files.own_as_folder(descriptor, path.parent)
            os.fchmod(descriptor, _MODE)
        finally:
            os.close(descriptor)


def _refuse_irregular(path: Path) -> None:
    """Raise FileNotFoundError without a file, StateError for a FIFO, on which SQLite would wait."""
    for end in ("-journal", *BESIDE, ""):
        file = path.with_name(path.name + end)
        with contextlib.suppress(*[FileNotFoundError] if end else []):
            if not stat.S_ISREG(os.lstat(file).st_mode):
                raise StateError(f"{file}: is no regular file: left alone; move it away")

"""Tables of the ledger, and the steps from each version of them to the next.

The ledger's file: how it is opened, what its errors mean, and what becomes of one that is broken.

Lists of the ledger by which names and what seldom changes are written once, and numbers in their
place.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Optional
from urllib.parse import quote

from sharectl.errors import NoLedgerError, StateError
from sharectl.files import files

APPLICATION_ID = 0x73686C67
"""``shlg``: what `file` and `check` know the ledger by."""

_FIRST = """
CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE nodes (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE shapes (
    id INTEGER PRIMARY KEY, cores INTEGER NOT NULL, hs06_per_core REAL NOT NULL, memory_mib INTEGER NOT NULL,
    controlled INTEGER NOT NULL, reserved INTEGER NOT NULL, draining INTEGER NOT NULL,
    UNIQUE (cores, hs06_per_core, memory_mib, controlled, reserved, draining)
);
CREATE TABLE job_kinds (
    id INTEGER PRIMARY KEY, group_id INTEGER NOT NULL, cores INTEGER NOT NULL, UNIQUE (group_id, cores)
);
CREATE TABLE cycles (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    taken_at INTEGER NOT NULL, seconds REAL, complete INTEGER NOT NULL, imported INTEGER NOT NULL DEFAULT 0,
    covered_seconds INTEGER NOT NULL DEFAULT 0,
    sequence INTEGER, strategy TEXT, setpoint TEXT, reason TEXT, configuration TEXT,
    idle_cores INTEGER, targets INTEGER, detail BLOB NOT NULL
);
CREATE INDEX cycles_by_time ON cycles (taken_at);
CREATE TABLE group_cycles (
    cycle INTEGER NOT NULL, group_id INTEGER NOT NULL,
    pledge_hs06 REAL NOT NULL, error_cores REAL NOT NULL, error_hs06 REAL NOT NULL,
    power_minus_pledge_hs06 REAL NOT NULL, power_hs06 REAL NOT NULL,
    single_cores INTEGER NOT NULL, multi_cores INTEGER NOT NULL,
    pending_single_jobs INTEGER NOT NULL, pending_multi_jobs INTEGER NOT NULL,
    setpoint_hs06 REAL NOT NULL, control_error_hs06 REAL NOT NULL, output_hs06 REAL, place INTEGER NOT NULL,
    PRIMARY KEY (cycle, group_id)
) WITHOUT ROWID;
CREATE TABLE group_sizes (
    cycle INTEGER NOT NULL, group_id INTEGER NOT NULL, cores INTEGER NOT NULL,
    held_cores INTEGER NOT NULL, pending_jobs INTEGER,
    PRIMARY KEY (cycle, group_id, cores)
) WITHOUT ROWID;
CREATE TABLE node_blocks (
    id INTEGER PRIMARY KEY, base INTEGER NOT NULL, chain INTEGER NOT NULL, depth INTEGER NOT NULL, block BLOB NOT NULL
);
CREATE TABLE pool_rollups (
    level INTEGER NOT NULL, start INTEGER NOT NULL,
    cycles INTEGER, complete_cycles INTEGER, covered_seconds INTEGER,
    idle_cores INTEGER, idle_cycles INTEGER, targets INTEGER, target_cycles INTEGER, seconds REAL, timed_cycles INTEGER,
    PRIMARY KEY (level, start)
) WITHOUT ROWID;
CREATE TABLE group_rollups (
    level INTEGER NOT NULL, start INTEGER NOT NULL, group_id INTEGER NOT NULL,
    cycles INTEGER, pledge_hs06 REAL, power_hs06 REAL, setpoint_hs06 REAL, control_error_hs06 REAL,
    control_error_squares REAL, output_hs06 REAL, output_cycles INTEGER, work_hs06_seconds REAL, pledge_hs06_seconds REAL,
    PRIMARY KEY (level, start, group_id)
) WITHOUT ROWID;
CREATE TABLE size_rollups (
    level INTEGER NOT NULL, start INTEGER NOT NULL, group_id INTEGER NOT NULL, cores INTEGER NOT NULL,
    held_cores INTEGER, pending_jobs INTEGER,
    PRIMARY KEY (level, start, group_id, cores)
) WITHOUT ROWID;
CREATE TABLE remaining_times (
    day INTEGER NOT NULL, group_id INTEGER NOT NULL, bin INTEGER NOT NULL,
    at_risk_seconds REAL NOT NULL, ends REAL NOT NULL,
    PRIMARY KEY (day, group_id, bin)
) WITHOUT ROWID;
CREATE TABLE last_jobs (one INTEGER PRIMARY KEY CHECK (one = 1), taken_at INTEGER NOT NULL, block BLOB NOT NULL);
"""

_TARGETS_OF_GROUPS = """
ALTER TABLE group_cycles ADD COLUMN held_back_nodes INTEGER;
ALTER TABLE group_cycles ADD COLUMN helped_nodes INTEGER;
ALTER TABLE group_rollups ADD COLUMN held_back_nodes INTEGER;
ALTER TABLE group_rollups ADD COLUMN helped_nodes INTEGER;
ALTER TABLE group_rollups ADD COLUMN target_cycles INTEGER DEFAULT 0;
"""
"""Of older cycles it stays NULL, not known: no row is written anew, so that it takes no time however large the file is."""

_CAUSES_OF_IDLE_CORES = """
ALTER TABLE cycles ADD COLUMN idle_target_cores INTEGER;
ALTER TABLE cycles ADD COLUMN idle_grace_cores INTEGER;
ALTER TABLE pool_rollups ADD COLUMN idle_target_cores INTEGER;
ALTER TABLE pool_rollups ADD COLUMN idle_grace_cores INTEGER;
ALTER TABLE pool_rollups ADD COLUMN caused_cycles INTEGER DEFAULT 0;
"""

_MULTICORE_ONLY_NODES = """
CREATE TABLE shapes_with_all (
    id INTEGER PRIMARY KEY, cores INTEGER NOT NULL, hs06_per_core REAL NOT NULL, memory_mib INTEGER NOT NULL,
    controlled INTEGER NOT NULL, reserved INTEGER NOT NULL, draining INTEGER NOT NULL, multicore_only INTEGER NOT NULL,
    UNIQUE (cores, hs06_per_core, memory_mib, controlled, reserved, draining, multicore_only)
);
INSERT INTO shapes_with_all SELECT id, cores, hs06_per_core, memory_mib, controlled, reserved, draining, 0 FROM shapes;
DROP TABLE shapes;
ALTER TABLE shapes_with_all RENAME TO shapes;
"""
"""There are few shapes: nodes that are alike share one."""

_UNPLACEABLE_JOBS = """
ALTER TABLE group_cycles ADD COLUMN unplaceable_jobs INTEGER;
ALTER TABLE group_rollups ADD COLUMN unplaceable_jobs INTEGER;
ALTER TABLE group_rollups ADD COLUMN unplaceable_cycles INTEGER DEFAULT 0;
"""

MIGRATIONS: tuple[str, ...] = (
    _FIRST,
    _TARGETS_OF_GROUPS,
    _CAUSES_OF_IDLE_CORES,
    _MULTICORE_ONLY_NODES + _UNPLACEABLE_JOBS,
)
"""Step number n leads from version n to n + 1; version 0 is an empty file."""

VERSION = len(MIGRATIONS)


def migrate(
    connection: sqlite3.Connection, path: Path, steps: tuple[str, ...] = MIGRATIONS
) -> None:
    """Bring the tables up to date, all of it or nothing.

    Raises
    ------
    StateError
        If they are newer than this version of sharectl, or somebody else's.
    """
    if version_of(connection, path, len(steps)) == len(steps):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have done it while this one waited.
        for step in steps[version_of(connection, path, len(steps)) :]:
            for statement in filter(None, map(str.strip, step.split(";"))):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(steps)}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def version_of(connection: sqlite3.Connection, path: Path, known: int = VERSION) -> int:
    """Version of the tables; 0 if there are none yet. Raises as `migrate`."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    owner = int(connection.execute("PRAGMA application_id").fetchone()[0])
    if version > known:
        raise StateError(
            f"{path}: is of schema version {version}, newer than {known} of this sharectl: left "
            "alone; use the newer sharectl, "
            "or move the file away to begin a new ledger"
        )
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables and owner != APPLICATION_ID:
        raise StateError(f"{path}: is an SQLite file of something else: left alone; move it away")
    return version


def readable(connection: sqlite3.Connection, path: Path, oldest: int = VERSION) -> None:
    """Check that the tables are those of `VERSION`, where nothing may be changed.

    Parameters
    ----------
    oldest
        First version that has all that is to be read as it is now.

    Raises
    ------
    StateError
        If they are not.
    """
    version = version_of(connection, path)
    if version == 0:
        raise StateError(f"{path}: nothing is in it yet: `sharectl cycle` begins it")
    if version < oldest:
        raise StateError(
            f"{path}: is of schema version {version}; the next `sharectl cycle` brings it to "
            f"{VERSION}"
        )


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
    """What is at ``path`` is no sound SQLite file.

    It begins with `fact`, and says what becomes of it.
    """

    def __init__(self, path: Path, said: str) -> None:
        self.fact = f"{path}: is broken: {said}"
        super().__init__(f"{self.fact}; {remedy_of(path)}")


def remedy_of(path: Path) -> str:
    """What becomes of a broken ledger, and what can be done about it."""
    return (
        f"the next `sharectl cycle` that meets this moves it to {path}.broken-DATE and begins a "
        "new one; docs/ledger.md "
        "tells how to get out of it what can be read"
    )


def open_to_write(path: Path, busy_seconds: float = BUSY_SECONDS) -> sqlite3.Connection:
    """Connection to a ledger with all its tables, which is made if it is not there.

    Raises StateError.
    """
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
        Whether it is closed again in a moment: then, while nobody writes, not even an index of the
        log is made, which a full disk has no room for.
    oldest
        As for `sharectl.ledger.database.readable`.
    """
    with errors_of(path):
        try:
            _refuse_what_is_no_file(path)
        except FileNotFoundError:
            raise NoLedgerError(
                f"{path}: there is no ledger yet: `sharectl cycle` begins it"
            ) from None
        # Whoever may write tidies up on leaving; one who only reads leaves the files of the
        # write-ahead log behind.
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
        remedy = next(
            (remedy for part, remedy in _REMEDIES.items() if part in said), "see docs/ledger.md"
        )
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
    """New name of a broken ledger, beside the old one; nothing is deleted or overwritten.

    Raises StateError.
    """
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


class Numbered:
    """One of these lists: number of a row, and row of a number; rows that are not there are added."""

    def __init__(self, connection: sqlite3.Connection, table: str, *columns: str) -> None:
        self._connection = connection
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._rows: dict[int, tuple[Any, ...]] = {}
        names, places = ", ".join(columns), ", ".join("?" * len(columns))
        same = " AND ".join(f"{column} = ?" for column in columns)
        # Names of tables and columns are of this package.
        self._find = f"SELECT id FROM {table} WHERE {same}"  # noqa: S608
        self._add = f"INSERT INTO {table} ({names}) VALUES ({places})"  # noqa: S608
        self._get = f"SELECT {names} FROM {table} WHERE id = ?"  # noqa: S608

    def number(self, *row: Any) -> int:
        """Number of a row, which is added if it is new."""
        number = self._numbers.get(row)
        if number is None:
            number = self.known(*row)
            if number is None:
                number = int(self._connection.execute(self._add, row).lastrowid or 0)
            self._numbers[row] = number
        return number

    def known(self, *row: Any) -> Optional[int]:
        """Number of a row; None if it is not there."""
        found = self._connection.execute(self._find, row).fetchone()
        return int(found[0]) if found else None

    def row(self, number: int) -> tuple[Any, ...]:
        """Row of a number.

        Raises
        ------
        ValueError
            If there is none.
        """
        row = self._rows.get(number)
        if row is None:
            row = self._connection.execute(self._get, (number,)).fetchone()
            if row is None:
                raise ValueError(f"no row {number}: {self._get}")
            self._rows[number] = row
        return row


class Lists:
    """All of them, through one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.names = Numbered(connection, "names", "name")
        """Groups and codes."""
        self.nodes = Numbered(connection, "nodes", "name")
        self.shapes = Numbered(
            connection,
            "shapes",
            "cores",
            "hs06_per_core",
            "memory_mib",
            "controlled",
            "reserved",
            "draining",
            "multicore_only",
        )
        self.kinds = Numbered(connection, "job_kinds", "group_id", "cores")

    def name(self, number: int) -> str:
        """Name of a number. Raises ValueError."""
        return str(self.names.row(number)[0])

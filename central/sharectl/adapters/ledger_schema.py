"""Tables of the ledger, and the steps from each version of them to the next."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sharectl.errors import StateError

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


def migrate(connection: sqlite3.Connection, path: Path, steps: tuple[str, ...] = MIGRATIONS) -> None:
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
            f"{path}: is of schema version {version}, newer than {known} of this sharectl: left alone; use the newer sharectl, "
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
            f"{path}: is of schema version {version}; the next `sharectl cycle` brings it to {VERSION}"
        )

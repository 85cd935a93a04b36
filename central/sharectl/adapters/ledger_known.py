"""How long jobs still run, learnt from cycle to cycle: life tables by group and day, and the jobs of the last look."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Optional

from sharectl.adapters.ledger_names import Lists
from sharectl.core.ledger_series import DAY_SECONDS
from sharectl.core.model import Node, RunningJobs, Snapshot
from sharectl.core.plan import Known
from sharectl.core.remaining_times import RemainingTimes, Row, observed

HALF_LIFE_DAYS = 14
WINDOW_DAYS = 90
"""Days that count: the last one by 1, one of two weeks before by a half; what is older than this, not at all."""

SINCE_VERSION = 1
"""Of the schema: since then the tables that `known` reads are as they are."""

_MOST_BYTES = 2**28


def known(connection: sqlite3.Connection, lists: Lists, groups: Iterable[str]) -> Known:
    """What the ledger has learnt of these groups until the last look. Raises ValueError."""
    row = connection.execute("SELECT taken_at FROM last_jobs").fetchone()
    if row is None:
        return Known()
    newest = row[0] // DAY_SECONDS
    wanted = frozenset(groups)
    rows: defaultdict[str, list[Row]] = defaultdict(list)
    for day, group, start, at_risk, ends in connection.execute(
        "SELECT day, group_id, bin, at_risk_seconds, ends FROM remaining_times WHERE day > ? AND day <= ?",
        (newest - WINDOW_DAYS, newest),
    ):
        name = lists.name(group)
        if name in wanted:
            weight = 0.5 ** ((newest - day) / HALF_LIFE_DAYS)
            rows[name].append((start, at_risk * weight, ends * weight))
    return Known({name: RemainingTimes.from_rows(found) for name, found in rows.items()})


def learn(connection: sqlite3.Connection, lists: Lists, current: Snapshot) -> None:
    """Add what ``current`` tells of the jobs of the look before it, and keep its own for the next."""
    previous = _last(connection)
    day = current.taken_at // DAY_SECONDS
    for group, table in (observed(previous, current) if previous else {}).items():
        number = lists.names.number(group)
        connection.executemany(
            "INSERT INTO remaining_times VALUES (?, ?, ?, ?, ?) ON CONFLICT (day, group_id, bin) DO UPDATE SET "
            "at_risk_seconds = at_risk_seconds + excluded.at_risk_seconds, ends = ends + excluded.ends",
            ((day, number, *row) for row in table.as_rows()),
        )
    connection.execute(
        "INSERT OR REPLACE INTO last_jobs VALUES (1, ?, ?)", (current.taken_at, _packed(current))
    )


def _packed(taken: Snapshot) -> bytes:
    """Jobs by node, group and cores, and when they started; jobs that started in one second are one entry."""
    jobs: Counter[tuple[str, str, int, int]] = Counter()
    for held in taken.running:
        jobs[held.node, held.group, held.cores, held.seconds] += held.jobs
    nested: defaultdict[str, list[list[object]]] = defaultdict(list)
    for (node, group, cores, seconds), count in jobs.items():
        nested[node].append([group, cores, seconds, count])
    return zlib.compress(json.dumps(nested, separators=(",", ":")).encode("ascii"), 1)


def _last(connection: sqlite3.Connection) -> Optional[Snapshot]:
    row = connection.execute("SELECT taken_at, block FROM last_jobs").fetchone()
    if row is None:
        return None
    try:
        nested = json.loads(zlib.decompressobj().decompress(row[1], _MOST_BYTES))
        running = tuple(
            RunningJobs(node, group, cores, 1.0, seconds, jobs)
            for node, entries in nested.items()
            for group, cores, seconds, jobs in entries
        )
    except (zlib.error, ValueError, TypeError, AttributeError):
        # It is only what makes the next look tell more: without it that one begins anew.
        return None
    nodes = tuple(Node(node, node, 0, 1.0, controlled=False) for node in nested)
    return Snapshot(row[0], nodes, running, ())

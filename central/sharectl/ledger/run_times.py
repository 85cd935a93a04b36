"""Run times of jobs, learnt from cycle to cycle: life tables by group and day."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Optional

from sharectl.ledger.database import packed, unpacked
from sharectl.ledger.retention import WINDOW_DAYS
from sharectl.model import Node, RunningJobs, Snapshot
from sharectl.plan.waits import RemainingTimes, Row, RunTimes, observed
from sharectl.times import DAY_SECONDS

HALF_LIFE_DAYS = 14
"""The newest day has weight 1, a day two weeks before it a half."""


def learnt(connection: sqlite3.Connection, groups: Iterable[str]) -> RunTimes:
    """Run times of these groups, as learnt up to the last complete cycle."""
    last = connection.execute("SELECT taken_at FROM last_jobs").fetchone()
    if last is None:
        return {}
    newest, wanted = last[0] // DAY_SECONDS, frozenset(groups)
    tables: defaultdict[str, list[Row]] = defaultdict(list)
    for day, name, start, at_risk, ends in connection.execute(
        "SELECT * FROM remaining_times WHERE day > ? AND day <= ?", (newest - WINDOW_DAYS, newest)
    ):
        if name in wanted:
            weight = 0.5 ** ((newest - day) / HALF_LIFE_DAYS)
            tables[name].append((start, at_risk * weight, ends * weight))
    return {name: RemainingTimes.from_rows(rows) for name, rows in tables.items()}


def learn(connection: sqlite3.Connection, current: Snapshot) -> None:
    """Add the ends of jobs since the last look; keep the jobs of ``current`` for the next one."""
    previous = _last(connection)
    day = current.taken_at // DAY_SECONDS
    for name, table in (observed(previous, current) if previous else {}).items():
        connection.executemany(
            "INSERT INTO remaining_times VALUES (?, ?, ?, ?, ?) ON CONFLICT (day, name, bin) "
            "DO UPDATE SET at_risk_seconds = at_risk_seconds + excluded.at_risk_seconds, "
            "ends = ends + excluded.ends",
            ((day, name, *row) for row in table.as_rows()),
        )
    connection.execute(
        "INSERT OR REPLACE INTO last_jobs VALUES (1, ?, ?)",
        (current.taken_at, packed(_kinds(current))),
    )


def _kinds(snapshot: Snapshot) -> list[tuple[object, ...]]:
    """Jobs of a snapshot; those alike in node, group, cores and start are one row."""
    jobs: Counter[tuple[str, str, int, int]] = Counter()
    for held in snapshot.running:
        jobs[held.node, held.group, held.cores, held.seconds] += held.jobs
    return [(*kind, count) for kind, count in jobs.items()]


def _last(connection: sqlite3.Connection) -> Optional[Snapshot]:
    row = connection.execute("SELECT taken_at, jobs FROM last_jobs").fetchone()
    if row is None:
        return None
    try:
        running = tuple(
            RunningJobs(node, group, cores, 1.0, seconds, jobs)
            for node, group, cores, seconds, jobs in json.loads(unpacked(row[1]))
        )
    except (ValueError, TypeError):
        # Without it the next look learns nothing, and the one after it does again.
        return None
    nodes = {jobs.node: Node(jobs.node, jobs.node, 0, 1.0, controlled=False) for jobs in running}
    return Snapshot(row[0], tuple(nodes.values()), running, ())

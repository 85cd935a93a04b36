"""Rows of cycles, and run times of jobs, learnt from them: life tables by group and day."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Optional

from sharectl.files.documents import record_of
from sharectl.ledger.database import packed, packed_rows, unpacked
from sharectl.ledger.retention import HALF_LIFE_DAYS, WINDOW_DAYS
from sharectl.model import Node, RunningJobs, Snapshot
from sharectl.plan.records import Basis, CycleRecord, NodeRecord, rounded
from sharectl.plan.waits import BinRow, RemainingTimes, RunTimes, observed
from sharectl.times import DAY_SECONDS

_MOST_SECONDS = 1e12


def write(connection: sqlite3.Connection, record: CycleRecord) -> int:
    """Record a cycle; returns its number."""
    values = {
        **vars(record),
        "idle_cores": record.idle_cores if record.complete else None,
        "targets": record.steered_nodes if record.complete else None,
        "record": packed(replace(record, nodes=(), basis=None)),
    }
    query = (
        "INSERT INTO cycles VALUES (NULL, :taken_at, :seconds, :complete, 0, :present_hs06, "
        ":shortfall_hs06, :idle_cores, :idle_target_cores, :idle_grace_cores, :targets, :record)"
    )
    number = connection.execute(query, values).lastrowid or 0
    if record.nodes or record.basis is not None:
        nodes, basis = packed_rows(map(_kept, record.nodes)), packed(record.basis)
        query = "INSERT INTO nodes VALUES (?, ?, ?, ?)"
        connection.execute(query, (number, record.taken_at, nodes, basis))
    return number


def read(
    connection: sqlite3.Connection, where: str, values: Iterable[object], *, with_nodes: bool
) -> Iterator[CycleRecord]:
    """Cycles that a condition on `cycles` selects. Raises ValueError, LookupError or TypeError."""
    query = f"SELECT number, record FROM cycles {where}"
    for number, document in connection.execute(query, tuple(values)):
        record = replace(record_of(CycleRecord, unpacked(document)), number=number)
        yield _with_nodes(connection, record) if with_nodes else record


def _with_nodes(connection: sqlite3.Connection, record: CycleRecord) -> CycleRecord:
    """Record with its nodes and the basis of its decision; without both once they are removed."""
    query = "SELECT detail, basis FROM nodes WHERE cycle = ?"
    row = connection.execute(query, (record.number,)).fetchone()
    if row is None:
        return record
    nodes, basis = (unpacked(document) for document in row)
    return replace(
        record,
        nodes=record_of(tuple[NodeRecord, ...], nodes),
        basis=None if basis == b"null" else record_of(Basis, basis),
    )


def _kept(node: NodeRecord) -> NodeRecord:
    times = (node.wait_seconds, node.idle_core_seconds)
    wait, idle = (float(rounded(min(time, _MOST_SECONDS))) for time in times)
    return replace(node, wait_seconds=wait, idle_core_seconds=idle)


# ---- run times


def learnt(connection: sqlite3.Connection, groups: Iterable[str]) -> RunTimes:
    """Run times of these groups, as learnt up to the last complete cycle."""
    last = connection.execute("SELECT taken_at FROM last_jobs").fetchone()
    if last is None:
        return {}
    newest, wanted = last[0] // DAY_SECONDS, frozenset(groups)
    tables: defaultdict[str, list[BinRow]] = defaultdict(list)
    for day, name, start, at_risk, ends in connection.execute(
        "SELECT * FROM remaining_times WHERE day > ? AND day <= ?", (newest - WINDOW_DAYS, newest)
    ):
        if name in wanted:
            weight = 0.5 ** ((newest - day) / HALF_LIFE_DAYS)
            tables[name].append((start, at_risk * weight, ends * weight))
    return {name: _as_recorded(RemainingTimes.from_rows(rows)) for name, rows in tables.items()}


def _as_recorded(times: RemainingTimes) -> RemainingTimes:
    """Times with the digits that a record keeps: `explain` decides on the same ones."""
    return RemainingTimes.from_rows(
        (start, float(f"{at_risk:.5g}"), float(f"{ends:.5g}"))
        for start, at_risk, ends in times.as_rows()
    )


def learn(connection: sqlite3.Connection, current: Snapshot) -> None:
    """Add the ends of jobs since the last look; keep the jobs of ``current`` for the next one."""
    day, previous = current.taken_at // DAY_SECONDS, _last(connection)
    tables = observed(previous, current) if previous else {}
    del previous  # it takes tens of MiB
    for name, table in tables.items():
        connection.executemany(
            "INSERT INTO remaining_times VALUES (?, ?, ?, ?, ?) ON CONFLICT (day, name, bin) "
            "DO UPDATE SET at_risk_seconds = at_risk_seconds + excluded.at_risk_seconds, "
            "ends = ends + excluded.ends",
            ((day, name, *row) for row in table.as_rows()),
        )
    connection.execute(
        "INSERT OR REPLACE INTO last_jobs VALUES (1, ?, ?)",
        (current.taken_at, packed_rows(_kinds(current))),
    )


def _kinds(snapshot: Snapshot) -> list[Sequence[object]]:
    """Names, then five columns of jobs, two with places of names: rows take thrice the memory."""
    jobs: Counter[tuple[str, str, int, int]] = Counter()
    for running in snapshot.running:
        jobs[running.node, running.group, running.cores, running.seconds] += running.jobs
    names = list(dict.fromkeys(name for kind in jobs for name in kind[:2]))
    place = {name: number for number, name in enumerate(names)}
    rows = (
        (place[node], place[group], cores, seconds, count)
        for (node, group, cores, seconds), count in jobs.items()
    )
    return [names, *zip(*rows)]


def _last(connection: sqlite3.Connection) -> Optional[Snapshot]:
    row = connection.execute("SELECT taken_at, jobs FROM last_jobs").fetchone()
    if row is None:
        return None
    try:
        names, *columns = json.loads(unpacked(row[1]))
        running = tuple(
            RunningJobs(names[node], names[group], cores, 1.0, seconds, jobs)
            for node, group, cores, seconds, jobs in zip(*columns)
        )
    except (ValueError, TypeError, LookupError):
        # Without it the next look learns nothing, and the one after it does again.
        return None
    nodes = {jobs.node: Node(jobs.node, jobs.node, 0, 1.0, controlled=False) for jobs in running}
    return Snapshot(row[0], tuple(nodes.values()), running, ())

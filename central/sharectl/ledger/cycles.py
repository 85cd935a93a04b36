"""Cycles and their groups to and from the tables of the ledger.

How long jobs still run, learnt from cycle to cycle: life tables by group and day, and the jobs of
the last look.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, replace
from typing import Any, Optional

from sharectl.ledger.database import Lists
from sharectl.ledger.series import DAY_SECONDS, MOST_COVERED_SECONDS, UNKNOWN_SIZE
from sharectl.model import (
    GroupControl,
    GroupError,
    GroupUsage,
    JobWaits,
    LimitNote,
    Node,
    PendingJobs,
    RunningJobs,
    Snapshot,
    Source,
    WaitTimes,
)
from sharectl.plan.plan import Known
from sharectl.plan.records import CycleRecord, GroupReason, TargetNodes
from sharectl.plan.waits import RemainingTimes, Row, observed
from sharectl.publish import state as block_memory
from sharectl.shares.demand import unplaceable_by_cores

_COLUMNS = (
    "number, taken_at, seconds, complete, imported, sequence, strategy, setpoint, reason, "
    "configuration, "
    "idle_cores, idle_target_cores, idle_grace_cores, detail"
)
_MOST_DETAIL_BYTES = 2**26


def write(connection: sqlite3.Connection, lists: Lists, record: CycleRecord) -> int:
    """Number of the cycle, which is kept without its nodes."""
    known = not record.imported
    targets = sum(node.target is not None for node in record.nodes)
    looked = record.complete and known
    cursor = connection.execute(
        "INSERT INTO cycles (taken_at, seconds, complete, imported, covered_seconds, sequence, "
        "strategy, setpoint, "
        "reason, configuration, idle_cores, idle_target_cores, idle_grace_cores, targets, detail) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            record.taken_at,
            record.seconds if known else None,
            int(record.complete),
            int(record.imported),
            covered_seconds(connection, record.taken_at) if record.complete else 0,
            record.sequence,
            record.strategy,
            record.setpoint,
            record.reason,
            record.configuration,
            record.idle_cores if looked else None,
            record.idle_target_cores,
            record.idle_grace_cores,
            targets if looked else None,
            _detail(record),
        ),
    )
    number = int(cursor.lastrowid or 0)
    _write_groups(connection, lists, number, record)
    return number


def rewrite(connection: sqlite3.Connection, lists: Lists, number: int, record: CycleRecord) -> None:
    """Replace the groups of a cycle that was imported."""
    for table in ("group_cycles", "group_sizes"):
        connection.execute(f"DELETE FROM {table} WHERE cycle = ?", (number,))  # noqa: S608 - ours
    connection.execute("UPDATE cycles SET detail = ? WHERE number = ?", (_detail(record), number))
    _write_groups(connection, lists, number, record)


def _write_groups(
    connection: sqlite3.Connection, lists: Lists, number: int, record: CycleRecord
) -> None:
    """Keep the groups of a cycle."""
    held: dict[str, dict[int, int]] = {}
    for (name, cores), many in record.cores_by_size.items():
        held.setdefault(name, {})[cores] = many
    for place, control in enumerate(record.groups):
        group = lists.names.number(control.group)
        error, usage = control.error, control.error.usage
        connection.execute(
            f"INSERT INTO group_cycles VALUES ({', '.join('?' * 18)})",  # noqa: S608 - question marks
            (
                number,
                group,
                error.pledge_hs06,
                error.error_cores,
                error.error_hs06,
                error.power_minus_pledge_hs06,
                usage.power_hs06,
                usage.single_cores,
                usage.multi_cores,
                usage.pending_single_jobs,
                usage.pending_multi_jobs,
                control.setpoint_hs06,
                control.control_error_hs06,
                None if record.imported else control.output_hs06,
                place,
                *record.target_nodes.get(control.group, (None, None)),
                None if record.imported else sum(usage.unplaceable_by_cores.values()),
            ),
        )
        sizes = _sizes(usage, held.get(control.group, {}), imported=record.imported)
        connection.executemany(
            "INSERT INTO group_sizes VALUES (?, ?, ?, ?, ?)",
            ((number, group, *size) for size in sizes),
        )


def covered_seconds(connection: sqlite3.Connection, taken_at: int) -> int:
    """Time that a complete cycle at Unix time ``taken_at`` stands for: since the one before it, and no gap."""
    before = connection.execute(
        "SELECT taken_at FROM cycles WHERE taken_at < ? AND complete ORDER BY taken_at DESC "
        "LIMIT 1",
        (taken_at,),
    ).fetchone()
    return min(taken_at - int(before[0]), MOST_COVERED_SECONDS) if before else 0


def read(
    connection: sqlite3.Connection, lists: Lists, where: str, values: Iterable[int]
) -> Iterator[CycleRecord]:
    """Cycles without their nodes that a condition on `cycles` selects. Raises ValueError."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM cycles {where}", tuple(values))  # noqa: S608 - ours
    for row in rows:
        yield _record(connection, lists, row)


def errors(connection: sqlite3.Connection, lists: Lists, number: int) -> Iterator[GroupError]:
    """Errors of the groups of a cycle, without what waits by size. Raises ValueError."""
    rows = connection.execute(
        "SELECT * FROM group_cycles WHERE cycle = ? ORDER BY place", (number,)
    )
    for row in rows:
        yield _control(lists, row, {}, ("", {}, ())).error


def _sizes(
    usage: GroupUsage, held: Mapping[int, int], *, imported: bool
) -> Iterator[tuple[int, int, Optional[int]]]:
    """Cores of a job, cores held and jobs pending, of each size."""
    if imported:
        if usage.single_cores or usage.pending_single_jobs:
            yield 1, usage.single_cores, usage.pending_single_jobs
        if usage.multi_cores or usage.pending_multi_jobs:
            yield UNKNOWN_SIZE, usage.multi_cores, usage.pending_multi_jobs
        return
    for cores in sorted({*held, *usage.pending_by_cores}):
        yield cores, held.get(cores, 0), usage.pending_by_cores.get(cores)


def _detail(record: CycleRecord) -> bytes:
    content = {
        "sources": [[s.name, round(s.seconds, 3), s.problem] for s in record.sources],
        "limits": [[note.code, note.nodes] for note in record.limits],
        "published": record.published,
        "problems": record.problems,
        "pending": [
            [each.group, each.cores, each.jobs, each.memory_mib, each.placeable]
            for each in record.pending
        ],
        "waits": [[each.group, each.cores, *map(_times, _both(each))] for each in record.waits],
        "group_reasons": record.group_reasons,
        "blocks": block_memory.as_rows(record.blocks),
        "controllers": [
            [control.law, dict(control.state), control.acted] for control in record.groups
        ],
    }
    return zlib.compress(json.dumps(content, separators=(",", ":")).encode("ascii"), 9)


def _both(waits: JobWaits) -> tuple[Optional[WaitTimes], Optional[WaitTimes]]:
    return waits.pending, waits.started


def _times(times: Optional[WaitTimes]) -> Optional[list[Any]]:
    return list(astuple(times)) if times is not None else None


def _waits(rows: Iterable[Any]) -> tuple[JobWaits, ...]:
    return tuple(
        JobWaits(
            group, cores, *(WaitTimes(*times) if times is not None else None for times in both)
        )
        for group, cores, *both in rows
    )


def _opened(detail: bytes) -> dict[str, Any]:
    try:
        text = zlib.decompressobj().decompress(detail, _MOST_DETAIL_BYTES)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    content = json.loads(text)
    if not isinstance(content, dict):
        raise TypeError("the detail of a cycle is no object")
    return content


def _record(connection: sqlite3.Connection, lists: Lists, row: tuple[Any, ...]) -> CycleRecord:
    (
        number,
        taken_at,
        seconds,
        complete,
        imported,
        sequence,
        strategy,
        setpoint,
        reason,
        configuration,
        idle,
        idle_target,
        idle_grace,
        detail,
    ) = row
    content = _opened(detail)
    sizes = _Sizes(connection, lists, number)
    # Rows that have the most memory alone (pending_mib) say nothing of the jobs that need less.
    pending = tuple(PendingJobs(*kind) for kind in content.get("pending", ()))
    groups = _groups(
        connection, lists, number, content["controllers"], {} if imported else sizes.pending
    )
    return CycleRecord(
        taken_at=taken_at,
        seconds=seconds or 0.0,
        complete=bool(complete),
        sources=tuple(Source(*source) for source in content["sources"]),
        groups=tuple(_with_unplaceable(control, pending) for control in groups),
        pending=pending,
        waits=_waits(content.get("waits", ())),
        cores_by_size={} if imported else sizes.held,
        sequence=sequence,
        strategy=strategy,
        setpoint=setpoint,
        reason=reason,
        limits=tuple(LimitNote(*note) for note in content["limits"]),
        published=tuple(content["published"]),
        problems=tuple(content["problems"]),
        configuration=configuration,
        number=number,
        idle_cores=idle or 0,
        idle_target_cores=idle_target,
        idle_grace_cores=idle_grace,
        blocks=block_memory.from_rows(content.get("blocks")),
        target_nodes=_target_nodes(connection, lists, number),
        group_reasons={
            group: GroupReason(*reason)
            for group, reason in content.get("group_reasons", {}).items()
        },
        imported=bool(imported),
    )


def _target_nodes(
    connection: sqlite3.Connection, lists: Lists, number: int
) -> dict[str, TargetNodes]:
    rows = connection.execute(
        "SELECT group_id, held_back_nodes, helped_nodes FROM group_cycles WHERE cycle = ? AND "
        "held_back_nodes IS NOT NULL",
        (number,),
    )
    return {lists.name(group): TargetNodes(*counts) for group, *counts in rows}


def _with_unplaceable(control: GroupControl, pending: Iterable[PendingJobs]) -> GroupControl:
    usage = replace(
        control.error.usage, unplaceable_by_cores=unplaceable_by_cores(pending, control.group)
    )
    return replace(control, error=replace(control.error, usage=usage))


class _Sizes:
    """Cores held and jobs pending of one cycle, by size."""

    def __init__(self, connection: sqlite3.Connection, lists: Lists, number: int) -> None:
        self.held: dict[tuple[str, int], int] = {}
        self.pending: dict[str, dict[int, int]] = {}
        rows = connection.execute(
            "SELECT group_id, cores, held_cores, pending_jobs FROM group_sizes WHERE cycle = ?",
            (number,),
        )
        for group, cores, held, jobs in rows:
            name = lists.name(group)
            if held:
                self.held[name, cores] = held
            if jobs is not None:
                self.pending.setdefault(name, {})[cores] = jobs


def _groups(
    connection: sqlite3.Connection,
    lists: Lists,
    number: int,
    controllers: list[Any],
    pending: Mapping[str, Mapping[int, int]],
) -> Iterator[GroupControl]:
    rows = connection.execute(
        "SELECT * FROM group_cycles WHERE cycle = ? ORDER BY place", (number,)
    )
    for row, (law, state, acted) in zip(rows, controllers):
        yield _control(lists, row, pending, (law, state, tuple(acted)))


def _control(
    lists: Lists,
    row: tuple[Any, ...],
    pending: Mapping[str, Mapping[int, int]],
    controller: tuple[str, Any, tuple[str, ...]],
) -> GroupControl:
    (
        _,
        group,
        pledge,
        error_cores,
        error_hs06,
        over_pledge,
        power,
        single,
        multi,
        waiting_1,
        waiting_n,
        *control,
    ) = row
    setpoint, control_error, output, *_ = control
    law, state, acted = controller
    name = lists.name(group)
    return GroupControl(
        error=GroupError(
            group=name,
            pledge_hs06=pledge,
            error_cores=error_cores,
            error_hs06=error_hs06,
            power_minus_pledge_hs06=over_pledge,
            usage=GroupUsage(
                single, multi, power, waiting_1, waiting_n, dict(pending.get(name, {}))
            ),
        ),
        setpoint_hs06=setpoint,
        control_error_hs06=control_error,
        output_hs06=output or 0.0,
        law=law,
        state=state,
        acted=acted,
    )


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
        "SELECT day, group_id, bin, at_risk_seconds, ends FROM remaining_times WHERE day > ? "
        "AND day <= ?",
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
            "INSERT INTO remaining_times VALUES (?, ?, ?, ?, ?) ON CONFLICT (day, group_id, "
            "bin) DO UPDATE SET "
            "at_risk_seconds = at_risk_seconds + excluded.at_risk_seconds, ends = ends + "
            "excluded.ends",
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

"""Sums by hour, quarter of a day and day, kept beside the cycles so that two years are answered at once.

A roll-up is made anew from what is below it (an hour from its cycles, a day from its quarters)
whenever a cycle of it is added, in the same transaction: it cannot drift from what it sums.

Series of the ledger, added up in SQL.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from math import sqrt
from typing import Any, Optional

from sharectl.ledger.database import Lists
from sharectl.ledger.series import (
    DAY_SECONDS,
    HOUR_SECONDS,
    MOST_COVERED_SECONDS,
    QUARTER_SECONDS,
    Bucket,
    GroupPoint,
    PoolPoint,
    Series,
    layout,
)

POOL_OF_CYCLES = """
SELECT {bucket} AS start, count(*) AS cycles, sum(complete) AS complete_cycles, sum(covered_seconds) AS covered_seconds,
    sum(idle_cores) AS idle_cores, count(idle_cores) AS idle_cycles, sum(targets) AS targets, count(targets) AS target_cycles,
    sum(seconds) AS seconds, count(seconds) AS timed_cycles, sum(idle_target_cores) AS idle_target_cores,
    sum(idle_grace_cores) AS idle_grace_cores, count(idle_target_cores) AS caused_cycles
FROM cycles WHERE taken_at >= :since AND taken_at < :until GROUP BY 1
"""
GROUPS_OF_CYCLES = """
SELECT {bucket} AS start, group_id, count(*) AS cycles, sum(pledge_hs06) AS pledge_hs06, sum(power_hs06) AS power_hs06,
    sum(setpoint_hs06) AS setpoint_hs06, sum(control_error_hs06) AS control_error_hs06,
    sum(control_error_hs06 * control_error_hs06) AS control_error_squares,
    sum(output_hs06) AS output_hs06, count(output_hs06) AS output_cycles,
    sum(power_hs06 * covered_seconds) AS work_hs06_seconds, sum(pledge_hs06 * covered_seconds) AS pledge_hs06_seconds,
    sum(held_back_nodes) AS held_back_nodes, sum(helped_nodes) AS helped_nodes, count(held_back_nodes) AS target_cycles,
    sum(unplaceable_jobs) AS unplaceable_jobs, count(unplaceable_jobs) AS unplaceable_cycles
FROM cycles JOIN group_cycles ON cycle = number WHERE taken_at >= :since AND taken_at < :until GROUP BY 1, 2
"""
SIZES_OF_CYCLES = """
SELECT {bucket} AS start, group_id, cores, sum(held_cores) AS held_cores, sum(pending_jobs) AS pending_jobs
FROM cycles JOIN group_sizes ON cycle = number WHERE taken_at >= :since AND taken_at < :until GROUP BY 1, 2, 3
"""
POOL_OF_ROLLUPS = """
SELECT {bucket} AS start, sum(cycles), sum(complete_cycles), sum(covered_seconds), sum(idle_cores), sum(idle_cycles),
    sum(targets), sum(target_cycles), sum(seconds), sum(timed_cycles), sum(idle_target_cores), sum(idle_grace_cores),
    sum(caused_cycles)
FROM pool_rollups WHERE level = :level AND start >= :since AND start < :until GROUP BY 1
"""
GROUPS_OF_ROLLUPS = """
SELECT {bucket} AS start, group_id, sum(cycles), sum(pledge_hs06), sum(power_hs06), sum(setpoint_hs06),
    sum(control_error_hs06), sum(control_error_squares), sum(output_hs06), sum(output_cycles),
    sum(work_hs06_seconds), sum(pledge_hs06_seconds), sum(held_back_nodes), sum(helped_nodes), sum(target_cycles),
    sum(unplaceable_jobs), sum(unplaceable_cycles)
FROM group_rollups WHERE level = :level AND start >= :since AND start < :until GROUP BY 1, 2
"""
SIZES_OF_ROLLUPS = """
SELECT {bucket} AS start, group_id, cores, sum(held_cores), sum(pending_jobs)
FROM size_rollups WHERE level = :level AND start >= :since AND start < :until GROUP BY 1, 2, 3
"""
TABLES = ("pool_rollups", "group_rollups", "size_rollups")
OF_CYCLES = (POOL_OF_CYCLES, GROUPS_OF_CYCLES, SIZES_OF_CYCLES)
OF_ROLLUPS = (POOL_OF_ROLLUPS, GROUPS_OF_ROLLUPS, SIZES_OF_ROLLUPS)
_LEVELS = (
    (HOUR_SECONDS, OF_CYCLES, 0),
    (QUARTER_SECONDS, OF_ROLLUPS, HOUR_SECONDS),
    (DAY_SECONDS, OF_ROLLUPS, QUARTER_SECONDS),
)
"""Width of a roll-up, what it is summed from, and the width of that."""


def bucket(column: str) -> str:
    """SQL of the begin of the bucket that a time falls into; ``:origin`` and ``:width`` tell the buckets."""
    return f":origin + ({column} - :origin) / :width * :width"


def sums(
    connection: sqlite3.Connection, since: int, until: int, width: int, level: int
) -> list[sqlite3.Cursor]:
    """Rows of pool, groups and sizes by bucket, from roll-ups of a width, or from the cycles if it is 0."""
    selects = OF_ROLLUPS if level else OF_CYCLES
    column = "start" if level else "taken_at"
    values = {"since": since, "until": until, "origin": since, "width": width, "level": level}
    return [connection.execute(select.format(bucket=bucket(column)), values) for select in selects]


def refresh(connection: sqlite3.Connection, since: int, until: int) -> None:
    """Make all roll-ups anew that any time from ``since`` until before ``until`` belongs to."""
    for width, selects, below in _LEVELS:
        begin, end = since // width * width, -(-until // width) * width
        values = {"since": begin, "until": end, "origin": begin, "width": width, "level": below}
        column = "start" if below else "taken_at"
        for table, select in zip(TABLES, selects):
            connection.execute(
                f"DELETE FROM {table} WHERE level = ? AND start >= ? AND start < ?",  # noqa: S608 - ours
                (width, begin, end),
            )
            connection.execute(
                f"INSERT INTO {table} SELECT {width}, * FROM "  # noqa: S608
                f"({select.format(bucket=bucket(column))})",
                values,
            )


def refresh_days(connection: sqlite3.Connection, times: Iterable[int]) -> Iterator[int]:
    """The same for each day that has one of ``times``; yields each day's begin when it is done."""
    for day in sorted({time // DAY_SECONDS * DAY_SECONDS for time in times}):
        refresh(connection, day, day + DAY_SECONDS)
        yield day


def recover(connection: sqlite3.Connection, since: int, until: int) -> None:
    """Tell anew how long each complete cycle stands for, from ``since`` until before ``until`` and the one after."""
    connection.execute(
        """UPDATE cycles SET covered_seconds = coalesce(min(:most, taken_at - (
            SELECT max(earlier.taken_at) FROM cycles AS earlier
            WHERE earlier.taken_at < cycles.taken_at AND earlier.complete)), 0)
        WHERE complete AND taken_at >= :since AND taken_at <= coalesce(
            (SELECT min(taken_at) FROM cycles WHERE complete AND taken_at >= :until), :until)""",
        {"most": MOST_COVERED_SECONDS, "since": since, "until": until},
    )


def renew(connection: sqlite3.Connection, times: Sequence[int]) -> None:
    """Make anew what depends on complete cycles of these Unix seconds, which came or went: the time that others stand for too."""
    recover(connection, min(times), max(times) + 1)
    after = "SELECT min(taken_at) FROM cycles WHERE complete AND taken_at > ?"
    followers = {connection.execute(after, (time,)).fetchone()[0] for time in times}
    for _ in refresh_days(connection, {*times, *(time for time in followers if time is not None)}):
        pass


_Sizes = dict[tuple[int, int], tuple[dict[int, int], dict[int, int]]]


def series(
    connection: sqlite3.Connection, lists: Lists, since: int, until: int, points: int
) -> Series:
    """Some ``points`` buckets from ``since`` to ``until``, Unix seconds. Raises ValueError."""
    asked = layout(since, until, points)
    pool, groups, sizes = sums(
        connection, asked.since, asked.until, asked.bucket_seconds, asked.level_seconds
    )
    by_size = _by_size(sizes)
    by_bucket: dict[int, dict[str, GroupPoint]] = {}
    for start, group, *row in groups:
        by_bucket.setdefault(start, {})[lists.name(group)] = _group(
            row, by_size.get((start, group), ({}, {}))
        )
    return Series(
        asked.since,
        asked.until,
        asked.bucket_seconds,
        tuple(Bucket(start, _pool(row), by_bucket.get(start, {})) for start, *row in pool),
    )


def _by_size(rows: sqlite3.Cursor) -> _Sizes:
    """Bucket and group -> cores of a job -> cores held, and jobs pending; summed over cycles."""
    found: _Sizes = {}
    for start, group, cores, held, pending in rows:
        held_by_size, pending_by_size = found.setdefault((start, group), ({}, {}))
        if held:
            held_by_size[cores] = held
        if pending:
            pending_by_size[cores] = pending
    return found


def _group(row: list[Any], sizes: tuple[dict[int, int], dict[int, int]]) -> GroupPoint:
    (
        cycles,
        pledge,
        power,
        setpoint,
        error,
        squares,
        output,
        output_cycles,
        work,
        pledged,
        *others,
    ) = row
    held_back, helped, target_cycles, unplaceable, unplaceable_cycles = others
    held, pending = sizes
    return GroupPoint(
        cycles=cycles,
        pledge_hs06=pledge / cycles,
        power_hs06=power / cycles,
        setpoint_hs06=setpoint / cycles,
        error_hs06=error / cycles,
        error_rms_hs06=sqrt(squares / cycles),
        output_hs06=_mean(output, output_cycles),
        work_hs06_seconds=work,
        pledge_hs06_seconds=pledged,
        cores_by_size={cores: held[cores] / cycles for cores in sorted(held)},
        pending_by_size={cores: pending[cores] / cycles for cores in sorted(pending)},
        unplaceable_jobs=_mean(unplaceable, unplaceable_cycles),
        held_back_nodes=_mean(held_back, target_cycles),
        helped_nodes=_mean(helped, target_cycles),
    )


def _pool(row: list[Any]) -> PoolPoint:
    (
        cycles,
        complete,
        covered,
        idle,
        idle_cycles,
        targets,
        target_cycles,
        seconds,
        timed_cycles,
        *causes,
    ) = row
    idle_target, idle_grace, caused_cycles = causes
    return PoolPoint(
        cycles=cycles,
        complete_cycles=complete,
        covered_seconds=covered,
        idle_cores=_mean(idle, idle_cycles),
        targets=_mean(targets, target_cycles),
        seconds=_mean(seconds, timed_cycles),
        idle_target_cores=_mean(idle_target, caused_cycles),
        idle_grace_cores=_mean(idle_grace, caused_cycles),
    )


def _mean(total: Optional[float], count: int) -> Optional[float]:
    return total / count if total is not None and count else None

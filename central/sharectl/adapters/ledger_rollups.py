"""Sums by hour, quarter of a day and day, kept beside the cycles so that two years are answered at once.

A roll-up is made anew from what is below it (an hour from its cycles, a day from its quarters) whenever a cycle of it is
added, in the same transaction: it cannot drift from what it sums.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence

from sharectl.core.ledger_series import (
    DAY_SECONDS,
    HOUR_SECONDS,
    MOST_COVERED_SECONDS,
    QUARTER_SECONDS,
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
                f"INSERT INTO {table} SELECT {width}, * FROM ({select.format(bucket=bucket(column))})",  # noqa: S608
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

"""Sums of groups by hour and by day, and the series that are made from them or from cycles.

An hour's sums are made from its cycles and a day's from its hours, again and whole, in the
transaction that adds or removes a cycle.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from math import sqrt
from typing import Optional

from sharectl.ledger.database import insert
from sharectl.ledger.series import (
    DAY_SECONDS,
    HOUR_SECONDS,
    MOST_COVERED_SECONDS,
    Bucket,
    GroupPoint,
    PoolPoint,
    Series,
    layout,
)

_SUMMED = (
    "cycles",
    "pledge_hs06",
    "power_hs06",
    "setpoint_hs06",
    "control_error_hs06",
    "control_error_squares",
    "output_hs06",
    "output_cycles",
    "work_hs06_seconds",
    "pledge_hs06_seconds",
    "held_back_nodes",
    "helped_nodes",
    "target_cycles",
    "unplaceable_jobs",
)
_SIZES = ("cores_by_size", "pending_by_size")
_BELOW = {HOUR_SECONDS: 0, DAY_SECONDS: HOUR_SECONDS}
"""Level of sums, its width in seconds -> level that it is summed from; 0: cycles."""
_BUCKET = ":since + ({column} - :since) / :width * :width"
_GROUPS = f"""
SELECT {_BUCKET.format(column="start")} AS start, name,
    {", ".join(f"sum({column}) AS {column}" for column in _SUMMED)},
    {", ".join(f"sum_by_size({column}) AS {column}" for column in _SIZES)}
FROM {{source}} WHERE start >= :since AND start < :until GROUP BY 1, 2
"""
_POOL = f"""
SELECT {_BUCKET.format(column="taken_at")}, count(*), sum(complete), sum(covered_seconds),
    avg(idle_cores), avg(targets), avg(seconds), avg(idle_target_cores), avg(idle_grace_cores)
FROM cycles WHERE taken_at >= :since AND taken_at < :until GROUP BY 1
"""


def series(connection: sqlite3.Connection, since: int, until: int, points: int) -> Series:
    """About ``points`` buckets from ``since`` to ``until``, Unix seconds."""
    chosen = layout(since, until, points)
    since, until, width = chosen.since, chosen.until, chosen.bucket_seconds
    groups: dict[int, dict[str, GroupPoint]] = {}
    for row in _group_sums(connection, since, until, width, chosen.level_seconds):
        groups.setdefault(row["start"], {})[row["name"]] = _group(row)
    pool = connection.execute(_POOL, {"since": since, "until": until, "width": width})
    buckets = (Bucket(start, PoolPoint(*row), groups.get(start, {})) for start, *row in pool)
    return Series(since, until, width, tuple(buckets))


def renew(connection: sqlite3.Connection, first: int, last: int) -> None:
    """Sum again after cycles came or went whose Unix seconds are from ``first`` to ``last``.

    The next complete cycle covers another time than before.
    """
    after = "SELECT min(taken_at) FROM cycles WHERE complete AND taken_at > ?"
    last = connection.execute(after, (last,)).fetchone()[0] or last
    connection.execute(
        """UPDATE cycles SET covered_seconds = coalesce(min(?, taken_at - (
            SELECT max(earlier.taken_at) FROM cycles AS earlier
            WHERE earlier.taken_at < cycles.taken_at AND earlier.complete)), 0)
        WHERE complete AND taken_at >= ? AND taken_at <= ?""",
        (MOST_COVERED_SECONDS, first, last),
    )
    for level, below in _BELOW.items():
        since, until = first // level * level, (last // level + 1) * level
        connection.execute(
            "DELETE FROM group_sums WHERE level = ? AND start >= ? AND start < ?",
            (level, since, until),
        )
        for row in list(_group_sums(connection, since, until, level, below)):
            insert(connection, "group_sums", {"level": level, **dict(row)})


def remove_before(connection: sqlite3.Connection, since: int) -> None:
    """Remove sums of the days before that of ``since``, Unix seconds."""
    day = since // DAY_SECONDS * DAY_SECONDS
    connection.execute("DELETE FROM group_sums WHERE start < ?", (day,))


def _group_sums(
    connection: sqlite3.Connection, since: int, until: int, width: int, level: int
) -> Iterator[sqlite3.Row]:
    """Sums of each bucket and group."""
    source = f"(SELECT * FROM group_sums WHERE level = {level})" if level else "group_moments"
    return connection.execute(
        _GROUPS.format(source=source), {"since": since, "until": until, "width": width}
    )


def _group(row: sqlite3.Row) -> GroupPoint:
    cycles = row["cycles"]
    means = {name: row[name] / cycles for name in ("pledge_hs06", "power_hs06", "setpoint_hs06")}
    return GroupPoint(
        **means,
        cycles=cycles,
        error_hs06=row["control_error_hs06"] / cycles,
        error_rms_hs06=sqrt(row["control_error_squares"] / cycles),
        output_hs06=_mean(row["output_hs06"], row["output_cycles"]),
        work_hs06_seconds=row["work_hs06_seconds"],
        pledge_hs06_seconds=row["pledge_hs06_seconds"],
        cores_by_size=_means(row["cores_by_size"], cycles),
        pending_by_size=_means(row["pending_by_size"], cycles),
        held_back_nodes=_mean(row["held_back_nodes"], row["target_cycles"]),
        helped_nodes=_mean(row["helped_nodes"], row["target_cycles"]),
        unplaceable_jobs=_mean(row["unplaceable_jobs"], row["output_cycles"]),
    )


def _mean(total: Optional[float], count: int) -> Optional[float]:
    return total / count if total is not None and count else None


def _means(sums: str, cycles: int) -> dict[int, float]:
    sizes = sorted((int(cores), amount) for cores, amount in json.loads(sums).items())
    return {cores: amount / cycles for cores, amount in sizes if amount}

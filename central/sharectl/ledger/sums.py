"""Sums of groups by hour, made again with each cycle, and series of them or of cycles."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress

from sharectl.ledger import cycles
from sharectl.ledger.database import UNREADABLE, packed, unpacked
from sharectl.ledger.series import MOST_COVERED_SECONDS, Bucket, GroupPoint, PoolPoint, Series
from sharectl.plan.records import CycleRecord
from sharectl.times import HOUR_SECONDS

Sums = Mapping[str, Mapping[str, float]]
"""Group -> name of a figure -> its sum."""

_COARSER = 4
"""Sums are used where an hour is at most so many times as wide as a point, and cycles elsewhere."""
_OF_JOBS = ("single_cores", "multi_cores", "pending_single_jobs", "pending_multi_jobs")
_MEANS = {
    **dict.fromkeys(_OF_JOBS, "cycles"),
    **dict.fromkeys(("pledge_hs06", "power_hs06", "error_hs06", "output_hs06"), "cycles"),
    "unplaceable_jobs": "cycles",
    **dict.fromkeys(("held_back_nodes", "helped_nodes"), "targets"),
    **dict.fromkeys(("due_hs06", "shortfall_hs06", "shortfall_squares"), "dues"),
}
"""Mean of a `GroupPoint` -> number of the cycles that know it."""
_POOL = """
SELECT :begin + (taken_at - :begin) / :width * :width, count(*), sum(complete),
    sum(min(covered_seconds, taken_at - :since)), avg(idle_cores), avg(targets), avg(seconds),
    avg(idle_target_cores), avg(idle_grace_cores), avg(present_hs06), avg(shortfall_hs06)
FROM cycles WHERE taken_at >= :since AND taken_at < :until GROUP BY 1
"""


def layout(since: int, until: int, points: int) -> tuple[int, int]:
    """Begin and width of at most ``points`` buckets from ``since`` to ``until``, Unix seconds.

    Buckets that are made from sums are whole hours, up to `_COARSER` times as wide as asked for.
    """
    width = -(-max(1, until - since) // max(1, points))
    if _COARSER * width < HOUR_SECONDS:
        return since, width
    return _hour(since), _next_hour(width)


def series(connection: sqlite3.Connection, since: int, until: int, points: int) -> Series:
    """About ``points`` buckets of cycles from ``since`` until before ``until``, Unix seconds."""
    begin, width = layout(since, until, points)
    query = "SELECT min(taken_at) FROM cycles WHERE complete AND taken_at >= ?"
    first = connection.execute(query, (since,)).fetchone()[0]
    # Of the time before the first complete cycle only a part may count: hours begin after it.
    hours, end = _next_hour(until if first is None else first + 1), _hour(until)
    if width % HOUR_SECONDS or hours >= end:
        hours = end = until
    groups: defaultdict[int, dict[str, Counter[str]]] = defaultdict(dict)
    for rows in (
        _of_cycles(connection, since, hours, not_before=since),
        _of_hours(connection, hours, end),
        _of_cycles(connection, end, until, not_before=since),
    ):
        for start, sums in rows:
            _add(groups[begin + (start - begin) // width * width], sums)
    period = {"begin": begin, "since": since, "until": until, "width": width}
    pool = connection.execute(_POOL, period)
    buckets = (
        Bucket(
            start,
            PoolPoint(*row),
            {name: _point(sums) for name, sums in groups.get(start, {}).items()},
        )
        for start, *row in pool
    )
    return Series(since, until, width, tuple(buckets))


def renew(connection: sqlite3.Connection, taken_at: int) -> None:
    """Sum again after a cycle of ``taken_at``: the next complete one covers another time now."""
    after = "SELECT min(taken_at) FROM cycles WHERE complete AND taken_at > ?"
    last = connection.execute(after, (taken_at,)).fetchone()[0] or taken_at
    connection.execute(
        """UPDATE cycles SET covered_seconds = coalesce(min(?, taken_at - (
            SELECT max(earlier.taken_at) FROM cycles AS earlier
            WHERE earlier.taken_at < cycles.taken_at AND earlier.complete)), 0)
        WHERE complete AND taken_at >= ? AND taken_at <= ?""",
        (MOST_COVERED_SECONDS, taken_at, last),
    )
    for hour in sorted({_hour(taken_at), _hour(last)}):
        added: dict[str, Counter[str]] = {}
        for _, sums in _of_cycles(connection, hour, hour + HOUR_SECONDS):
            _add(added, sums)
        connection.execute("INSERT OR REPLACE INTO sums VALUES (?, ?)", (hour, packed(added)))


def _hour(time: int) -> int:
    return time // HOUR_SECONDS * HOUR_SECONDS


def _next_hour(time: int) -> int:
    return -(-time // HOUR_SECONDS) * HOUR_SECONDS


def _add(bucket: dict[str, Counter[str]], sums: Sums) -> None:
    for name, figures in sums.items():
        bucket.setdefault(name, Counter()).update(figures)


# Rows that cannot be read are left out: later cycles are recorded and summed all the same.


def _of_hours(connection: sqlite3.Connection, since: int, until: int) -> Iterator[tuple[int, Sums]]:
    query = "SELECT start, groups FROM sums WHERE start >= ? AND start < ?"
    for start, document in connection.execute(query, (since, until)):
        with suppress(*UNREADABLE):
            yield start, json.loads(unpacked(document))


def _of_cycles(
    connection: sqlite3.Connection, since: int, until: int, not_before: int = 0
) -> Iterator[tuple[int, Sums]]:
    """Time and sums of each cycle, which stands for no time before ``not_before``."""
    query = "SELECT number, covered_seconds FROM cycles WHERE taken_at >= ? AND taken_at < ?"
    for number, covered_seconds in connection.execute(query, (since, until)):
        with suppress(*UNREADABLE):
            where = "WHERE number = ?"
            (record,) = cycles.read(connection, where, (number,), with_nodes=False)
            covered = min(covered_seconds, record.taken_at - not_before)
            yield record.taken_at, _figures(record, covered)


def _figures(record: CycleRecord, covered_seconds: int) -> Sums:
    """Figures of one cycle; one that is not known is left out, with its count."""
    figures: dict[str, dict[str, float]] = {}
    for control in record.groups:
        group, error, usage = control.group, control.error, control.error.usage
        figures[group] = sums = {
            "cycles": 1,
            "pledge_hs06": error.pledge_hs06,
            "power_hs06": usage.power_hs06,
            "error_hs06": control.control_error_hs06,
            "work_hs06_seconds": usage.power_hs06 * covered_seconds,
            "pledge_hs06_seconds": error.pledge_hs06 * covered_seconds,
        }
        sums.update({name: getattr(usage, name) for name in _OF_JOBS})
        unplaceable = sum(usage.unplaceable_by_cores.values())
        sums.update(output_hs06=control.output_hs06, unplaceable_jobs=unplaceable)
        if control.due_hs06 is not None and control.shortfall_hs06 is not None:
            squares = control.shortfall_hs06**2
            sums.update(dues=1, due_hs06=control.due_hs06)
            sums.update(shortfall_hs06=control.shortfall_hs06, shortfall_squares=squares)
        if group in record.target_nodes:
            held_back, helped = record.target_nodes[group]
            sums.update(targets=1, held_back_nodes=held_back, helped_nodes=helped)
    return figures


def _point(sums: Mapping[str, float]) -> GroupPoint:
    means = {name: sums[name] / sums[n] if name in sums else None for name, n in _MEANS.items()}
    return GroupPoint(
        cycles=int(sums["cycles"]),
        work_hs06_seconds=sums["work_hs06_seconds"],
        pledge_hs06_seconds=sums["pledge_hs06_seconds"],
        **means,  # type: ignore[arg-type]
    )

"""Sums of groups by hour and by day, and the series that are made from them or from cycles.

An hour's sums are made from its cycles and a day's from its hours, again and whole, in the
transaction that adds or removes a cycle.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress

from sharectl.ledger import cycles
from sharectl.ledger.database import UNREADABLE, packed, unpacked
from sharectl.ledger.series import (
    HOUR_SECONDS,
    MOST_COVERED_SECONDS,
    Bucket,
    GroupPoint,
    PoolPoint,
    Series,
    layout,
)
from sharectl.plan.records import CycleRecord
from sharectl.times import DAY_SECONDS

Sums = Mapping[str, Mapping[str, float]]
"""Group -> name of a figure -> its sum."""

_BELOW = {HOUR_SECONDS: 0, DAY_SECONDS: HOUR_SECONDS}
"""Level of sums, its width in seconds -> level that it is summed from; 0: cycles."""
_CORES, _PENDING = "cores ", "pending "
"""Begins of figures with the cores of a job behind them."""
_MEANS = {
    **dict.fromkeys(("pledge_hs06", "power_hs06", "setpoint_hs06", "error_hs06"), "cycles"),
    **dict.fromkeys(("output_hs06", "unplaceable_jobs"), "outputs"),
    **dict.fromkeys(("held_back_nodes", "helped_nodes"), "targets"),
    **dict.fromkeys(("due_hs06", "shortfall_hs06", "shortfall_squares"), "dues"),
}
"""Mean of a `GroupPoint` -> number of the cycles that know it."""
_POOL = """
SELECT :begin + (taken_at - :begin) / :width * :width, count(*), sum(complete),
    sum(min(covered_seconds, taken_at - :since)), avg(idle_cores), avg(targets), avg(seconds),
    avg(idle_target_cores), avg(idle_grace_cores), avg(present_hs06), avg(shortfall_hs06),
    avg(shortfall_hs06 * shortfall_hs06)
FROM cycles WHERE taken_at >= :since AND taken_at < :until GROUP BY 1
"""


def series(connection: sqlite3.Connection, since: int, until: int, points: int) -> Series:
    """About ``points`` buckets of the cycles from ``since`` until before ``until``, Unix seconds.

    The first one stands for no time before ``since``.
    """
    begin, width, level = layout(since, until, points)
    query = "SELECT min(taken_at) FROM cycles WHERE complete AND taken_at >= ?"
    first = connection.execute(query, (since,)).fetchone()[0]
    groups: defaultdict[int, dict[str, Counter[str]]] = defaultdict(dict)
    for part in _parts(level, since, until, until if first is None else first + 1):
        for start, sums in _rows(connection, *part, not_before=since):
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
        where = "level = ? AND start >= ? AND start < ?"
        connection.execute(f"DELETE FROM sums WHERE {where}", (level, since, until))
        added: defaultdict[int, dict[str, Counter[str]]] = defaultdict(dict)
        for start, sums in _rows(connection, below, since, until):
            _add(added[start // level * level], sums)
        connection.executemany(
            "INSERT INTO sums VALUES (?, ?, ?)",
            ((level, start, packed(sums)) for start, sums in added.items()),
        )


def _parts(level: int, since: int, until: int, alone: int) -> Iterator[tuple[int, int, int]]:
    """Level, begin and end of rows that make up a period exactly, the longest ones that do.

    The time before ``alone`` is of cycles.
    """
    if level:
        first, last = -(-max(since, alone) // level) * level, until // level * level
        edges = [(since, first), (last, until)] if first < last else [(since, until)]
        for edge in edges:
            yield from _parts(_BELOW[level], *edge, alone)
        since, until = first, last
    if since < until:
        yield level, since, until


def _add(bucket: dict[str, Counter[str]], sums: Sums) -> None:
    for name, figures in sums.items():
        bucket.setdefault(name, Counter()).update(figures)


def _rows(
    connection: sqlite3.Connection, level: int, since: int, until: int, not_before: int = 0
) -> Iterator[tuple[int, Sums]]:
    """Time and sums of each row of a level; cycles stand for no time before ``not_before``.

    Rows that cannot be read are left out: later cycles are recorded and summed all the same.
    """
    if level:
        query = "SELECT start, groups FROM sums WHERE level = ? AND start >= ? AND start < ?"
        for start, document in connection.execute(query, (level, since, until)):
            with suppress(*UNREADABLE):
                yield start, json.loads(unpacked(document))
    else:
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
            "setpoint_hs06": control.setpoint_hs06,
            "error_hs06": control.control_error_hs06,
            "work_hs06_seconds": usage.power_hs06 * covered_seconds,
            "pledge_hs06_seconds": error.pledge_hs06 * covered_seconds,
        }
        for begin, amounts in (
            (_CORES, record.cores_by_size.get(group, {})),
            (_PENDING, usage.pending_by_cores),
        ):
            sums.update({f"{begin}{size}": amount for size, amount in amounts.items()})
        if not record.imported:
            unplaceable = sum(usage.unplaceable_by_cores.values())
            sums.update(outputs=1, output_hs06=control.output_hs06, unplaceable_jobs=unplaceable)
        if control.due_hs06 is not None and control.shortfall_hs06 is not None:
            squares = control.shortfall_hs06**2
            sums.update(dues=1, due_hs06=control.due_hs06, shortfall_squares=squares)
            sums["shortfall_hs06"] = control.shortfall_hs06
        if group in record.target_nodes:
            held_back, helped = record.target_nodes[group]
            sums.update(targets=1, held_back_nodes=held_back, helped_nodes=helped)
    return figures


def _point(sums: Mapping[str, float]) -> GroupPoint:
    cycles = int(sums["cycles"])
    means = {name: sums[name] / sums[n] if n in sums else None for name, n in _MEANS.items()}
    by_size: dict[str, dict[int, float]] = {_CORES: {}, _PENDING: {}}
    for name, amount in sums.items():
        begin, _, size = name.rpartition(" ")
        if begin and amount:
            by_size[f"{begin} "][int(size)] = amount / cycles
    return GroupPoint(
        cycles=cycles,
        work_hs06_seconds=sums["work_hs06_seconds"],
        pledge_hs06_seconds=sums["pledge_hs06_seconds"],
        cores_by_size=dict(sorted(by_size[_CORES].items())),
        pending_by_size=dict(sorted(by_size[_PENDING].items())),
        **means,  # type: ignore[arg-type]
    )

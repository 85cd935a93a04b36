"""Series of the ledger, added up in SQL."""

from __future__ import annotations

import sqlite3
from math import sqrt
from typing import Any, Optional

from sharectl.adapters.ledger_names import Lists
from sharectl.adapters.ledger_rollups import sums
from sharectl.core.ledger_series import Bucket, GroupPoint, PoolPoint, Series, layout

_Sizes = dict[tuple[int, int], tuple[dict[int, int], dict[int, int]]]


def series(connection: sqlite3.Connection, lists: Lists, since: int, until: int, points: int) -> Series:
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
    cycles, pledge, power, setpoint, error, squares, output, output_cycles, work, pledged, *others = row
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
    cycles, complete, covered, idle, idle_cycles, targets, target_cycles, seconds, timed_cycles, *causes = row
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

"""Reproducible series of a ledger, of groups whose jobs come and go by day and week."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import pi, sin
from random import Random
from typing import Optional

from sharectl.ledger.series import Bucket, GroupPoint, PoolPoint, Series
from sharectl.report.page import Subject, as_content, report

APRIL = 1617235200
"""2021-04-01, when the seed's left figures begin."""
CYCLE_SECONDS = 1020
PLEDGES = {"atlas": 105300.0, "cms": 87100.0, "alice": 71400.0, "lhcb": 63500.0}
SIZES = (1, 8)


def series(  # noqa: PLR0913 - a made-up world has many knobs
    days: float = 30,
    pledges: Mapping[str, float] = PLEDGES,
    *,
    since: int = APRIL,
    points: int = 1184,
    missing: Sequence[tuple[float, float]] = (),
    incomplete: Sequence[float] = (),
    sizes: Sequence[int] = SIZES,
    imported: bool = False,
    better: float = 1.0,
) -> Series:
    """A period with a bucket for each cycle, or at most ``points`` wider ones.

    Parameters
    ----------
    missing
        From and to, in days since the begin, without any cycle.
    incomplete
        Days since the begin whose bucket has a cycle that was not complete.
    imported
        Whether outputs, targets, idle cores and durations are unknown, as in rows of
        shares_Error.log.
    better
        Errors are divided by this.
    """
    until = since + round(days * 86400)
    width = max(-(-(until - since) // points), 60)
    noise = Random(7)
    buckets = []
    reported, waited = float(since), 0
    for start in range(since, until, width):
        day = (start - since) / 86400
        lost = any(abs(day - at) * 86400 < width / 2 for at in incomplete)
        if any(begin <= day < end for begin, end in missing):
            reported, waited = start + width, 3600
            continue
        cycles = int((start + width - reported) / CYCLE_SECONDS)
        if not cycles:
            continue
        reported += cycles * CYCLE_SECONDS
        waited += cycles * CYCLE_SECONDS
        covered = 0 if lost else min(waited, max(cycles * CYCLE_SECONDS, 3600))
        waited = waited if lost else 0
        pool = _pool(day, cycles, 0 if lost else cycles, covered, None if imported else noise)
        groups = (
            {}
            if lost
            else {
                name: _group(
                    number, pledge, day, cycles, covered, sizes, noise, better, imported=imported
                )
                for number, (name, pledge) in enumerate(pledges.items())
            }
        )
        buckets.append(Bucket(start, pool, groups))
    return Series(since, until, width, tuple(buckets))


def ten_minutes(ratios: Mapping[str, float], since: int = APRIL, targets: float = 1.6) -> Series:
    """Ten minutes of a small pool in buckets of a second: six cycles in the first five minutes.

    Parameters
    ----------
    ratios
        Group -> its work by pledge.
    """
    groups = {
        name: GroupPoint(
            cycles=1,
            pledge_hs06=100.0,
            power_hs06=100 * ratio,
            setpoint_hs06=60.0,
            error_hs06=1.5,
            error_rms_hs06=1.5,
            output_hs06=0.0,
            work_hs06_seconds=6000 * ratio,
            pledge_hs06_seconds=6000.0,
            cores_by_size={1: 6.4},
            pending_by_size={1: 0.7},
            held_back_nodes=targets,
            helped_nodes=0.5,
        )
        for name, ratio in ratios.items()
    }
    buckets = [
        Bucket(since + 60 * minute, PoolPoint(1, 1, 60, 2.0, targets, 1.0), groups)
        for minute in range(6)
    ]
    return Series(since, since + 600, 1, tuple(buckets))


def _pool(
    day: float, cycles: int, complete: int, covered: int, noise: Optional[Random]
) -> PoolPoint:
    if noise is None:
        return PoolPoint(cycles, complete, covered, None, None, None)
    swing = sin(2 * pi * day)
    return PoolPoint(
        cycles=cycles,
        complete_cycles=complete,
        covered_seconds=covered,
        idle_cores=900 + 300 * swing + 200 * noise.random() if complete else None,
        targets=max(0.0, 120 + 80 * sin(day / 2) + 10 * noise.random()),
        seconds=6 + 2 * noise.random() + (30.0 if noise.random() > 0.99 else 0.0),
        idle_target_cores=300 + 90 * swing if complete else None,
        idle_grace_cores=120 - 40 * swing if complete else None,
    )


def _group(  # noqa: PLR0913, PLR0917 - a made-up world has many knobs
    number: int,
    pledge: float,
    day: float,
    cycles: int,
    covered: int,
    sizes: Sequence[int],
    noise: Random,
    better: float,
    *,
    imported: bool,
) -> GroupPoint:
    drift = (
        0.18 * sin(day / 3 + 2 * number)
        + 0.05 * sin(2 * pi * day + number)
        + 0.04 * (noise.random() - 0.5)
    )
    setpoint = 0.82 * pledge
    error = setpoint * drift / better
    power = setpoint + error
    parts = [
        1 + (0.7 if place % 2 else 0.4) * sin(day / 2 + number + place)
        for place in range(len(sizes))
    ]
    cores = power / 10
    swing = 12 * sin(day / 2 + number)
    return GroupPoint(
        cycles=cycles,
        pledge_hs06=pledge,
        power_hs06=power,
        setpoint_hs06=setpoint,
        error_hs06=error,
        error_rms_hs06=abs(error) * 1.1,
        output_hs06=None if imported else (0.0 if abs(error) < 0.03 * setpoint else 0.6 * error),
        work_hs06_seconds=power * covered,
        pledge_hs06_seconds=pledge * covered,
        cores_by_size={size: cores * part / sum(parts) for size, part in zip(sizes, parts)},
        pending_by_size={
            size: max(0.0, 800 / max(1, size) * (1.1 + sin(day / 4 + number + place)))
            for place, size in enumerate(sizes)
        },
        unplaceable_jobs=None if imported else 0.0,
        held_back_nodes=None if imported else 45 + swing,
        helped_nodes=None if imported else 20 + swing / 2,
    )


def page_of(periods: Sequence[Series], subject: Subject) -> str:
    """The page of a report."""
    return report(periods, subject, as_content(periods, subject))

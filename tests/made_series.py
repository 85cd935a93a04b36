"""Reproducible series of a ledger, of groups whose jobs come and go by day and week."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import pi, sin

from sharectl.ledger.series import Bucket, GroupPoint, PoolPoint, Series
from sharectl.report.page import Subject, report
from sharectl.report.series import summary

APRIL = 1617235200
"""2021-04-01, when the seed's left figures begin."""
CYCLE_SECONDS = 1020
PLEDGES = {"atlas": 105300.0, "cms": 87100.0, "alice": 71400.0, "lhcb": 63500.0}


def series(
    days: float = 30,
    pledges: Mapping[str, float] = PLEDGES,
    *,
    since: int = APRIL,
    points: int = 592,
    missing: Sequence[tuple[float, float]] = (),
    incomplete: Sequence[float] = (),
    unknown: bool = False,
) -> Series:
    """A period with a bucket for each cycle, or at most ``points`` wider ones.

    Days since the begin: ``missing`` spans have no cycle, ``incomplete`` buckets no complete one.
    ``unknown``: outputs, targets, idle cores and durations are.
    """
    until = since + round(days * 86400)
    width = max(-(-(until - since) // points), CYCLE_SECONDS)

    def buckets() -> Iterator[Bucket]:
        ended = since
        for start in range(since, until, width):
            day, cycles = (start - since) / 86400, width // CYCLE_SECONDS + start // width % 2
            if any(begin <= day < end for begin, end in missing):
                continue
            if any(start <= since + at * 86400 < start + width for at in incomplete):
                yield Bucket(start, PoolPoint(cycles, 0, 0, None, None, 30.0))
                continue
            covered = min(start + width - ended, max(width, 3600))
            ended = start + width
            swing = sin(2 * pi * day)
            known = [900 + 300 * swing, 120 + 80 * sin(day / 2), 6 + swing, 300 + 90 * swing, 120.0]
            known += [sum(pledges.values()), 2000.0]
            pool = PoolPoint(cycles, cycles, covered, *([None] * 7 if unknown else known))
            groups = {
                name: _group(number, pledge, day, pool)
                for number, (name, pledge) in enumerate(pledges.items())
            }
            yield Bucket(start, pool, groups)

    return Series(since, until, width, tuple(buckets()))


def _group(number: int, pledge: float, day: float, pool: PoolPoint) -> GroupPoint:
    setpoint, unknown = 0.82 * pledge, pool.targets is None
    error = setpoint * (0.18 * sin(day / 3 + 2 * number + 1) + 0.05 * sin(2 * pi * day + number))
    power, swing = setpoint + error, sin(day / 2 + number)
    single = 0.5 + 0.3 * sin(day / 2 + number + 1)
    return GroupPoint(
        cycles=pool.complete_cycles,
        pledge_hs06=pledge,
        power_hs06=power,
        error_hs06=error,
        output_hs06=None if unknown else 0.6 * error if abs(error) > 0.03 * setpoint else 0.0,
        work_hs06_seconds=power * pool.covered_seconds,
        pledge_hs06_seconds=pledge * pool.covered_seconds,
        single_cores=power / 10 * single,
        multi_cores=power / 10 * (1 - single),
        pending_single_jobs=900 * (1.2 + swing),
        pending_multi_jobs=900 / 8 * (1.2 + swing),
        unplaceable_jobs=None if unknown else 0.0,
        held_back_nodes=None if unknown else 45 + 12 * swing,
        helped_nodes=None if unknown else 20 + 6 * swing,
        due_hs06=None if unknown else setpoint,
        shortfall_hs06=None if unknown else max(0.0, -error),
        shortfall_squares=None if unknown else 1.2 * error**2,
    )


def ten_minutes(ratios: Mapping[str, float]) -> Series:
    """Ten minutes of a small pool in buckets of a second: six cycles in the first five minutes.

    ``ratios`` are work by pledge.
    """
    groups = {
        name: GroupPoint(
            cycles=1,
            pledge_hs06=100.0,
            power_hs06=100 * ratio,
            error_hs06=1.5,
            output_hs06=0.0,
            work_hs06_seconds=6000 * ratio,
            pledge_hs06_seconds=6000.0,
            single_cores=6.4,
            multi_cores=0.0,
            pending_single_jobs=0.7,
            pending_multi_jobs=0.0,
            held_back_nodes=1.6,
            helped_nodes=0.5,
            due_hs06=110.0,
            shortfall_hs06=10.0,
            shortfall_squares=400.0,
        )
        for name, ratio in ratios.items()
    }
    pool = PoolPoint(1, 1, 60, 2.0, 1.6, 1.0, None, None, 300.0, 20.0)
    buckets = tuple(Bucket(APRIL + 60 * minute, pool, groups) for minute in range(6))
    return Series(APRIL, APRIL + 600, 1, buckets)


def page_of(period: Series, subject: Subject) -> str:
    """The page of a report."""
    return report(period, subject, summary(period))

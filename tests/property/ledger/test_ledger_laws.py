from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sharectl.ledger.ledger import Ledger
from sharectl.ledger.retention import Keep
from sharectl.ledger.series import MOST_COVERED_SECONDS
from sharectl.model import Snapshot
from sharectl.plan.records import CycleRecord
from sharectl.times import DAY_SECONDS
from tests.made_cycles import as_kept, incomplete, made

FEW = settings(max_examples=15)


@st.composite
def records(draw: st.DrawFn) -> list[CycleRecord]:
    """Cycles in the order of their times, some without a group, nodes or answers."""
    taken_at, ordered = 1_700_000_000, []
    for number in draw(st.lists(st.integers(0, 9), min_size=1, max_size=7)):
        taken_at += draw(st.integers(1, 90_000))
        record, _ = incomplete(number)
        if draw(st.integers(0, 2)):
            record, _ = made(number, draw(st.integers(1, 6)), draw(st.integers(3, 60)))
            groups = record.groups[draw(st.integers(0, 1)) :]
            counts = {each.group: record.target_nodes[each.group] for each in groups}
            record = replace(record, groups=groups, target_nodes=counts)
        problems = tuple(draw(st.lists(st.text(max_size=20), max_size=2)))
        ordered.append(replace(record, taken_at=taken_at, problems=problems))
    return ordered


@contextmanager
def ledger_of(kept: Sequence[CycleRecord]) -> Iterator[Ledger]:
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "ledger" / "ledger.sqlite", Keep(days=36500))
        for record in kept:
            ledger.record(record, Snapshot(record.taken_at, (), (), ()))
        yield ledger


@given(records())
@FEW
def test_what_goes_in_comes_out(kept: list[CycleRecord]) -> None:
    """Every cycle is read as it was recorded, alone and among others; `check` finds nothing."""
    expected = [as_kept(record, number) for number, record in enumerate(kept, start=1)]
    with ledger_of(kept) as ledger:
        assert list(ledger.cycles(0, 2**40, with_nodes=True)) == expected
        assert list(ledger.cycles(0, 2**40)) == [
            replace(record, nodes=(), basis=None) for record in expected
        ]
        for record in expected:
            assert ledger.cycle(record.number) == ledger.cycle_at(record.taken_at) == record
        assert ledger.check()["problems"] == []


@given(
    records(), st.integers(0, 6), st.integers(-9, 4000), st.integers(1, 500_000), st.integers(1, 9)
)
@settings(max_examples=40)
def test_a_series_is_of_the_cycles_and_the_time_asked_for(
    kept: list[CycleRecord], number: int, before_seconds: int, span: int, points: int
) -> None:
    """No cycle or second before or after it counts, whatever buckets and sums it is made of."""
    since = kept[min(number, len(kept) - 1)].taken_at - before_seconds
    with ledger_of(kept) as ledger:
        series = ledger.series(since, since + span, points)
    assert (series.since, series.until) == (since, since + span)
    within = [record for record in kept if since <= record.taken_at < since + span]
    assert sum(bucket.pool.cycles for bucket in series.buckets) == len(within)
    whole, work, covered = [r for r in kept if r.complete], Counter[str](), 0
    for before, record in zip([None, *whole], whole):
        if record in within and before is not None:
            seconds = min(MOST_COVERED_SECONDS, record.taken_at - max(before.taken_at, since))
            covered += seconds
            for control in record.groups:
                done = control.error.usage.power_hs06 * seconds
                work[control.group] += done  # type: ignore[assignment]
    assert sum(bucket.pool.covered_seconds for bucket in series.buckets) == covered
    points_of = [point for bucket in series.buckets for point in bucket.groups.items()]
    for name in work:
        total = sum(point.work_hs06_seconds for group, point in points_of if group == name)
        assert total == pytest.approx(work[name])


@given(records())
@FEW
def test_sums_are_those_of_their_cycles(kept: list[CycleRecord]) -> None:
    """Buckets have means of power over all cycles, of target nodes over those that know them."""
    with ledger_of(kept) as ledger:
        (bucket,) = ledger.series(kept[0].taken_at, kept[0].taken_at + 10 * DAY_SECONDS, 1).buckets
    assert bucket.pool.cycles == len(kept)
    assert bucket.pool.complete_cycles == sum(record.complete for record in kept)
    for name, point in bucket.groups.items():
        controls = [c for record in kept for c in record.groups if c.group == name]
        usages = [control.error.usage for control in controls]
        short = [c.shortfall_hs06 for c in controls if c.shortfall_hs06 is not None]
        counts = [record.target_nodes[name] for record in kept if name in record.target_nodes]
        assert point.cycles == len(controls)
        means: dict[str, Sequence[float]] = {
            "power_hs06": [usage.power_hs06 for usage in usages],
            "unplaceable_jobs": [sum(usage.unplaceable_by_cores.values()) for usage in usages],
            "shortfall_hs06": short,
            "shortfall_squares": [missing**2 for missing in short],
            "held_back_nodes": [count.held_back for count in counts],
            "helped_nodes": [count.helped for count in counts],
        }
        for figure, values in means.items():
            mean = fmean(values) if values else None
            assert getattr(point, figure) == pytest.approx(mean), figure
    assert set(bucket.groups) == {control.group for record in kept for control in record.groups}

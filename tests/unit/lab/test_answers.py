from __future__ import annotations

from dataclasses import replace

import pytest

from sharectl_lab.twin.answers import Lack, ToDue, figures_of, lacks
from sharectl_lab.twin.records import CAUSES, GroupOutcome, Outcome, Waits

WAITS = Waits(3, 20.0, 10.0, 40.0, 50.0)
HALVES = Outcome(
    scenario="halves",
    strategy="nothing",
    seed=1,
    seconds=7200.0,
    times=(3600.0, 7200.0),
    pool_cores=10,
    pool_hs06=100.0,
    groups={
        "a": GroupOutcome(
            75.0,
            (66.0, 30.0),
            (65.0, 70.0),
            (7.5, 4.0),
            (3, 9),
            116.0,
            {1: 5, 8: 2, 16: 1},
            {1: 4},
            {8: WAITS},
        ),
        "b": GroupOutcome(25.0, (24.0, 40.0), (25.0, 20.0), (2.5, 4.0), (0, 0), 64.0, {8: 4}),
        "other": GroupOutcome(0.0, (5.0, 5.0), (0.0, 0.0), (0.0, 1.0), (0, 0), 10.0, {2: 1}),
    },
    idle_core_seconds={**dict.fromkeys(CAUSES, 0.0), "grace": 3600.0, "no-jobs": 9000.0},
    idle_cores=dict.fromkeys(CAUSES, (0.0, 0.0)),
    refusals=7,
    evicted_jobs=2,
    lost_core_seconds=1800.0,
)


def test_figures_of_groups() -> None:
    group = figures_of(HALVES).groups["a"]
    assert group.shortfall_rms_hs06 == pytest.approx(800**0.5), "more than is due makes up nothing"
    assert group.shortfall_rms_ratio == pytest.approx(800**0.5 / 95), "other uses 5 of 100 HS06"
    assert group.shortfall_mean_ratio == pytest.approx(20 / 95)
    assert group.to_due == ToDue(1, 1, 1.0, 1.0)
    assert (group.due_hs06_hours, group.work_ratio) == (135.0, 116 / 135)
    assert group.waits_by_cores == {8: WAITS}
    other = figures_of(HALVES).groups["other"]
    assert (other.to_due.worst_hours, other.work_ratio) == (None, None)


def test_figures_of_the_pool() -> None:
    figures = figures_of(HALVES)
    assert figures.shortfall_rms_hs06 == pytest.approx(((1 + 40**2) / 2) ** 0.5), "of the sums"
    assert figures.shortfall_mean_ratio == pytest.approx(41 / 2 / 95)
    assert figures.to_due == ToDue(1, 1, 1.0, 1.0)
    assert figures.idle_core_hours == 1, "no job pending is no waste"
    assert figures.idle_core_hours_by_cause["no-jobs"] == 2.5
    assert (figures.idle_ratio, figures.used_ratio) == (1 / 20, 19 / 20)
    assert figures.multicore_starts == 8
    assert (figures.refusals, figures.evicted_jobs, figures.lost_core_hours) == (7, 2, 0.5)


def test_an_outcome_that_was_interrupted_at_once_has_figures() -> None:
    groups = {
        name: replace(
            group, power_hs06=(), due_hs06=(), cores=(), pending_jobs=(), work_hs06_hours=0.0
        )
        for name, group in HALVES.groups.items()
    }
    empty = replace(HALVES, seconds=0.0, times=(), groups=groups, complete=False)
    figures = figures_of(empty)
    assert (figures.shortfall_rms_hs06, figures.used_ratio) == (0, 0)
    assert figures.to_due == ToDue(0, 0, None, None)


def test_a_group_lacks_power_from_the_begin_of_its_shortfall_until_it_has_90_percent() -> None:
    due = [100.0, 100.0, 100.0, 100.0, 100.0, 0.0, 100.0, 100.0, 100.0]
    power = [100.0, 85.0, 70.0, 89.0, 90.0, 0.0, 80.0, 95.0, 0.0]
    begun_slowly, cut_off = Lack(180.0, ended=True), Lack(60.0, ended=False)
    assert lacks(due, power, 60.0) == [begun_slowly, cut_off], "it never was far below at 80"

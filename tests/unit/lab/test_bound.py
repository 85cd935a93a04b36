from __future__ import annotations

from dataclasses import replace
from statistics import fmean

import pytest

from poolbox.comparison.scenario import steady
from poolbox.comparison.twin import twin_scenario
from sharectl_lab.scenarios.strategies import Strategy
from sharectl_lab.study.begin import bound_of
from sharectl_lab.twin.bound import Begin, ComingJob, Demand, Held, Slot, least_shortfalls_hs06

WAITING = Demand([ComingJob(0.0, 8, 1000.0)] * 3, [0] * 20)
"""Jobs of the group whose share, 80 HS06, is one of them."""
ENDS = [Held(1, "alice", 10.0 * number) for number in range(1, 17)]
POOL = Begin(
    slots=[Slot(16, 10.0, ENDS, {"alice": {1}, "cms": {8}})],
    pledge_hs06={"alice": 1.0, "cms": 1.0},
    demand={"cms": WAITING},
    interval_seconds=10.0,
    intervals=20,
    shortest_seconds=60.0,
)


def at_once(begin: Begin, **fields: object) -> Begin:
    """The pool with other fields of its slot."""
    return replace(begin, slots=[begin.slots[0]._replace(**fields)])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("begin", "idle_core_seconds", "least"),
    [
        pytest.param(POOL, float("inf"), [80.0] * 7, id="until the eighth end"),
        pytest.param(POOL, 0.0, [80.0] * 12, id="ends that the shortest job leaves together"),
        pytest.param(at_once(POOL, held=ENDS[:8]), 0.0, [], id="a block is free"),
        pytest.param(at_once(POOL, sizes={"cms": {1}}), 0.0, [70, 60, 50, 40, 30, 20, 10], id="1"),
        pytest.param(replace(POOL, demand={}), 0.0, [], id="nobody waits"),
        pytest.param(
            replace(POOL, demand={"cms": Demand([ComingJob(35.0, 8, 1000.0)], [0] * 20)}),
            float("inf"),
            [0, 0, 0, 80.0, 80.0, 80.0, 80.0],
            id="jobs that come later",
        ),
        pytest.param(
            replace(POOL, demand={**POOL.demand, "other": Demand([], [0] * 20)}),
            float("inf"),
            [80.0] * 7,
            id="a stranger that never comes",
        ),
    ],
)
def test_least_shortfalls(begin: Begin, idle_core_seconds: float, least: list[float]) -> None:
    rest = [0.0] * (begin.intervals - len(least))
    assert least_shortfalls_hs06(begin, idle_core_seconds) == pytest.approx([*least, *rest])


def test_idle_cores_buy_an_earlier_block() -> None:
    sums = [sum(least_shortfalls_hs06(POOL, idle)) for idle in (0.0, 50.0, 100.0, 200.0, 300.0)]
    assert sums == sorted(sums, reverse=True)
    assert sums[-1] == pytest.approx(7 * 80)


def test_six_nodes_whose_half_is_due_to_a_group_that_comes() -> None:
    """The best plans found by descent have 201 and, with half a core idle, 232 of 1,200 HS06."""
    least: list[float] = []
    with_half_a_core: list[float] = []
    for seed in (1001, 1002, 1003):
        scenario = twin_scenario(steady(seed, 540.0), Strategy("", name="nothing"))
        bound = bound_of(scenario, seed, [0.5 * 540 / 3600], 0.0, lambda _part: None)
        assert bound is not None
        least.append(bound.any_idle_rms_hs06)
        with_half_a_core += bound.shortfall_rms_hs06
    assert (round(fmean(least)), round(fmean(with_half_a_core))) == (189, 201)

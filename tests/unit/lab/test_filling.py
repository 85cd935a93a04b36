"""The time that an empty pool takes to fill, by `sharectl cadence` and in the twin."""

from __future__ import annotations

import pytest

from sharectl.cadence.choice import Terms
from sharectl.cadence.filling import Filling, fill_seconds
from sharectl.cadence.laws import RunTimeLaw, constant, exponential
from sharectl.cadence.run_times import Load, times_of
from sharectl_lab.twin.engine import Setup, Twin
from sharectl_lab.twin.records import NodeSpec, SlotSpec
from sharectl_lab.twin.settings import Access, Negotiator
from sharectl_lab.twin.start import StartKnobs
from sharectl_lab.workload.draw import DrawnWorkload, JobStream

SLOTS, CORES = 25, 20
POOL = SLOTS * CORES
INTERVAL, DELAY, BASE, COST = 60.0, 20.0, 1.0, 0.01
LONG = constant(1e6)


def formula(law: RunTimeLaw, matches: int, worklife: float = 0.0, cost: float = COST) -> float:
    """Time to fill the pool; 0 if it is never full."""
    load = Load("", ((1.0, times_of(law)),))
    terms = Terms((INTERVAL,), worklife, POOL, BASE)
    return fill_seconds(load, terms, Filling(matches, cost), INTERVAL) or 0.0


def twin(law: RunTimeLaw, worklife: float = 0.0, cost: float = COST, *, policy: bool) -> Twin:
    """Twin of a pool of which a cycle gives each slot once, or with a policy once for each core."""
    nodes = (NodeSpec(f"wn-{n}", (SlotSpec(CORES, 4096 * CORES),), 10.0) for n in range(SLOTS))
    setup = Setup(
        tuple(nodes),
        {"all": 1.0},
        negotiator=Negotiator(
            INTERVAL, cycle_delay_seconds=DELAY, base_seconds=BASE, match_seconds=cost
        ),
        access=Access(worklife, leftovers=False, consumption_policy=policy),
        start=StartKnobs(enabled=False),
    )
    jobs = JobStream("all", run_time=law, keep_pending=3 * POOL)
    return Twin(setup, DrawnWorkload([jobs], 1, 1e5))


def filled(pool: Twin) -> float:
    """Part of the cores that have a job."""
    return sum(slot.total_cores - slot.free_cores for slot in pool.slots) / POOL


@pytest.mark.parametrize("cost", [COST, 2.0])
@pytest.mark.parametrize("policy", [False, True])
def test_the_twin_is_full_at_that_very_time(policy: bool, cost: float) -> None:  # noqa: FBT001
    """Cycles of 2 s a match take longer than the interval."""
    seconds = formula(LONG, POOL if policy else SLOTS, cost=cost)
    pool = twin(LONG, cost=cost, policy=policy)
    pool.run(seconds)
    assert filled(pool) == 1
    starts = [claim.started_at for slot in pool.slots for claim in slot.claims]
    assert max(starts) == pytest.approx(seconds)
    assert (seconds > INTERVAL) == (not policy or cost > COST)


@pytest.mark.parametrize("worklife", [0.0, 1200.0])
def test_jobs_that_end_meanwhile_make_it_longer(worklife: float) -> None:
    """Of slots that happen to be full a cycle makes no match: the twin is a few percent behind."""
    law = exponential(3600.0)
    seconds = formula(law, SLOTS, worklife)
    assert (seconds > formula(LONG, SLOTS)) == (worklife == 0)
    pool = twin(law, worklife, policy=False)
    pool.run(seconds)
    assert filled(pool) == pytest.approx(1.0, abs=0.05)


def test_short_jobs_never_fill_it() -> None:
    law = constant(301.0)
    assert formula(law, SLOTS) == 0
    pool = twin(law, policy=False)
    pool.run(3000.0)
    assert filled(pool) == 6 / CORES, "each match holds its core for six cycles"
    assert formula(law, POOL // 6 + 1) > 0

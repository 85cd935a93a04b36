from __future__ import annotations

from dataclasses import replace

import pytest

from sharectl.model import OTHER, PendingJobs, PlanLimits, Snapshot, Source, UnplaceableJobs
from sharectl.plan.plan import PlanConfig, State, decide, withdrawal
from sharectl.shares.demand import multicore_pending, pending_rows, unplaceable_jobs
from tests.fakes import NOW, running, snapshot

CONFIG = PlanConfig({"alice": 100.0, "cms": 100.0}, PlanLimits(), 3060)
HELD = [running(f"wn-{number}", "alice", 1, 16) for number in range(4)]
NOBODY = UnplaceableJobs("cms", 8, 5, "ap#1.0")


def waiting(*rows: PendingJobs, untried: str | None = None) -> Snapshot:
    return replace(snapshot(HELD), pending=rows, untried=untried)


def test_rows_part_what_no_node_could_run() -> None:
    counted = {("cms", 8, 0): 7, ("atlas", 1, 0): 3}
    assert pending_rows(counted, {("cms", 8, 0): 5, ("atlas", 1, 0): 9, ("x", 1, 0): 1}) == (
        PendingJobs("atlas", 1, 3, 0, placeable=False),
        PendingJobs("cms", 8, 2),
        PendingJobs("cms", 8, 5, placeable=False),
    )


def test_the_largest_part_is_the_example() -> None:
    rows = pending_rows({("cms", 8, 0): 7}, {("cms", 8, 0): 6})
    parts = [replace(NOBODY, jobs=1, example="ap#2.0"), NOBODY]
    assert unplaceable_jobs(rows, parts) == (replace(NOBODY, jobs=6),)
    assert unplaceable_jobs([PendingJobs("cms", 8, 7)], parts) == ()


@pytest.mark.parametrize("strategy", ["many", "pair"])
def test_jobs_that_no_node_could_run_call_for_no_target(strategy: str) -> None:
    config = replace(CONFIG, strategy=strategy)
    nowhere = PendingJobs("cms", 8, 5, placeable=False)
    decided = decide(config, State(), waiting(nowhere), NOW)
    assert (decided.plan.targets, decided.plan.reason) == ((), "no-group-under")
    both = decide(config, State(), waiting(PendingJobs("cms", 8, 1), nowhere), NOW)
    assert len(both.plan.targets) == 1, "one job, one block"


@pytest.mark.parametrize(
    ("rows", "untried", "expected"),
    [
        ((), None, False),
        ((PendingJobs("cms", 1, 9),), None, False),
        ((PendingJobs("cms", 8, 9, placeable=False),), None, False),
        ((PendingJobs("cms", 8, 9, placeable=False),), "why", False),
        ((PendingJobs("cms", 8, 9),), None, True),
        ((PendingJobs(OTHER, 2, 1),), None, True),
        ((PendingJobs("cms", 8, 9),), "why", None),
    ],
)
def test_a_plan_says_whether_multicore_jobs_wait(
    rows: tuple[PendingJobs, ...],
    untried: str | None,
    expected: bool | None,  # noqa: FBT001
) -> None:
    seen = waiting(*rows, untried=untried)
    assert multicore_pending(seen) is expected
    silent = replace(seen, sources=(Source("schedd ap", 1.0, "no answer"),))
    assert (
        multicore_pending(silent) is withdrawal(CONFIG, State(), NOW)[0].multicore_pending is None
    )
    assert decide(CONFIG, State(), seen, NOW).plan.multicore_pending is expected


def test_grace_keeps_no_cores_for_a_group_over_its_share() -> None:
    jobs = (PendingJobs("cms", 8, 9), PendingJobs("alice", 8, 1))
    assert multicore_pending(waiting(*jobs), {"cms"}) is True
    assert multicore_pending(waiting(jobs[0]), {"cms"}) is False
    over = waiting(PendingJobs("alice", 8, 1))
    controls = {control.group: control for control in decide(CONFIG, State(), over, NOW).groups}
    assert controls["alice"].control_error_hs06 > 0, "it holds all cores"
    assert decide(CONFIG, State(), over, NOW).plan.multicore_pending is False

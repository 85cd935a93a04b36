"""The snippet with real jobs: targets, caps, claims, and forged attributes."""

from __future__ import annotations

import time
from collections import Counter
from functools import partial

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool.deployed import held, hold_back, jobs, on, partitionable, publish, run, snippet
from tests.pool.start_cases import FORGED

pytestmark = pytest.mark.semantics

NODE, NO_CRON, ACCESS = "wn-001.example.org", "wn-002.example.org", "ap-1.example.org"
KEEPING = "wn-003.example.org"
"""Its claims go on from job to job, whatever the target."""
CORES = 16
CAP = 4
# On a busy machine a run can be late by more than three such short periods.
DEPLOYED = snippet(grace_seconds=0, job_ctl_period_seconds=2, mc_grace_period_seconds=2)
WATCHED_SECONDS = 12
FORGED_LINES = "".join(f"+{name} = {text}\n" for name, text in FORGED.items())


SPEC = BoxSpec(
    (
        ExecutePoint(NODE, CORES),
        ExecutePoint(NO_CRON, CORES, config="STARTD_CRON_JOBLIST =\n"),
        ExecutePoint(KEEPING, CORES, config="CLAIM_WORKLIFE = 1200\n"),
    ),
    access_points=(ACCESS,),
    execute_config=DEPLOYED,
)


def submit(
    box: Box, group: str, cores: int, seconds: int, count: int = 1, *lines: str, node: str = NODE
) -> int:
    return box.submit(jobs(group, cores, count, seconds, on(node), *lines))


def watched(box: Box) -> list[tuple[Counter[str], Counter[str]]]:
    """Cores by group on `NODE` and on `KEEPING`, over and over for `WATCHED_SECONDS`."""
    until = time.monotonic() + WATCHED_SECONDS
    seen = []
    while time.monotonic() < until:
        seen.append((held(box, NODE), held(box, KEEPING)))
        time.sleep(0.2)
    return seen


def saturated(box: Box, *nodes: str) -> None:
    """Fill nodes with short single-core jobs of the held-back group; cms waits too.

    Each node has a user of its own: while claims go from job to job, an access point of 25.14.1
    offers no later jobs of the submitter that another node could run.
    """
    for number, node in enumerate(nodes):
        for seconds in (4, 5, 7, 9):
            submit(box, "alice", 1, seconds, 120, f"accounting_group_user = u{number}", node=node)
    for node in nodes:
        full = partial(lambda node: held(box, node)["alice"] == CORES, node)
        box.wait_until(full, f"alice has all of {node}")
        submit(box, "cms.pilot", 8, 600, node=node)


def test_a_target_moves_cores_to_the_helped_group_and_the_cap_holds(box: Box) -> None:
    """Not without a target, nor without the snippet's CLAIM_WORKLIFE."""
    saturated(box, NODE, KEEPING)
    seen = watched(box)
    assert max(cores["cms"] for cores, _ in seen) == 0, "HTCondor alone gives cms its cores"

    hold_back(box, CAP, NODE, KEEPING)
    submit(box, "lhcb", 1, 4, 20)
    submit(box, "lhcb", 1, 4, 20, FORGED_LINES)
    box.wait_until(lambda: held(box, NODE)["cms"] == 8, "cms runs")
    box.wait_until(lambda: held(box, NODE)["alice"] == CAP, "alice has its cap")
    seen = watched(box)
    assert max(cores["alice"] for cores, _ in seen) == CAP, "and no core more"
    assert max(cores["lhcb"] for cores, _ in seen) == 0, "no third group, whatever its jobs claim"
    assert min(cores["cms"] for cores, _ in seen) == 8
    assert max(cores["cms"] for _, cores in seen) == 0, "alice's claims go on from job to job"

    publish(box)
    box.wait_until(lambda: sum(held(box, NODE).values()) == CORES, "all cores work again")


def test_the_node_counts_the_held_back_group_as_it_is(box: Box) -> None:
    """The roll-up in the partitionable slot is whole numbers, those of dynamic slots."""
    most = CORES - 8
    hold_back(box, most, NODE)
    submit(box, "alice", 1, 5, 100)
    lists = []

    def look() -> int:
        """Cores of alice, by the roll-up."""
        ad = partitionable(box, NODE)
        lists.append((ad["Childt1_HeldBackCores"], ad["ChildJobStart"], ad["ChildCpus"]))
        return sum(cores for cores in lists[-1][0] if isinstance(cores, int))

    box.wait_until(lambda: look() == most, "alice has all that she may have")
    submit(box, "cms", 8, 5, 20)
    until = time.monotonic() + WATCHED_SECONDS
    while time.monotonic() < until:
        look()
        time.sleep(0.1)
    assert {type(cores) for held, _, _ in lists for cores in held} == {int}, lists
    assert max(sum(held) for held, _, _ in lists) == most
    assert int in {type(start) for _, starts, _ in lists for start in starts}, "JobStart rolls up"
    assert [row for row in lists if len({*map(len, row)}) > 1] == []


def test_before_the_first_cron_run_jobs_flow_and_forging_gains_nothing(box: Box) -> None:
    for text in ("", FORGED_LINES):
        submit(box, "lhcb", 1, 60, 3, text, node=NO_CRON)
    run(box, 6)
    assert "t1_Targetcores" not in partitionable(box, NO_CRON)

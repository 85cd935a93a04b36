"""START of a site and Requirements of jobs keep jobs from nodes of the twin."""

from __future__ import annotations

import pytest

from sharectl.errors import InputError
from sharectl_lab.twin.ads import SiteExpressions, slot_attributes
from sharectl_lab.twin.engine import Setup, Twin
from sharectl_lab.twin.pool import ShapedKind, SimNode
from sharectl_lab.twin.records import NodeSpec, SlotSpec
from sharectl_lab.twin.settings import Access, Negotiator
from sharectl_lab.workload.draw import Arrival, JobKind
from tests.steered import Listed

GPUS = {"gpus": 2}
NODES = (
    NodeSpec("wn-1", (SlotSpec(8, 8000), SlotSpec(4, 4000)), 10.0),
    NodeSpec("gpu-1", (SlotSpec(16, 64_000, custom=GPUS),), 12.0, multicore_only=True),
)
PLAIN = JobKind("alice", "ann", 1, 100)
ON_GPUS = JobKind("cms.prod", "carl", 2, 100, custom=(("gpus", 1),), requirements="TARGET.GPUs > 0")
ON_WN = JobKind("", "dora", 1, 100, requirements='regexp("^wn", TARGET.Machine) && Memory > 4000')


def at_once(kinds: tuple[JobKind, ...], times: int, run_seconds: float = 1e6) -> Listed:
    """Jobs that all come at once, so many of each kind."""
    jobs = (Arrival(0.0, kind, run_seconds) for kind in range(len(kinds)) for _ in range(times))
    return Listed(kinds, tuple(jobs))


def nodes_of_jobs(expressions: SiteExpressions, *kinds: JobKind) -> dict[str, set[str]]:
    """Submitter -> slots on which its jobs run."""
    setup = Setup(
        NODES,
        {"alice": 100.0, "cms": 100.0},
        negotiator=Negotiator(base_seconds=0.0, match_seconds=0.0),
        meets=expressions.meets,
        site_start=expressions.site_start,
    )
    twin = Twin(setup, at_once(kinds, 40))
    twin.run(100.0)
    slots: dict[str, set[str]] = {}
    for slot in twin.slots:
        for claim in slot.claims:
            name = slot_attributes(slot, ["name"])["name"]
            slots.setdefault(claim.job.submitter, set()).add(name)
    return slots


def test_requirements_of_jobs_choose_their_nodes() -> None:
    kinds = (ON_GPUS, ON_WN)
    assert nodes_of_jobs(SiteExpressions(kinds), *kinds) == {
        "cms.prod.carl": {"slot1@gpu-1"},
        "dora": {"slot1@wn-1"},
    }


def test_start_of_a_site_keeps_jobs_out() -> None:
    start = 'MY.SlotID == 1 && MY.TotalCpus > 8 && TARGET.AcctGroup == "Alice"'
    expressions = SiteExpressions([PLAIN], start)
    other = PLAIN._replace(account="lhcb")
    assert nodes_of_jobs(expressions, PLAIN, other) == {"alice.ann": {"slot1@wn-1"}}
    assert not expressions.reads_time


START_OF_CLAIMS = {
    # START of a node of 4 cores -> if a job of one core starts there, on HTCondor 23.9.6.
    "MY.TotalCpus >= 4": True,
    'MY.SlotType =?= "Partitionable" || TARGET.RequestCpus == 1': True,
    'MY.Activity == "Idle"': True,
    "MY.Cpus >= 4": False,
    "MY.TotalSlotCpus >= 4": False,
    "MY.TotalSlotMemory > 2000": False,
    "MY.Memory > 500": False,
    "MY.NumDynamicSlots =!= undefined || MY.SlotTypeID < 0": False,
    'MY.State == "Unclaimed"': False,
    'MY.DynamicSlot =!= True || MY.State == "Claimed"': False,
    "isUndefined(MY.RemoteUser)": False,
}


@pytest.mark.parametrize("start", START_OF_CLAIMS)
def test_start_is_asked_of_the_dynamic_slot_too(start: str) -> None:
    starts = SiteExpressions([PLAIN], start).site_start
    (slot,) = SimNode(0, NodeSpec("wn-1", (SlotSpec(4, 4000),), 10.0)).slots
    assert starts is not None
    assert starts(slot, ShapedKind(0, PLAIN, "alice"), 0.0, None) is START_OF_CLAIMS[start]


def test_start_is_asked_when_a_claim_runs_its_next_job() -> None:
    """START refuses new claims and old ones at night; claims do not age."""
    start = "MY.PartitionableSlot =?= True || time() % 86400 < 43200"
    expressions = SiteExpressions([PLAIN], start)
    setup = Setup(
        (NodeSpec("wn-1", (SlotSpec(4, 4000),), 10.0),),
        {"alice": 100.0},
        access=Access(claim_worklife_seconds=-1.0),
        site_start=expressions.site_start,
        reads_time=expressions.reads_time,
    )
    twin = Twin(setup, at_once((PLAIN,), 500, 3600.0))
    used = []
    for hour in range(48):
        twin.run(3600.0 * hour + 1800)
        used.append(twin.measures["alice"].cores)
    day = [(1_700_000_000 + 3600 * hour + 1800) % 86400 < 43200 for hour in range(48)]
    assert used == [4 * is_day for is_day in day]


def test_faults_of_all_expressions_are_told_at_once() -> None:
    kinds = [PLAIN._replace(requirements=text) for text in ("", "1 +", "time() < 1")]
    with pytest.raises(InputError) as caught:
        SiteExpressions(kinds, "Cpus >")
    assert [problem.partition(": ")[0] for problem in caught.value.problems] == [
        "start.site",
        "requirements of jobs of alice.ann",
        "requirements of jobs of alice.ann",
    ]
